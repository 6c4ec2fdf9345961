#include "shim/gpu_time.h"

#include <algorithm>

#include "shim/capture.h"
#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/lock.h"

namespace fairlead::shim {
namespace {

constexpr int kMostContexts = 32;  // that are measured; work of further ones is not
constexpr int kMostStreams = 32;   // busy at once; beyond, only waiting for the whole context ends a busy time
// A mark that is recorded on an idle stream is there at once; if it is not, somebody has put new work before it.
constexpr std::uint64_t kMarkLimitNs = 100000;

struct Period {
  CUcontext context = nullptr;
  CUevent last_mark = nullptr;
  CUevent next_mark = nullptr;
  CUstream streams[kMostStreams] = {};  // the first `count` have work that is not known to be done
  int count = 0;
  bool more = false;     // than fit in `streams`
  bool busy = false;     // last_mark is recorded
  bool marking = false;  // a thread has recorded next_mark and waits for it
};

constinit Lock lock;
constinit Period periods[kMostContexts];  // guarded by lock

Period* find(CUcontext context) {
  for (Period& period : periods) {
    if (period.context == context) return &period;
  }
  return nullptr;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  return FAIRLEAD_REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : nullptr;
}

bool make_marks(Period& period) {
  for (CUevent* mark : {&period.last_mark, &period.next_mark}) {
    if (*mark == nullptr && FAIRLEAD_REAL(cuEventCreate)(mark, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  }
  return true;
}

bool contains(const Period& period, CUstream stream) {
  return std::find(period.streams, period.streams + period.count, stream) != period.streams + period.count;
}

void add(Period& period, CUstream stream) {
  if (contains(period, stream)) return;
  if (period.count == kMostStreams) {
    period.more = true;
  } else {
    period.streams[period.count++] = stream;
  }
}

void remove(Period& period, CUstream stream) {
  CUstream* const end = std::remove(period.streams, period.streams + period.count, stream);
  period.count = static_cast<int>(end - period.streams);
}

void remove_idle_streams(Period& period) {
  for (int i = period.count - 1; i >= 0; --i) {
    if (FAIRLEAD_REAL(cuStreamQuery)(period.streams[i]) != CUDA_ERROR_NOT_READY) remove(period, period.streams[i]);
  }
}

// Threads that believe a stream to be busy must look again.
void change_epoch() {
  gpu_time_detail::epoch.fetch_add(1, std::memory_order_relaxed);
}

void become_idle(Period& period) {
  if (period.busy) gpu_time_detail::busy_contexts.fetch_sub(1, std::memory_order_relaxed);
  period.busy = false;
  period.more = false;
  period.count = 0;
  change_epoch();
}

void add_time_to_mark(Period& period) {
  float milliseconds = 0;
  if (FAIRLEAD_REAL(cuEventElapsedTime)(&milliseconds, period.last_mark, period.next_mark) == CUDA_SUCCESS &&
      milliseconds > 0) {
    page().gpu_time_ns.fetch_add(static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6),
                                 std::memory_order_relaxed);
  }
  std::swap(period.last_mark, period.next_mark);
}

// A mark on a stream that is idle. False: it is not idle any more, and the busy time goes on.
bool mark_now(Period& period, CUstream stream) {
  if (FAIRLEAD_REAL(cuEventRecord)(period.next_mark, stream) != CUDA_SUCCESS) return true;
  const std::uint64_t start = now_ns();
  CUresult there = CUDA_ERROR_NOT_READY;
  while ((there = FAIRLEAD_REAL(cuEventQuery)(period.next_mark)) == CUDA_ERROR_NOT_READY) {
    if (now_ns() - start > kMarkLimitNs) return false;
  }
  if (there == CUDA_SUCCESS) add_time_to_mark(period);
  return true;
}

void start_busy_time(Period& period, CUstream stream) {
  if (!make_marks(period) || FAIRLEAD_REAL(cuEventRecord)(period.last_mark, stream) != CUDA_SUCCESS) return;
  period.busy = true;
  gpu_time_detail::busy_contexts.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

namespace gpu_time_detail {

constinit std::atomic<std::uint64_t> epoch{1};
constinit std::atomic<std::uint32_t> busy_contexts{0};

void begin_work(CUstream stream) {
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  if (context == nullptr) return;
  const Guard guard(lock);
  Period* period = find(context);
  if (period == nullptr) period = find(nullptr);
  if (period != nullptr) {
    period->context = context;
    if (!period->busy) start_busy_time(*period, stream);
    if (period->busy) add(*period, stream);
  }
  gate_detail::this_thread.last_stream = stream;
  gate_detail::this_thread.last_epoch = epoch.load(std::memory_order_relaxed);
}

void look_for_idle() {
  if (bypassed()) return;
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  if (context == nullptr) return;
  const Guard guard(lock);
  Period* const period = find(context);
  if (period == nullptr || !period->busy || period->marking || period->more || period->count == 0) return;
  CUstream const some_stream = period->streams[0];
  remove_idle_streams(*period);
  change_epoch();
  if (period->count != 0) return;
  if (mark_now(*period, some_stream)) {
    become_idle(*period);
  } else {
    add(*period, some_stream);
  }
}

}  // namespace gpu_time_detail

void Synchronisation::begin(const CUstream* stream) {
  if (gpu_time_detail::busy_contexts.load(std::memory_order_relaxed) == 0 || bypassed()) return;
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  if (context == nullptr) return;
  const Guard guard(lock);
  Period* const period = find(context);
  if (period == nullptr || !period->busy || period->marking || period->count == 0) return;
  whole_context_ = stream == nullptr;
  if (!whole_context_ && !contains(*period, *stream)) return;
  stream_ = whole_context_ ? period->streams[0] : *stream;
  // Before the wait, so that the mark is the end of the work; of several streams nobody knows which ends last.
  const bool before = !whole_context_ || (period->count == 1 && !period->more);
  marked_ = before && FAIRLEAD_REAL(cuEventRecord)(period->next_mark, stream_) == CUDA_SUCCESS;
  if (before && !marked_) return;
  period->marking = true;
  context_ = context;
}

void Synchronisation::end(CUresult result) {
  publish_launches();
  if (context_ == nullptr) return work_may_be_done();
  const Bypass own_work;
  const Guard guard(lock);
  Period* const period = find(context_);
  if (period == nullptr || !period->marking) return;
  period->marking = false;
  if (result != CUDA_SUCCESS) return become_idle(*period);
  if (marked_) add_time_to_mark(*period);
  if (whole_context_) {
    if (marked_ || mark_now(*period, stream_)) become_idle(*period);
    return;
  }
  remove(*period, stream_);
  if (!period->more) remove_idle_streams(*period);
  if (period->count == 0 && !period->more) return become_idle(*period);
  change_epoch();
}

void stream_destroyed(CUstream stream) {
  const Guard guard(lock);
  for (Period& period : periods) {
    if (!period.busy || !contains(period, stream)) continue;
    remove(period, stream);
    if (period.count == 0 && !period.more && !period.marking) become_idle(period);
  }
  change_epoch();
}

void forget_work(CUcontext context) {
  const Guard guard(lock);
  Period* const period = context != nullptr ? find(context) : nullptr;
  if (period == nullptr) return;
  become_idle(*period);
  *period = Period{};
}

void forget_all_work() {
  lock.reset();
  for (Period& period : periods) period = Period{};
  gpu_time_detail::busy_contexts.store(0);
  change_epoch();
  context_changed();
}

}  // namespace fairlead::shim
