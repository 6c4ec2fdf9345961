// What goes out on a connection: the bytes that nghttp2 has made and the socket has not taken, and how many of answers nghttp2 has not
// taken yet, because their client lets nobody send more.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace fairlead::net {

class GrpcOutput {
 public:
  enum class State {
    kIdle,
    kPosted,   // goes on from the event loop, once others had their turns
    kBlocked,  // the socket takes nothing
  };

  // ---- the bytes made
  std::string_view rest() const { return std::string_view(made_).substr(sent_); }
  bool is_full(std::size_t most) const { return made_.size() >= most; }
  void add(std::string_view bytes) { made_ += bytes; }
  void sent(std::size_t count) {
    sent_ += count;
    if (sent_ < made_.size()) return;
    made_.clear();
    sent_ = 0;
  }

  State state() const { return state_; }
  void set_state(State state, Instant now) {
    state_ = state;
    blocked_since_ = now;
  }

  // ---- the answers that wait
  std::size_t waiting() const { return waiting_; }
  void wait(std::size_t bytes, Instant now) {
    if (waiting_ == 0) moved_at_ = now;
    waiting_ += bytes;
  }
  void moved(std::size_t bytes, Instant now) {
    waiting_ -= bytes;
    moved_at_ = now;
  }
  void gave_up(std::size_t bytes) { waiting_ -= bytes; }

  // That nothing has moved for longer than that, and something wants to.
  bool is_stuck(Instant now, Duration patience) const {
    return (waiting_ > 0 && now - moved_at_ > patience) ||
           (state_ == State::kBlocked && now - blocked_since_ > patience);
  }

 private:
  std::string made_;
  std::size_t sent_ = 0;  // of what was made
  State state_ = State::kIdle;
  Instant blocked_since_{};
  std::size_t waiting_ = 0;  // bytes
  Instant moved_at_{};       // when a part of an answer last went
};

}  // namespace fairlead::net
