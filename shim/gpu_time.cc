#include "shim/gpu_time.h"

#include <algorithm>

#include "shim/barrier.h"
#include "shim/busy_period.h"
#include "shim/capture.h"
#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/leash.h"
#include "shim/lock.h"
#include "shim/work_watch.h"

namespace fairlead::shim {
namespace {

constexpr int kMostContexts = 32;  // that are measured; work of further ones is not

constinit Lock lock;
constinit BusyPeriod periods[kMostContexts] FL_GUARDED_BY(lock);
constinit Lock context_lock FL_ACQUIRED_BEFORE(lock);  // whoever looks from outside, or ends a context

BusyPeriod* find(CUcontext context) FL_REQUIRES(lock) {
  for (BusyPeriod& period : periods) {
    if (period.context == context) return &period;
  }
  return nullptr;
}
BusyPeriod* find_busy(CUcontext context) FL_REQUIRES(lock) {
  BusyPeriod* const period = context != nullptr ? find(context) : nullptr;
  return period != nullptr && period->busy() ? period : nullptr;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  return FAIRLEAD_REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : nullptr;
}

const ThreadSlot* this_slot() {
  return gate_detail::this_thread.slot;
}

// Threads that believe a stream to be busy look again: work that they put from here on is seen.
void change_epoch() {
  gpu_time_detail::epoch.fetch_add(1, std::memory_order_relaxed);
}

// Recording there makes no other stream wait.
bool stands_alone(CUstream handle) {
  return handle != nullptr && handle != CU_STREAM_LEGACY;
}

bool is_done(BusyPeriod& period, int index, const ThreadSlot* thread) FL_REQUIRES(lock) {
  const StreamWork& work = period.work(index);
  if (work.marked) return FAIRLEAD_REAL(cuEventQuery)(work.mark) != CUDA_ERROR_NOT_READY;
  return FAIRLEAD_REAL(cuStreamQuery)(BusyPeriod::handle(work, thread)) != CUDA_ERROR_NOT_READY;
}

void end_work(BusyPeriod& period, int index) FL_REQUIRES(lock) {
  period.end_of(index);
  period.remove(index);
}

void end_what_is_done(BusyPeriod& period) FL_REQUIRES(lock) {
  for (int i = period.count() - 1; i >= 0; --i) {
    if (is_done(period, i, this_slot())) end_work(period, i);
  }
  if (period.count() == 0 && !period.overflowed()) period.become_idle();
}

// ---- the watch's look

// Work that seemed to be done is, unless a thread that had not seen the new epoch has put more behind it.
void end_unless_joined(BusyPeriod& period, const bool (&done)[BusyPeriod::kMostStreams]) FL_REQUIRES(lock) {
  order_all_threads();
  if (others_inside()) return;  // one of them may be about to; next time
  for (int i = period.count() - 1; i >= 0; --i) {
    if (!done[i]) continue;
    if (is_done(period, i, nullptr)) {
      end_work(period, i);
    } else {
      period.work(i).marked = period.work(i).quiet = false;
    }
  }
  if (period.count() == 0 && !period.overflowed()) period.become_idle();
}

void look_at(BusyPeriod& period) FL_REQUIRES(lock) {
  const bool all_quiet = period.all_quiet();
  bool done[BusyPeriod::kMostStreams] = {};
  bool any_done = false;
  change_epoch();
  for (int i = 0; i < period.count(); ++i) {
    StreamWork& work = period.work(i);
    done[i] = is_done(period, i, nullptr);
    any_done |= done[i];
    if (done[i] || work.marked) continue;
    // A mark on the legacy stream makes others wait for it: only where nobody puts work anywhere.
    const bool may_mark = stands_alone(BusyPeriod::handle(work, nullptr)) ? work.quiet : all_quiet;
    work.quiet = true;
    if (may_mark) period.mark(i, nullptr);
  }
  if (any_done) end_unless_joined(period, done);
}

}  // namespace

std::uint64_t look_at_work() {
  const Guard no_end(context_lock);
  const Guard guard(lock);
  const std::uint64_t now = now_ns();
  std::uint64_t pause = watch_period_ns(UINT64_MAX);
  const bool may_look = !capturing();
  for (BusyPeriod& period : periods) {
    if (!period.busy()) continue;
    pause = std::min(pause, watch_period_ns(period.age_ns(now)));
    CUcontext popped = nullptr;
    if (!may_look || FAIRLEAD_REAL(cuCtxPushCurrent_v2)(period.context) != CUDA_SUCCESS) continue;
    look_at(period);
    FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&popped);
  }
  return pause;
}

// ---- the program's calls

