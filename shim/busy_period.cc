#include "shim/busy_period.h"

#include <algorithm>
#include <utility>

#include "shim/clock.h"
#include "shim/covered_time.h"
#include "shim/driver.h"
#include "shim/gpu_time.h"
#include "shim/leash.h"
#include "shim/page.h"
#include "shim/place.h"
#include "shim/work_watch.h"

namespace fairlead::shim {
namespace {

constinit CoveredTime covered;  // by busy times of all contexts; guarded as they are

bool make(CUevent* event) {
  return *event != nullptr || FAIRLEAD_REAL(cuEventCreate)(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

bool is_of_thread(CUstream stream) {
  return stream == CU_STREAM_PER_THREAD;
}

}  // namespace

CUstream BusyPeriod::handle(const StreamWork& work, const ThreadSlot* thread) {
  return is_of_thread(work.stream) && work.thread != thread ? nullptr : work.stream;
}

bool BusyPeriod::all_quiet() const {
  return std::all_of(works_, works_ + count_, [](const StreamWork& work) { return work.quiet || work.marked; });
}

int BusyPeriod::find(CUstream stream, const ThreadSlot* thread) const {
  for (int i = 0; i < count_; ++i) {
    const StreamWork& work = works_[i];
    if (work.stream == stream && !work.destroyed && (!is_of_thread(stream) || work.thread == thread)) return i;
  }
  return -1;
}

void BusyPeriod::put(CUstream stream, const ThreadSlot* thread) {
  if (!busy_ && !start(stream)) return;
  int index = find(stream, thread);
  if (index < 0 && count_ == kMostStreams) {
    more_ = true;
    return;
  }
  if (index < 0) index = count_++;
  CUevent const mark = works_[index].mark;
  works_[index] = {.stream = stream, .thread = thread, .mark = mark};
}

bool BusyPeriod::start(CUstream stream) {
  if (!make(&base_)) return false;
  base_ns_ = begin_ns_ = now_ns();
  if (FAIRLEAD_REAL(cuEventRecord)(base_, stream) != CUDA_SUCCESS) return false;
  busy_ = true;
  gpu_time_detail::busy_contexts.fetch_add(1);
  page().busy.fetch_add(1);
  watch_work();
  return true;
}

bool BusyPeriod::mark(int index, const ThreadSlot* thread) {
  StreamWork& work = works_[index];
  if (work.destroyed) return true;
  work.marked = make(&work.mark) && FAIRLEAD_REAL(cuEventRecord)(work.mark, handle(work, thread)) == CUDA_SUCCESS;
  return work.marked;
}

void BusyPeriod::end_of(int index) {
  StreamWork& work = works_[index];
  float ms = 0;
  const bool known = work.marked && FAIRLEAD_REAL(cuEventElapsedTime)(&ms, base_, work.mark) == CUDA_SUCCESS;
  const std::uint64_t end =
      known ? base_ns_ + static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(ms) * 1e6)) : now_ns();
  count_until(end);
  if (!known || end <= base_ns_) return;
  std::swap(base_, work.mark);  // the time between two events loses digits as it grows
  base_ns_ = end;
}

void BusyPeriod::remove(int index) {
  std::swap(works_[index], works_[--count_]);
}

void BusyPeriod::count_until(std::uint64_t end_ns) {
  page().gpu_time_ns.fetch_add(covered.add(base_ns_, end_ns), std::memory_order_relaxed);
}

void BusyPeriod::become_idle() {
  count_ = 0;
  more_ = false;
  if (!std::exchange(busy_, false)) return;
  gpu_time_detail::busy_contexts.fetch_sub(1);
  page().busy.fetch_sub(1);  // after the time has been counted: who sees it idle sees all of it
  leash_let_go(context);
  place_may_have_drained();
}

void BusyPeriod::forget_counted() {
  covered.clear();
}

}  // namespace fairlead::shim
