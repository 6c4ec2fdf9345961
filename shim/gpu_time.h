// GPU time: how long the device worked for this process, measured with events and without one event per launch.
//
// The rule: a context is busy from its first piece of work after an idle point until all its streams are done, whether or
// not the program waits for them. An event (the base) is recorded before that first piece; the end of a stream's work is
// known by another (its mark), behind the last of it. Busy times of contexts that overlap count once, a gap between the
// work of two streams counts as busy, idle time counts as nothing, and a launch on a stream that is known to be busy costs
// a comparison of two words.
//
//   launch A ──┐ base on A            launch B on another stream: no event
//   sync A ────┘ mark on A: busy from the base to the mark
//   ...          B is not waited for: the watch (work_watch.h) puts a mark on it once nothing new comes
//   B is done ── mark on B: busy on from the last mark, then idle
//
// A mark that is recorded while the work still runs is its exact end. Where the host learns of the end without one (an
// event, a query, a copy that waits, work shorter than a period of the watch) the end is the host's time of then: too late
// by what the host took, never too early. Nothing is recorded while a stream is under capture.
//
// Not seen: work that is put on a stream while another is under capture, and copies between host and device that wait. The node compares with what the device says.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/cuda_types.h"
#include "shim/gate.h"

namespace fairlead::shim {

namespace gpu_time_detail {
extern std::atomic<std::uint64_t> epoch;  // changes when a stream that was busy may be idle, and before each mark
extern std::atomic<std::uint32_t> busy_contexts;
void begin_work(CUstream stream);
void begin_work_elsewhere(CUstream stream);
bool begin_kernel(ThreadSlot* slot, CUstream stream, std::uint64_t key);
void look_for_idle();
}  // namespace gpu_time_detail

// Before work is put on `stream` (nullptr: the legacy default stream).
inline void note_work(CUstream stream) {
  const gate_detail::ThisThread& thread = gate_detail::this_thread;
  const std::uint64_t now = gpu_time_detail::epoch.load(std::memory_order_relaxed);
  if (thread.last_stream == stream && thread.last_epoch == now) return;
  gpu_time_detail::begin_work(stream);
}

// The same of a stream of any context; it is no default stream.
inline void note_work_elsewhere(CUstream stream) {
  gpu_time_detail::begin_work_elsewhere(stream);
}

// Before a kernel or graph is; the key says which (leash_book.h). True: leash_launched() is to follow it (leash.h).
template <typename Key>
inline bool note_kernel(ThreadSlot* slot, CUstream stream, Key key) {
  const gate_detail::ThisThread& thread = gate_detail::this_thread;
  const std::uint64_t now = gpu_time_detail::epoch.load(std::memory_order_relaxed);
  if (thread.last_stream == stream && thread.last_epoch == now) return false;
  return gpu_time_detail::begin_kernel(slot, stream, key());
}

// After the host has learnt that something is done.
inline void work_may_be_done() {
  if (gpu_time_detail::busy_contexts.load(std::memory_order_relaxed) != 0) gpu_time_detail::look_for_idle();
}

// Around a call that waits for a stream or for all of the current context.
class Synchronisation {
 public:
  explicit Synchronisation(CUstream stream) : stream_(stream), whole_context_(false) { begin(); }
  Synchronisation() { begin(); }
  void end(CUresult result);

 private:
  void begin();

  CUcontext context_ = nullptr;  // null: nothing to measure
  CUstream stream_ = nullptr;
  bool whole_context_ = true;
};

// Before a stream is destroyed: its work goes on.
void stream_destroyed(CUstream stream);
// Looks at the work that nobody has waited for yet. Called by the watch; returns how long until the next look.
std::uint64_t look_at_work();

// Held while a context is being destroyed, so that the watch does not use what is in it.
class ContextEnd {
 public:
  ContextEnd();
  ~ContextEnd();
  ContextEnd(const ContextEnd&) = delete;
  ContextEnd& operator=(const ContextEnd&) = delete;
};
void forget_work(CUcontext context);
// The calling thread's current context changed.
inline void context_changed() {
  gate_detail::this_thread.last_epoch = 0;
}
// In the child of a fork.
void forget_all_work();

}  // namespace fairlead::shim
