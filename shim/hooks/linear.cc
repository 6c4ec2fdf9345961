// Device memory by address: what cuMemAlloc gives can move, and is the memory module's; managed memory and memory of
// pools are the driver's, and counted.
#include "shim/capture.h"
#include "shim/hooks/counted.h"
#include "shim/hooks/graph_memory.h"
#include "shim/hooks/lost.h"

using namespace fairlead::shim;

namespace fairlead::shim {

constinit std::atomic<bool> context_lost{false};

}  // namespace fairlead::shim

namespace {

// Whether the driver must decide on an allocation: it refuses one during a capture that forbids it, and in a context that
// an error has ended. What it grants is counted, and does not move.
bool is_the_drivers() {
  return context_lost.load(std::memory_order_relaxed) || capturing();
}

// Of rows, as the driver aligns them on every device so far.
constexpr std::size_t kPitchBytes = 512;

CUresult free_address(CUdeviceptr address) {
  CUresult result = CUDA_SUCCESS;
  switch (memory::free(address, &result)) {
    case memory::Freed::kDone: return CUDA_SUCCESS;
    case memory::Freed::kFailed: return result;
    case memory::Freed::kNotOurs: break;
  }
  return CUDA_ERROR_NOT_FOUND;
}

// What is allocated on a stream under capture becomes a node of a graph.
template <typename Allocate>
CUresult allocate_on_stream(const CUdeviceptr* address, std::size_t bytes, Allocate allocate) {
  if (!bypassed() && capturing()) {
    expect_graph_memory();
    return allocate();
  }
  return count_new(bytes, allocate, [&] { return *address; });
}

template <typename Release>
CUresult free_on_stream(CUdeviceptr address, Release release) {
  if (!bypassed() && capturing()) return release();
  return count_gone(address, release);
}

}  // namespace

HOOK cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const auto driver = [&] { return FAIRLEAD_REAL(cuMemAlloc_v2)(address, bytes); };
  if (bypassed() || address == nullptr || bytes == 0) return driver();
  if (is_the_drivers()) return count_new(bytes, driver, [&] { return *address; });
  pass_gate();
  const Bypass own_work;
  return memory::allocate(address, bytes);
}

HOOK cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned int element) {
  const bool valid = address != nullptr && pitch != nullptr && width != 0 && height != 0 &&
                     (element == 4 || element == 8 || element == 16);
  const std::size_t row = (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
  const auto driver = [&] { return FAIRLEAD_REAL(cuMemAllocPitch_v2)(address, pitch, width, height, element); };
  if (bypassed() || !valid || row < width || height > SIZE_MAX / row) return driver();
  if (is_the_drivers()) return count_new(row * height, driver, [&] { return *address; });
  pass_gate();
  const Bypass own_work;
  const CUresult result = memory::allocate(address, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

HOOK cuMemFree_v2(CUdeviceptr address) {
  const auto real = FAIRLEAD_REAL(cuMemFree_v2);
  if (bypassed() || address == 0) return real(address);
  enter_process();
  {
    const Bypass own_work;
    const CUresult result = free_address(address);
    if (result != CUDA_ERROR_NOT_FOUND) {
      work_may_be_done();
      return result;
    }
  }
  return count_gone(address, [&] { return real(address); });
}

HOOK cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  return count_new(
      bytes, [&] { return FAIRLEAD_REAL(cuMemAllocManaged)(address, bytes, flags); }, [&] { return *address; });
}

HOOK cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_on_stream(address, bytes, [&] { return FAIRLEAD_REAL(cuMemAllocAsync)(address, bytes, stream); });
}
HOOK cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_on_stream(address, bytes,
                            [&] { return FAIRLEAD_REAL(cuMemAllocAsync_ptsz)(address, bytes, stream); });
}
HOOK cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_on_stream(address, bytes,
                            [&] { return FAIRLEAD_REAL(cuMemAllocFromPoolAsync)(address, bytes, pool, stream); });
}
HOOK cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_on_stream(address, bytes,
                            [&] { return FAIRLEAD_REAL(cuMemAllocFromPoolAsync_ptsz)(address, bytes, pool, stream); });
}
HOOK cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return free_on_stream(address, [&] { return FAIRLEAD_REAL(cuMemFreeAsync)(address, stream); });
}
HOOK cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return free_on_stream(address, [&] { return FAIRLEAD_REAL(cuMemFreeAsync_ptsz)(address, stream); });
}