namespace gpu_time_detail {

constinit std::atomic<std::uint64_t> epoch{1};
constinit std::atomic<std::uint32_t> busy_contexts{0};

void begin_work(CUstream stream) {
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  if (context == nullptr) return;
  const Guard guard(lock);
  BusyPeriod* period = find(context);
  if (period == nullptr) period = find(nullptr);
  if (period != nullptr) {
    period->context = context;
    period->put(stream, this_slot());
  }
  gate_detail::this_thread.last_stream = stream;
  // On a leash every launch is looked at.
  gate_detail::this_thread.last_epoch = has_leash() ? 0 : epoch.load(std::memory_order_relaxed);
}

void begin_work_elsewhere(CUstream stream) {
  CUcontext context = nullptr;
  {
    const Bypass own_work;
    if (FAIRLEAD_REAL(cuStreamGetCtx)(stream, &context) != CUDA_SUCCESS) return;
    if (FAIRLEAD_REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS) return;
  }
  begin_work(stream);
  const Bypass own_work;
  FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&context);
  context_changed();
}

bool begin_kernel(ThreadSlot* slot, CUstream stream, std::uint64_t key) {
  const bool is_leashed = has_leash() && leash_launch(slot, stream, key);
  begin_work(stream);
  return is_leashed;
}

void look_for_idle() {
  if (bypassed()) return;
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  const Guard guard(lock);
  BusyPeriod* const period = find_busy(context);
  if (period == nullptr) return;
  change_epoch();
  end_what_is_done(*period);
}

}  // namespace gpu_time_detail

// Marks before the wait, so that they are the end of the work.
void Synchronisation::begin() {
  if (gpu_time_detail::busy_contexts.load(std::memory_order_relaxed) == 0 || bypassed()) return;
  const Bypass own_work;
  if (capturing()) return;
  CUcontext const context = current_context();
  const Guard guard(lock);
  BusyPeriod* const period = find_busy(context);
  if (period == nullptr) return;
  const int only = whole_context_ ? -1 : period->find(stream_, this_slot());
  if (!whole_context_ && only < 0) return;
  change_epoch();
  for (int i = 0; i < period->count(); ++i) {
    StreamWork& work = period->work(i);
    if (!whole_context_ && i != only) continue;
    work.awaited = true;
    const bool is_here = BusyPeriod::handle(work, this_slot()) == work.stream;
    if (!work.marked && is_here) period->mark(i, this_slot());
  }
  context_ = context;
}

void Synchronisation::end(CUresult result) {
  publish_launches();
  if (context_ == nullptr) return work_may_be_done();
  const Bypass own_work;
  const Guard guard(lock);
  BusyPeriod* const period = find_busy(context_);
  if (period == nullptr) return;
  change_epoch();
  if (result != CUDA_SUCCESS) {
    period->count_until(now_ns());
    return period->become_idle();
  }
  // A thread inside a call may have put more on a stream of its own, and not be seen: the watch looks after that.
  const bool others = whole_context_ && others_inside();
  for (int i = period->count() - 1; i >= 0; --i) {
    StreamWork& work = period->work(i);
    if (!work.awaited) continue;
    const bool ours = whole_context_ ? !others || work.thread == this_slot() : work.stream == stream_;
    if (ours) end_work(*period, i);
  }
  if (whole_context_ && !others) period->forget_overflow();
  end_what_is_done(*period);
}

void stream_destroyed(CUstream stream) {
  if (gpu_time_detail::busy_contexts.load(std::memory_order_relaxed) == 0) return;
  const Bypass own_work;
  const Guard guard(lock);
  change_epoch();
  for (BusyPeriod& period : periods) {
    const int index = period.busy() && stream != CU_STREAM_PER_THREAD ? period.find(stream, nullptr) : -1;
    CUcontext popped = nullptr;
    if (index < 0 || FAIRLEAD_REAL(cuCtxPushCurrent_v2)(period.context) != CUDA_SUCCESS) continue;
    if (!capturing() && period.mark(index, nullptr)) {
      period.work(index).destroyed = true;
    } else {
      end_work(period, index);
    }
    end_what_is_done(period);
    FAIRLEAD_REAL(cuCtxPopCurrent_v2)(&popped);
  }
}

ContextEnd::ContextEnd() {
  context_lock.lock();
}
ContextEnd::~ContextEnd() {
  context_lock.unlock();
}

void forget_work(CUcontext context) {
  if (context == nullptr) return;
  const Guard guard(lock);
  leash_forget(context);  // before anything may ask its events, which are gone with the context
  BusyPeriod* const period = find(context);
  if (period == nullptr) return;
  if (period->busy()) period->count_until(now_ns());
  period->become_idle();
  *period = BusyPeriod{};
  change_epoch();
}

void forget_all_work() {
  lock.reset();
  context_lock.reset();
  for (BusyPeriod& period : periods) period = BusyPeriod{};
  BusyPeriod::forget_counted();
  gpu_time_detail::busy_contexts.store(0);
  forget_watch();
  leash_forget_all();
  change_epoch();
  context_changed();
}

}  // namespace fairlead::shim
