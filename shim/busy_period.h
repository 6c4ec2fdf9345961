// What gpu_time.cc knows of one context: since when it is busy, and with what.
//
// Threads: guarded by the lock of gpu_time.cc.
#pragma once

#include <cstdint>

#include "abi/cuda_types.h"
#include "shim/gate.h"

namespace fairlead::shim {

// The work of one stream.
struct StreamWork {
  CUstream stream = nullptr;           // null: the legacy default stream
  const ThreadSlot* thread = nullptr;  // that put work there last; of CU_STREAM_PER_THREAD part of the name
  CUevent mark = nullptr;              // made once, used again by whatever stream takes this place
  bool marked = false;                 // `mark` is behind all of the work
  bool quiet = false;                  // nothing was put there since the watch looked last
  bool awaited = false;                // nothing was put there since a thread began to wait for it
  bool destroyed = false;              // the stream is gone; `marked`
};

class BusyPeriod {
 public:
  static constexpr int kMostStreams = 128;  // busy at once; beyond, only waiting for the whole context ends a busy time

  CUcontext context = nullptr;

  bool busy() const { return busy_; }
  std::uint64_t age_ns(std::uint64_t now) const { return now - begin_ns_; }
  int count() const { return count_; }
  StreamWork& work(int index) { return works_[index]; }
  bool overflowed() const { return more_; }
  bool all_quiet() const;

  // REQUIRES for all that follow: the context is current.
  // Before work is put on the stream by this thread.
  void put(CUstream stream, const ThreadSlot* thread);
  int find(CUstream stream, const ThreadSlot* thread) const;  // -1: not there
  // Records the mark behind the work; false: this thread cannot. REQUIRES: the epoch has changed since the last launch
  // that is not known here.
  bool mark(int index, const ThreadSlot* thread);
  // The work is over, and busy time is counted to its end: to its mark, or else to now.
  void end_of(int index);
  void remove(int index);
  void count_until(std::uint64_t end_ns);  // from the base; what is counted already does not count again
  void become_idle();
  // All work that was not followed, because it did not fit, is over.
  void forget_overflow() { more_ = false; }
  // In the child of a fork.
  static void forget_counted();

  // The stream's handle for this thread; of another's CU_STREAM_PER_THREAD the legacy stream, which waits for it.
  static CUstream handle(const StreamWork& work, const ThreadSlot* thread);

 private:
  bool start(CUstream stream);

  CUevent base_ = nullptr;
  std::uint64_t base_ns_ = 0;   // the host's time of it
  std::uint64_t begin_ns_ = 0;  // of the busy time
  StreamWork works_[kMostStreams] = {};
  int count_ = 0;
  bool more_ = false;  // than fit in `works_`
  bool busy_ = false;
};

}  // namespace fairlead::shim
