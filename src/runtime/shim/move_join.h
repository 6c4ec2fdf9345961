// One instance may be several processes (forks), each with device memory of its own; the core moves instances. A move of
// an instance is spread over its processes and their answers become one.
//
//   swap out 10 of {A: 8 movable, B: 4}   -> A: out 8, B: out 2;  A moved 8, B moved 2 (both done) -> moved 10, done
//   A dies before it answers              -> what it held is free anyway: its part counts as nothing to move
//
// Moves end in the order in which they began. Threads: not thread-safe. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "wire/shim_frames.h"

namespace fairlead {

enum class SwapDirection { kOut, kIn };

// What became of a move of an instance.
struct SwapOutcome {
  SwapDirection direction = SwapDirection::kOut;
  wire::MoveResult result = wire::MoveResult::kNothing;
  Bytes bytes{0};          // moved, by all processes
  Duration move_time{0};   // spent copying, summed: processes share a link
  Duration total_time{0};  // of the slowest
  bool operator==(const SwapOutcome&) const = default;
};

class MoveJoin {
 public:
  using Process = std::uint64_t;
  static constexpr std::uint64_t kEverything = UINT64_MAX;

  struct Candidate {
    Process process = 0;
    std::uint64_t movable = 0;  // bytes on the device that can leave
    std::uint64_t away = 0;     // bytes in host memory
  };
  struct Order {
    Process process = 0;
    SwapDirection direction = SwapDirection::kOut;
    std::uint64_t bytes = 0;  // out only
    bool operator==(const Order&) const = default;
  };

  // What is to be sent; empty: there is nothing to move, and take_finished() has the outcome already. The largest give
  // first, so that few processes stop; with bytes == kEverything all that hold anything give all.
  std::vector<Order> swap_out(std::uint64_t bytes, const std::vector<Candidate>& candidates);
  std::vector<Order> swap_in(const std::vector<Candidate>& candidates);

  // A process's answer to the oldest order it has not answered. False: it has none, or one of the other direction; the
  // process does not follow the protocol.
  bool answered(Process process, const wire::Moved& moved);
  // It will answer no more: kBusy when it lives on without its socket, kNothing when it is dead.
  void lost(Process process, wire::MoveResult result);

  std::optional<SwapOutcome> take_finished();
  bool idle() const { return moves_.empty(); }

 private:
  struct Move {
    SwapOutcome outcome;
    std::uint64_t asked = 0;
    std::size_t waiting = 0;  // for so many answers
    std::map<wire::MoveResult, int> results;
  };
  struct Pending {
    std::uint64_t move;
    SwapDirection direction;
  };

  std::vector<Order> begin(SwapDirection direction, std::uint64_t asked, std::vector<Order> orders);
  void count(std::uint64_t move, const wire::Moved& moved);
  bool has_pending(Process process) const { return pending_.contains(process); }

  std::uint64_t first_ = 0;  // number of moves_.front()
  std::deque<Move> moves_;
  std::map<Process, std::deque<Pending>> pending_;
};

}  // namespace fairlead
