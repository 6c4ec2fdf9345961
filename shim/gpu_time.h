// GPU time: how long the device worked for this process, measured with events and without one event per launch.
//
// The rule: a context is busy from its first piece of work after an idle point to the next point at which all its streams
// are known to be done. Busy time is measured as a chain of marks (events): one recorded before that first piece, one at
// every synchronisation; what lies between two marks is added once. So streams that overlap count once (the union of
// their busy times, with a gap between two streams' work counted as busy), idle time counts as nothing, and a launch on a
// stream that is known to be busy costs a comparison of two words.
//
//   launch A ──┐ mark 0 on A         launch B on another stream: no mark
//   sync A ────┘ mark 1: + (1 - 0)   B not done yet: still busy
//   sync B ───── mark 2: + (2 - 1)   all done: idle
//
// Where the host learns that a stream is done without having waited for it (an event, a query, a copy that waits), the
// mark is recorded then, at the cost of the host's delay. Nothing is recorded while a stream is under capture. Work
// that is never waited for is counted at the next synchronisation; when its stream is destroyed first, not at all.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/cuda_types.h"
#include "shim/gate.h"

namespace fairlead::shim {

namespace gpu_time_detail {
extern std::atomic<std::uint64_t> epoch;  // changes when a stream that was busy is known to be idle
extern std::atomic<std::uint32_t> busy_contexts;
void begin_work(CUstream stream);
void look_for_idle();
}  // namespace gpu_time_detail

// Before work is put on `stream` (nullptr: the legacy default stream).
inline void note_work(CUstream stream) {
  const gate_detail::ThisThread& thread = gate_detail::this_thread;
  const std::uint64_t now = gpu_time_detail::epoch.load(std::memory_order_relaxed);
  if (thread.last_stream == stream && thread.last_epoch == now) return;
  gpu_time_detail::begin_work(stream);
}

// After the host has learnt that something is done.
inline void work_may_be_done() {
  if (gpu_time_detail::busy_contexts.load(std::memory_order_relaxed) != 0) gpu_time_detail::look_for_idle();
}

// Around a call that waits for a stream or for all of the current context.
class Synchronisation {
 public:
  explicit Synchronisation(CUstream stream) { begin(&stream); }
  Synchronisation() { begin(nullptr); }
  void end(CUresult result);

 private:
  void begin(const CUstream* stream);

  CUcontext context_ = nullptr;  // null: nothing to measure, or another thread measures
  CUstream stream_ = nullptr;
  bool whole_context_ = false;
  bool marked_ = false;
};

void stream_destroyed(CUstream stream);
void forget_work(CUcontext context);
// The calling thread's current context changed.
inline void context_changed() {
  gate_detail::this_thread.last_epoch = 0;
}
// In the child of a fork.
void forget_all_work();

}  // namespace fairlead::shim
