// What fencing costs: instructions it adds, and the processor time of kernels on the software GPU with and without it, in turns.
// Prints one JSON line per kernel. fence_bench [rounds]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "fence/fence.h"
#include "fence/testing/gpu.h"

namespace fairlead::fence {
namespace {

using testing::kMiB;
using testing::Neighbourhood;

struct Launch {
  const char* kernel;
  unsigned grid_x, grid_y, block_x, block_y;
  int times;
};
constexpr int kSide = 256;
constexpr Launch kLaunches[] = {
    {"sgemm_tile", kSide / 16, kSide / 16, 16, 16, 4},
    {"sgemm_register", kSide / 64, kSide / 64, 16, 16, 8},
    {"jacobi", kSide / 32, kSide / 8, 32, 8, 40},
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
    int n = kSide;
    std::uint64_t buffers[] = {memory, memory + 512 * 1024, memory + 1024 * 1024};
    void* parameters[] = {&n, &buffers[0], &buffers[1], &buffers[2], nullptr};
    const double start = processor_seconds();
    for (int i = 0; i < launch_.times; ++i) {
      driver_.check(driver_.cuLaunchKernel(function_, launch_.grid_x, launch_.grid_y, 1, launch_.block_x,
                                           launch_.block_y, 1, 0, nullptr, parameters, nullptr),
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

void measure(const std::string& ptx, const FencedModule& fenced, const Launch& launch, std::uint64_t memory,
             int rounds) {
  LoadedKernel plain(ptx, launch), bounded(fenced.ptx, launch);
  double least_plain = 1e9, least_bounded = 1e9;
  for (int i = 0; i < rounds; ++i) {
    least_plain = std::min(least_plain, plain.seconds(memory));
    least_bounded = std::min(least_bounded, bounded.seconds(memory));
  }
  const auto report = std::ranges::find(fenced.functions, launch.kernel, &FunctionReport::name);
  std::printf(
      "{\"name\": \"fence_%s\", \"value\": %.4f, \"unit\": \"ms\", \"baseline\": %.4f, \"ratio\": %.3f, "
      "\"instructions\": %zu, \"accesses\": %zu, \"added\": %zu}\n",
      launch.kernel, 1e3 * least_bounded, 1e3 * least_plain, least_bounded / least_plain, report->instructions,
      report->accesses, report->added);
}

}  // namespace
}  // namespace fairlead::fence

int main(int count, char** arguments) {
  using namespace fairlead::fence;
  const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 20;
  std::ifstream file(FENCE_PTX_TESTDATA "/kernels.ptx");
  const std::string ptx(std::istreambuf_iterator<char>(file), {});
  testing::Neighbourhood memory;
  const auto fenced = fence_ptx(ptx, {.base = memory.own(),
                                      .bytes = testing::Neighbourhood::kRange,
                                      .variables_address = memory.own() + 2 * testing::kMiB});
  if (!fenced) {
    std::fprintf(stderr, "%s\n", fenced.error().message.c_str());
    return 1;
  }
  memory.fill(memory.own(), 0, 2 * testing::kMiB);
  for (const Launch& launch : kLaunches) measure(ptx, *fenced, launch, memory.own(), rounds);
  return 0;
}
