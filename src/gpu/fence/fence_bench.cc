// What fencing costs: instructions it adds, and the processor time of kernels on the software GPU with and without it, in turns.
// Of that, what clearing costs of what others left: the same kernel fenced without. And for each file what the verifier adds
// to the fence's own time, in turns. Prints one JSON line each.
// fence_bench [rounds]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu/fence/fence.h"
#include "gpu/fence/testing/gpu.h"
#include "gpu/fence/verifier.h"

namespace fairlead::fence {
namespace {

using testing::kMiB;
using testing::Neighbourhood;

// A parameter: 8 bytes, of which a smaller one takes the lower; or the address of a buffer of 512 KiB.
struct Parameter {
  std::uint64_t value = 0;
  bool is_buffer = false;
};
constexpr Parameter buffer(std::uint64_t number) {
  return {.value = number * (512 << 10), .is_buffer = true};
}
struct Launch {
  const char* file;
  const char* kernel;
  unsigned grid_x, grid_y, block_x, block_y;
  int times;
  std::vector<Parameter> parameters;
};
constexpr unsigned kSide = 256;
constexpr Parameter kN{kSide}, kOne{0x3f800000};  // 1.0f

const Launch kLaunches[] = {
    {FENCE_PTX_TESTDATA "/kernels.ptx",
     "sgemm_tile",
     kSide / 16,
     kSide / 16,
     16,
     16,
     4,
     {kN, buffer(0), buffer(1), buffer(2), {}}},
    {FENCE_PTX_TESTDATA "/kernels.ptx",
     "sgemm_register",
     kSide / 64,
     kSide / 64,
     16,
     16,
     8,
     {kN, buffer(0), buffer(1), buffer(2), {}}},
    {FENCE_PTX_TESTDATA "/kernels.ptx",
     "jacobi",
     kSide / 32,
     kSide / 8,
     32,
     8,
     40,
     {kN, buffer(0), buffer(1), buffer(2), {}}},
    // The built-in library's: c, a, b, d, bias, m, n, k, strides of rows, columns and batches, alpha, beta, bias, activation.
    {FENCE_LIBRARY "/gemm.ptx", "gemm_f32", kSide / 64, kSide / 64, 256, 1, 8, {buffer(0), buffer(1), buffer(2), {},
                                                                                {},        kN,        kN,        kN,
                                                                                kN,        {1},       {},        kN,
                                                                                {1},       {},        kN,        {},
                                                                                kOne,      {},        {1},       {}}},
    {FENCE_LIBRARY "/normalise.ptx", "softmax_f32", 64, 1, 256, 1, 20, {buffer(0), buffer(1), {1024}}},
    {FENCE_LIBRARY "/jacobi.ptx",
     "jacobi_step_f64",
     kSide / 8,
     1,
     256,
     1,
     40,
     {buffer(0), buffer(1), buffer(2), buffer(3), kN}},
};

// Of all threads: others on the machine do not count.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

class LoadedKernel {
 public:
  LoadedKernel(const std::string& ptx, const Launch& launch) : launch_(launch) {
    driver_.check(driver_.cuModuleLoadData(&module_, ptx.c_str()), "cuModuleLoadData");
    driver_.check(driver_.cuModuleGetFunction(&function_, module_, launch.kernel), launch.kernel);
  }
  ~LoadedKernel() { driver_.cuModuleUnload(module_); }
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  double seconds(std::uint64_t memory) {
    std::vector<std::uint64_t> values;
    for (const Parameter& given : launch_.parameters) values.push_back(given.value + (given.is_buffer ? memory : 0));
    std::vector<void*> parameters;
    for (std::uint64_t& value : values) parameters.push_back(&value);
    const double start = processor_seconds();
    for (int i = 0; i < launch_.times; ++i) {
      driver_.check(driver_.cuLaunchKernel(function_, launch_.grid_x, launch_.grid_y, 1, launch_.block_x,
                                           launch_.block_y, 1, 0, nullptr, parameters.data(), nullptr),
                    "cuLaunchKernel");
    }
    driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
    return processor_seconds() - start;
  }

