// Places with real processes on the software GPU: a JSON object of numbers on standard output.
//
//   paced-bench delivered KERNEL_US SECONDS   what the worst of three instances had of its request, in the second that gave it least
//   paced-bench deep SECONDS                  the same for two, beside one that launches 300 kernels and does not wait
//   paced-bench small SECONDS                 kernels a second of eight clients of 12 % side by side, and of the same eight in turns
//   paced-bench leash SECONDS                 kernels a second of a program alone, with places and a leash, and without
//
// What the software GPU's kernels take beyond their model, and what else the computer does, is in all of it.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/pacing/paced_gpu.h"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using pacing_tests::Client;
using pacing_tests::PacedGpu;

const pacing_tests::Paths kPaths{PACED_PROGRAM, FAIRLEAD_SHIM, FAIRLEAD_SOFTGPU};
constexpr Duration kStep = 50ms, kWindow = 1s;
constexpr std::size_t kStepsOfWindow = kWindow / kStep;

bool first_number = true;
void print(const std::string& name, double value) {
  std::printf("%s\"%s\": %.4f", first_number ? "{" : ", ", name.c_str(), value);
  first_number = false;
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "paced-bench: %s\n", what);
  std::exit(1);
}

struct Paced {
  std::unique_ptr<Client> client;
  int request = 0;
};

// GPU time of each, a number of steps apart; then the least of any second, as part of the request.
std::vector<double> worst_seconds(const std::vector<Paced>& all, double seconds) {
  std::vector<std::vector<Duration>> used(all.size());
  std::vector<Instant> at;
  const Instant began = monotonic_now();
  for (Instant next = began; to_seconds(next - began) <= seconds; next += kStep) {
    std::this_thread::sleep_for(next - monotonic_now());
    at.push_back(monotonic_now());
    for (std::size_t i = 0; i < all.size(); ++i) used[i].push_back(all[i].client->gpu_time());
  }
  std::vector<double> worst;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double least = 1e9;
    for (std::size_t end = kStepsOfWindow; end < at.size(); ++end) {
      const std::size_t begin = end - kStepsOfWindow;
      const double part = to_seconds(used[i][end] - used[i][begin]) / to_seconds(at[end] - at[begin]);
      least = std::min(least, part / (all[i].request / 100.0));
    }
    worst.push_back(least);
  }
  return worst;
}

void settle() {
  std::this_thread::sleep_for(1500ms);
}

void report(const std::vector<double>& worst, const PaceSnapshot& end) {
  print("worst", *std::min_element(worst.begin(), worst.end()));
  for (std::size_t i = 0; i < worst.size(); ++i) print("worst_" + std::to_string(i), worst[i]);
  print("frame_ms", to_ms(end.frame));
  print("late", static_cast<double>(end.late));
  print("is_realtime", end.is_realtime ? 1 : 0);
  std::uint64_t revoked = 0;
  for (const DeliveredService& one : end.instances) revoked += one.revoked;
  print("revoked", static_cast<double>(revoked));
}

void run_set(const std::vector<std::pair<int, std::vector<std::string>>>& set, double seconds) {
  PacedGpu gpu(kPaths);
  PaceDriver driver{PaceDriverOptions{}};
  std::vector<Paced> all;
  for (const auto& [request, words] : set) {
    all.push_back({gpu.start(words), request});
    must(all.back().client != nullptr, "a program has not registered");
    const Status paced =
        PacedGpu::pace(driver, InstanceId(all.size()), {.request_percent = request}, *all.back().client);
    must(bool(paced), "an instance was refused");
  }
  settle();
  const std::vector<double> worst = worst_seconds(all, seconds);
  report(worst, driver.snapshot());
}

double kernels_per_second(const std::vector<std::unique_ptr<Client>>& clients, double seconds) {
  const auto sum = [&] {
    std::uint64_t kernels = 0;
    for (const auto& client : clients) kernels += client->kernels();
    return kernels;
  };
  const std::uint64_t before = sum();
  const Instant began = monotonic_now();
  std::this_thread::sleep_for(from_seconds(seconds));
  return static_cast<double>(sum() - before) / to_seconds(monotonic_now() - began);
}

