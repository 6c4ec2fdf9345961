// What a pair of allocate and free costs through memory/ (vmm) and through the bare driver, beside so many live ones.
//
//   bin/shim_memory_bench        on the driver that the loader finds; prints a line for each number of live allocations
#include <algorithm>
#include <cstdio>
#include <vector>

#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/memory/memory.h"

namespace {

using namespace fairlead::shim;

constexpr std::size_t kBytes = 700;
constexpr int kPairs = 20'000;
constexpr int kRounds = 7;

CUresult through_driver(CUdeviceptr* address) {
  return FAIRLEAD_REAL(cuMemAlloc_v2)(address, kBytes);
}
void free_through_driver(CUdeviceptr address) {
  FAIRLEAD_REAL(cuMemFree_v2)(address);
}
CUresult through_shim(CUdeviceptr* address) {
  return memory::allocate(address, kBytes);
}
void free_through_shim(CUdeviceptr address) {
  CUresult result = CUDA_SUCCESS;
  memory::free(address, &result);
}

// Nanoseconds of a pair, the best of some rounds: what others do on the computer only adds.
template <typename Allocate, typename Free>
double pair_ns(std::size_t live, Allocate allocate, Free free) {
  std::vector<CUdeviceptr> kept(live);
  for (CUdeviceptr& address : kept) allocate(&address);
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t begin = now_ns();
    for (int i = 0; i < kPairs; ++i) {
      CUdeviceptr address = 0;
      allocate(&address);
      free(address);
    }
    best = std::min(best, static_cast<double>(now_ns() - begin) / kPairs);
  }
  for (const CUdeviceptr address : kept) free(address);
  return best;
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  if (FAIRLEAD_REAL(cuInit)(0) != CUDA_SUCCESS ||
      FAIRLEAD_REAL(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      FAIRLEAD_REAL(cuCtxSetCurrent)(context) != CUDA_SUCCESS) {
    std::fprintf(stderr, "no device\n");
    return 1;
  }
  memory::set_up({.backend = fairlead::wire::MemoryBackend::kVmm});
  std::printf("%8s %12s %12s %12s\n", "live", "driver ns", "shim ns", "added ns");
  for (const std::size_t live : {0, 1000, 10'000, 100'000}) {
    const double driver = pair_ns(live, through_driver, free_through_driver);
    const double shim = pair_ns(live, through_shim, free_through_shim);
    std::printf("%8zu %12.0f %12.0f %12.0f\n", live, driver, shim, shim - driver);
  }
  return 0;
}
