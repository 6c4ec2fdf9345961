#include "shim/leash.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "shim/barrier.h"
#include "shim/capture.h"
#include "shim/clock.h"
#include "shim/driver.h"
#include "shim/leash_book.h"
#include "shim/lock.h"
#include "shim/place.h"

namespace fairlead::shim {
namespace {

constexpr int kStrands = 64;  // streams that are followed at once; work of more passes
constexpr std::uint64_t kPatienceNs = 20'000'000;
constexpr std::uint64_t kShortestNapNs = 20'000;
constexpr std::uint64_t kLongestNapNs = 200'000;  // what takes less than it did before has ended meanwhile

// The work of one stream, and its events.
struct Followed {
  CUcontext context = nullptr;  // null: this place is free
  CUstream stream = nullptr;
  const ThreadSlot* thread = nullptr;  // of CU_STREAM_PER_THREAD part of the name
  Strand strand;
  CUevent begin = nullptr;
  CUevent ends[Strand::kLinks] = {};  // made once each
};

constinit Lock lock;
constinit Followed followed[kStrands] FL_GUARDED_BY(lock);
constinit PieceTimes times FL_GUARDED_BY(lock);

CUcontext current_context() {
  CUcontext context = nullptr;
  return FAIRLEAD_REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : nullptr;
}

Followed* find(CUcontext context, CUstream stream) FL_REQUIRES(lock) {
  const ThreadSlot* const thread = stream == CU_STREAM_PER_THREAD ? gate_detail::this_thread.slot : nullptr;
  for (Followed& one : followed) {
    if (one.context == context && one.stream == stream && one.thread == thread) return &one;
  }
  return nullptr;
}

// A place for a stream: a free one, or that of a stream of the same context with nothing in flight, whose events serve again.
Followed* follow(CUcontext context, CUstream stream) FL_REQUIRES(lock) {
  if (Followed* const known = find(context, stream)) return known;
  Followed* place = nullptr;
  for (Followed& one : followed) {
    const bool is_free = one.context == nullptr;
    if (is_free || (one.context == context && one.strand.in_flight_ns() == 0)) place = &one;
    if (is_free) break;
  }
  if (place == nullptr) return nullptr;
  place->context = context;
  place->stream = stream;
  place->thread = stream == CU_STREAM_PER_THREAD ? gate_detail::this_thread.slot : nullptr;
  return place;
}

bool record(CUevent* event, CUstream stream) {
  if (*event == nullptr && FAIRLEAD_REAL(cuEventCreate)(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  return FAIRLEAD_REAL(cuEventRecord)(*event, stream) == CUDA_SUCCESS;
}

// Nothing is known of a link whose end could not be recorded: it does not count.
void tie_off(Followed& one) FL_REQUIRES(lock) {
  const int end = one.strand.tie_off();
  if (!record(&one.ends[end], one.stream)) one.strand.clear();
}

std::uint64_t time_of_oldest(const Followed& one) FL_REQUIRES(lock) {
  CUevent begin = nullptr;
  switch (one.strand.begin_of_oldest()) {
    case Strand::Begin::kUnknown: return 0;
    case Strand::Begin::kBeginEvent: begin = one.begin; break;
    case Strand::Begin::kEventBefore: begin = one.ends[one.strand.event_before_oldest()]; break;
  }
  float ms = 0;
  if (FAIRLEAD_REAL(cuEventElapsedTime)(&ms, begin, one.ends[one.strand.oldest()]) != CUDA_SUCCESS) return 0;
  return static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(ms) * 1e6));
}

void see_what_has_ended(Followed& one, std::uint64_t now_ns) FL_REQUIRES(lock) {
  while (one.strand.oldest() >= 0) {
    const CUresult result = FAIRLEAD_REAL(cuEventQuery)(one.ends[one.strand.oldest()]);
    if (result == CUDA_ERROR_NOT_READY) return;
    if (result != CUDA_SUCCESS) return one.strand.clear();  // an error of the program's, which it will see
    one.strand.oldest_ended(times, time_of_oldest(one), now_ns);
  }
}

// Of the next piece: it has to wait for so long first (and is to be asked about again), or may be launched, and followed or not.
struct Step {
  std::uint64_t wait_ns = 0;
  bool is_followed = false;
};

Step step(CUcontext context, CUstream stream, std::uint64_t key, std::uint64_t now_ns, std::uint64_t waited_ns) {
  const Guard guard(lock);
  Followed* const one = follow(context, stream);
  if (one == nullptr) return {};
  Strand& strand = one->strand;
  if (strand.begins_link() || strand.wait_ns(times, key, now_ns) > 0) see_what_has_ended(*one, now_ns);
  if (!strand.suits(times, key)) tie_off(*one);
  if (const std::uint64_t wait_ns = strand.wait_ns(times, key, now_ns); wait_ns > 0) {
    if (strand.oldest() < 0) tie_off(*one);  // so that its end can be seen
    if (waited_ns < kPatienceNs + 4 * strand.in_flight_ns()) return {.wait_ns = wait_ns};
    strand.clear();
    count_passed_through();
  }
  if (strand.add(times, key, now_ns) && !record(&one->begin, stream)) strand.clear();
  return {.is_followed = true};
}

// The program's own threads have a timer's slack of 50 us: too much here.
void nap(std::uint64_t ns) {
  const int slack = ::prctl(PR_GET_TIMERSLACK);
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  const timespec pause = {0, static_cast<long>(ns)};
  ::nanosleep(&pause, nullptr);
  if (slack > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
}

// Outside the gate: whoever closes it need not wait for us.
void wait_outside(ThreadSlot* slot, std::uint64_t ns) {
  const LaunchAhead ahead;
  slot->entered.store(0, std::memory_order_release);
  nap(std::clamp(ns, kShortestNapNs, kLongestNapNs));
  slot->entered.store(1, std::memory_order_relaxed);
  light_barrier();
  if (page().gate.load(std::memory_order_acquire) != 0) gate_detail::wait_until_open(slot);
}

}  // namespace

bool leash_launch(ThreadSlot* slot, CUstream stream, std::uint64_t key) {
  const Bypass own_work;
  if (capturing()) return false;
  CUcontext const context = current_context();
  if (context == nullptr) return false;
  const std::uint64_t began = now_ns();
  for (std::uint64_t now = began;; now = now_ns()) {
    const Step next = step(context, stream, key, now, now - began);
    if (next.wait_ns == 0) return next.is_followed;
    wait_outside(slot, next.wait_ns);
  }
}

void leash_launched(CUstream stream) {
  const Bypass own_work;
  CUcontext const context = current_context();
  const Guard guard(lock);
  Followed* const one = context != nullptr ? find(context, stream) : nullptr;
  if (one != nullptr && one->strand.is_full()) tie_off(*one);
}

void leash_let_go(CUcontext context) {
  const Guard guard(lock);
  for (Followed& one : followed) {
    if (one.context != context || context == nullptr || one.strand.in_flight_ns() == 0) continue;
    see_what_has_ended(one, now_ns());
    one.strand.clear();
  }
}

void leash_forget(CUcontext context) {
  const Guard guard(lock);
  for (Followed& one : followed) {
    if (one.context == context) one = Followed{};
  }
}

void leash_forget_all() {
  lock.reset();
  for (Followed& one : followed) one = Followed{};
  times = PieceTimes{};
  forget_launches_ahead();
}

}  // namespace fairlead::shim