// Runs a command of the software GPU.
void softgpu(const PacedGpu& gpu, const std::vector<std::string>& words) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("SOFTGPU_HOME", gpu.machine().c_str(), 1);  // which it makes, with what follows
    ::setenv("SOFTGPU_MODE", "charge", 1);
    ::setenv("SOFTGPU_MEMORY_SCALE", "64", 1);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(SOFTGPU_PROGRAM, arguments.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  must(WIFEXITED(status) && WEXITSTATUS(status) == 0, "softgpu mps start failed");
}

constexpr int kClients = 8, kWidth = 12;
const std::vector<std::string> kSmallKernel = {"300", "sync"};
const std::map<std::string, std::string> kFewBlocks = {{"PACED_BLOCKS", "9"}};

double side_by_side(double seconds) {
  PacedGpu gpu(kPaths);
  softgpu(gpu, {"softgpu", "mps", "start"});
  PaceDriver driver{PaceDriverOptions{}};
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint64_t i = 1; i <= kClients; ++i) {
    auto environment = kFewBlocks;
    environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(kWidth);
    clients.push_back(gpu.start(kSmallKernel, 1, environment));
    must(clients.back() != nullptr, "a program has not registered");
    must(bool(PacedGpu::pace(driver, InstanceId(i), {.width_percent = kWidth, .request_percent = 90}, *clients.back())),
         "an instance was refused");
  }
  settle();
  return kernels_per_second(clients, seconds);
}

double in_turns(double seconds) {
  PacedGpu gpu(kPaths);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(gpu.start(kSmallKernel, 1, kFewBlocks));
    must(clients.back() != nullptr, "a program has not registered");
  }
  settle();
  return kernels_per_second(clients, seconds);
}

void small(double seconds) {
  print("in_turns", in_turns(seconds));
  print("side_by_side", side_by_side(seconds));
}

// In turn, so that what else the computer does hits both.
void leash(double seconds) {
  for (const int us : {10, 100, 300}) {
    PacedGpu gpu(kPaths);
    std::vector<std::unique_ptr<Client>> clients;
    clients.push_back(gpu.start({std::to_string(us), "deep", "100"}));
    must(clients.back() != nullptr, "the program has not registered");
    std::vector<double> without, with;
    for (int round = 0; round < 5; ++round) {
      std::this_thread::sleep_for(300ms);
      without.push_back(kernels_per_second(clients, seconds));
      PaceDriver driver{PaceDriverOptions{}};
      must(bool(PacedGpu::pace(driver, InstanceId(1), {}, *clients.back())), "the instance was refused");
      must(bool(driver.set_share(InstanceId(2), {})), "the other was refused");  // who might want the device
      std::this_thread::sleep_for(300ms);
      with.push_back(kernels_per_second(clients, seconds));
    }
    const auto median = [](std::vector<double> values) {
      std::sort(values.begin(), values.end());
      return values[values.size() / 2];
    };
    print("without_" + std::to_string(us), median(without));
    print("with_" + std::to_string(us), median(with));
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const double seconds = count > 2 ? std::atof(words[count - 1]) : 0;
  if (what == "delivered" && count == 4 && seconds > 1) {
    const std::vector<std::string> sync = {words[2], "sync"};
    run_set({{40, sync}, {30, sync}, {25, sync}}, seconds);
  } else if (what == "deep" && count == 3 && seconds > 1) {
    run_set({{50, {"300", "sync"}}, {25, {"100", "deep", "300"}}}, seconds);
  } else if (what == "small" && count == 3 && seconds > 0) {
    small(seconds);
  } else if (what == "leash" && count == 3 && seconds > 0) {
    leash(seconds);
  } else {
    std::fprintf(stderr,
                 "usage: paced-bench delivered KERNEL_US SECONDS | deep SECONDS | small SECONDS | leash SECONDS\n");
    return 2;
  }
  std::printf("}\n");
}
