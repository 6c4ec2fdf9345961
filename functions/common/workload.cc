#include "common/workload.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/arena.h"
#include "fairlead/error.h"
#include "fairlead/runtime.h"

namespace fairlead::sample {
namespace {

constexpr std::int64_t kDefaultMemoryMib = 16;
constexpr std::int64_t kMaxMemoryMib = 1 << 20;
constexpr std::int64_t kMaxPauseMs = 600'000;

std::int64_t environment_integer(const char* name, std::int64_t fallback, std::int64_t max) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  const std::string_view digits = text;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > max) {
    throw Error("Runtime.Configuration", std::string("environment variable ") + name + " is \"" + text +
                                             "\"; it must be a whole number, 0 to " + std::to_string(max));
  }
  return value;
}

// The device, the arena and the workload, in the order they are built.
class Program {
 public:
  Program(std::string_view name, const MakeWorkload& make)
      : pause_ms_(pause()),
        memory_mib_(environment_integer("FUNCTION_MEMORY_MIB", kDefaultMemoryMib, kMaxMemoryMib)),
        arena_(gpu_, static_cast<std::size_t>(memory_mib_)),
        workload_(make(gpu_)) {
    gpu_.synchronize();
    log_line(std::string(name) + ": ready on " + gpu_.name() + ", holding " + std::to_string(memory_mib_) +
             " MiB besides its weights" +
             (pause_ms_ > 0 ? ", after a pause of " + std::to_string(pause_ms_) +
                                  " ms that stands for loading libraries (FUNCTION_INIT_PAUSE_MS)"
                            : ""));
  }

  std::string invoke(std::string_view payload) {
    Parameters parameters(payload);
    arena_.touch();
    return workload_->invoke(parameters);
  }

  void self_test(SelfTest& test) { workload_->self_test(test); }

 private:
  static std::int64_t pause() {
    const std::int64_t milliseconds = environment_integer("FUNCTION_INIT_PAUSE_MS", 0, kMaxPauseMs);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return milliseconds;
  }

  std::int64_t pause_ms_;
  std::int64_t memory_mib_;
  Gpu gpu_;
  Arena arena_;
  std::unique_ptr<Workload> workload_;
};

int serve(std::string_view name, const MakeWorkload& make) {
  return run_with_init([&]() -> Handler {
    auto program = std::make_shared<Program>(name, make);  // shared: std::function copies its target
    return [program](const Event& event) { return Response(program->invoke(event.payload)); };
  });
}

int once(std::string_view name, const MakeWorkload& make, const char* payload) {
  std::printf("%s\n", Program(name, make).invoke(payload).c_str());
  return EXIT_SUCCESS;
}

int self_test(std::string_view name, const MakeWorkload& make) {
  SelfTest test;
  Program(name, make).self_test(test);
  return test.passed() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

void SelfTest::compare(const std::string& what, const std::vector<float>& actual, const std::vector<float>& expected,
                       double tolerance) {
  double scale = 1;
  double worst = actual.size() == expected.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < expected.size() && i < actual.size(); ++i) {
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  char detail[96];
  std::snprintf(detail, sizeof detail, "largest error %.2e, bound %.2e", worst, tolerance * scale);
  expect(what, worst <= tolerance * scale, detail);
}

void SelfTest::compare_exact(const std::string& what, const std::vector<int>& actual,
                             const std::vector<int>& expected) {
  std::size_t differing = actual.size() == expected.size() ? 0 : expected.size();
  for (std::size_t i = 0; differing == 0 && i < expected.size(); ++i) differing += actual[i] != expected[i] ? 1 : 0;
  expect(what, differing == 0, std::to_string(expected.size()) + " values, must be equal");
}

void SelfTest::expect(const std::string& what, bool passed, const std::string& detail) {
  ++checks_;
  if (!passed) ++failures_;
  std::printf("%s %s: %s\n", passed ? "ok    " : "FAILED", what.c_str(), detail.c_str());
}

int workload_main(int argc, char** argv, std::string_view name, const MakeWorkload& make) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  try {
    if (argc == 1) return serve(name, make);
    if (argc == 3 && mode == "--once") return once(name, make, argv[2]);
    if (argc == 2 && mode == "--self-test") return self_test(name, make);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s: %s\n", argv[0], error.type().c_str(), error.what());
    return EXIT_FAILURE;
  }
  std::fprintf(stderr,
               "usage: %s                serve the Lambda Runtime API\n"
               "       %s --once JSON    answer one request\n"
               "       %s --self-test    compare the kernels with a host reference\n",
               argv[0], argv[0], argv[0]);
  return 2;
}

double checksum(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

}  // namespace fairlead::sample