 private:
  const testing::Driver& driver_ = testing::Driver::instance();
  const Launch& launch_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

bool measure(const Launch& launch, std::uint64_t memory, int rounds) {
  std::ifstream file(launch.file);
  const std::string ptx(std::istreambuf_iterator<char>(file), {});
  FenceOptions options{.base = memory, .bytes = testing::Neighbourhood::kRange, .variables_address = memory + 2 * kMiB};
  const auto fenced = fence_ptx(ptx, options);
  options.clears_leftovers = false;
  const auto leaky = fence_ptx(ptx, options);
  if (!fenced || !leaky) {
    std::fprintf(stderr, "%s: %s\n", launch.file, (fenced ? leaky : fenced).error().message.c_str());
    return false;
  }
  LoadedKernel kernels[] = {{ptx, launch}, {leaky->ptx, launch}, {fenced->ptx, launch}};
  double least[] = {1e9, 1e9, 1e9};
  for (int i = 0; i < rounds; ++i) {
    for (int kind = 0; kind < 3; ++kind) least[kind] = std::min(least[kind], kernels[kind].seconds(memory));
  }
  const auto report_of = [&](const FencedModule& module) {
    return *std::ranges::find(module.functions, launch.kernel, &FunctionReport::name);
  };
  const FunctionReport report = report_of(*fenced), without = report_of(*leaky);
  std::printf(
      "{\"name\": \"fence_%s\", \"value\": %.4f, \"unit\": \"ms\", \"baseline\": %.4f, \"ratio\": %.3f, "
      "\"instructions\": %zu, \"accesses\": %zu, \"added\": %zu, \"of_which_clear\": %zu, \"clearing_ratio\": %.3f}\n",
      launch.kernel, 1e3 * least[2], 1e3 * least[0], least[2] / least[0], report.instructions, report.accesses,
      report.added + report.prologue, report.added + report.prologue - without.added - without.prologue,
      least[2] / least[1]);
  return true;
}

// The verifier's time beside the fence's, which reads more text than the fence did: what the fence has added, too.
bool measure_verifier(const char* path, int rounds) {
  std::ifstream file(path);
  const std::string ptx(std::istreambuf_iterator<char>(file), {});
  const FenceOptions options{.base = 0x700000000000, .bytes = std::uint64_t{1} << 32};
  double fencing = 1e9, verifying = 1e9;
  std::size_t bytes = 0;
  for (int i = 0; i < rounds; ++i) {
    const double start = processor_seconds();
    const auto fenced = fence_ptx(ptx, options);
    const double between = processor_seconds();
    const Status verified = fenced ? verify_fenced(fenced->ptx, options) : fail(fenced.error());
    verifying = std::min(verifying, processor_seconds() - between);
    fencing = std::min(fencing, between - start);
    if (!verified) {
      std::fprintf(stderr, "%s: %s\n", path, verified.error().message.c_str());
      return false;
    }
    bytes = fenced->ptx.size();
  }
  std::printf(
      "{\"name\": \"verify_%s\", \"value\": %.4f, \"unit\": \"ms\", \"baseline\": %.4f, \"ratio\": %.3f, \"bytes\": "
      "%zu, "
      "\"fenced_bytes\": %zu}\n",
      std::filesystem::path(path).stem().c_str(), 1e3 * (fencing + verifying), 1e3 * fencing,
      (fencing + verifying) / fencing, ptx.size(), bytes);
  return true;
}

}  // namespace
}  // namespace fairlead::fence

int main(int count, char** arguments) {
  using namespace fairlead::fence;
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 20;
  testing::Neighbourhood memory;
  memory.fill(memory.own(), 0, 2 * testing::kMiB);
  bool measured = true;
  for (const Launch& launch : kLaunches) measured &= measure(launch, memory.own(), rounds);
  for (const char* file :
       {FENCE_LIBRARY "/gemm.ptx", FENCE_LIBRARY "/normalise.ptx", FENCE_PTX_TESTDATA "/kernels.ptx"}) {
    measured &= measure_verifier(file, rounds);
  }
  return measured ? 0 : 1;
}
