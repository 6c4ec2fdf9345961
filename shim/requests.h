// Questions to the node that are not answered yet. A thread opens one, sends it, and waits; the link's thread answers it
// or, when the connection is gone, all of them.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "shim/lock.h"
#include "wire/shim_frames.h"

namespace fairlead::shim {

class Requests {
 public:
  static constexpr int kMost = 64;  // at once; one more is refused

  // The number to send with the question; 0: too many are open.
  std::uint64_t open();
  // Waits for the answer and closes the question. False: none within `limit_ms`, or the connection is gone.
  bool wait(std::uint64_t request, wire::Frame* answer, int limit_ms);
  // The question is given up: it could not be sent.
  void cancel(std::uint64_t request);

  void answer(std::uint64_t request, const wire::Frame& frame);
  void fail_all();
  // In the child of a fork.
  void reset();

 private:
  enum class State : std::uint8_t { kFree, kOpen, kAnswered, kFailed };
  struct Question {
    State state = State::kFree;
    std::uint64_t request = 0;
    wire::Frame answer;
  };

  Question* find(std::uint64_t request) FL_REQUIRES(lock_);

  Lock lock_;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  std::uint64_t last_ FL_GUARDED_BY(lock_) = 0;
  Question questions_[kMost] FL_GUARDED_BY(lock_) = {};
};

}  // namespace fairlead::shim
