// An event of each context is recorded behind everything that its streams hold (cuCtxRecordEvent) and asked after, at
// growing intervals of 20 us to 1 ms. Events of the default stream would not do: streams that do not block it run on.
#include "shim/memory/quiesce.h"

#include "shim/capture.h"
#include "shim/clock.h"
#include "shim/driver.h"

namespace fairlead::shim::memory {
namespace {

constexpr std::uint64_t kFirstPauseNs = 20'000;
constexpr std::uint64_t kLongestPauseNs = 1'000'000;

void pause(std::uint64_t ns) {
  const timespec time = {0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

// An event behind all of the context's work.
CUresult record(Heap& heap, CUcontext context) {
  CUresult result = FAIRLEAD_REAL(cuCtxPushCurrent_v2)(context);
  if (result != CUDA_SUCCESS) return result;
  if (heap.event == nullptr) result = FAIRLEAD_REAL(cuEventCreate)(&heap.event, CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) result = FAIRLEAD_REAL(cuCtxRecordEvent)(context, heap.event);
  CUcontext popped = nullptr;
  FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&popped);
  return result;
}

bool wait(const Heap& heap, std::uint64_t until_ns) {
  std::uint64_t interval = kFirstPauseNs;
  for (;;) {
    const CUresult result = FAIRLEAD_REAL(cuEventQuery)(heap.event);
    if (result != CUDA_ERROR_NOT_READY) return result == CUDA_SUCCESS;
    if (now_ns() >= until_ns) return false;
    pause(interval);
    interval = 2 * interval < kLongestPauseNs ? 2 * interval : kLongestPauseNs;
  }
}

}  // namespace

bool quiesce(Space& space, std::uint64_t until_ns) {
  if (capturing() || !driver_has(Symbol::cuCtxRecordEvent)) return false;
  Heap* heaps = space.heaps();
  for (unsigned i = 0; i < Space::kMostContexts; ++i) {
    const CUcontext context = heaps[i].context.load(std::memory_order_acquire);
    if (context != nullptr && record(heaps[i], context) != CUDA_SUCCESS) return false;
  }
  for (unsigned i = 0; i < Space::kMostContexts; ++i) {
    if (heaps[i].context.load(std::memory_order_acquire) != nullptr && !wait(heaps[i], until_ns)) return false;
  }
  return true;
}

}  // namespace fairlead::shim::memory
