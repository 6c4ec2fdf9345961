// The two moves: who leaves, who returns, and the gate around them.
//
// The gate is closed from the first thing that leaves to the last that is back, so that no kernel meets an address with
// nothing behind it. New allocations that come meanwhile hold no contents; they are made without device memory and get
// it when everything returns.
#include "shim/clock.h"
#include "shim/gate.h"
#include "shim/memory/convoy.h"
#include "shim/memory/memory.h"
#include "shim/memory/quiesce.h"
#include "shim/memory/space.h"

namespace fairlead::shim::memory {
namespace {

using wire::MoveResult;

std::uint64_t later(std::uint64_t now, std::uint64_t by) {
  return by > UINT64_MAX - now ? UINT64_MAX : now + by;
}

// Regions that the event moves on, oldest first and heap by heap, until there are `bytes` of them.
Queue pick(Space& space, RegionEvent event, std::size_t bytes) {
  Queue queue;
  const Guard guard(space.lock());
  for (unsigned i = 0; i < Space::kMostContexts; ++i) {
    for (Region* region = space.heaps()[i].regions.first(); region != nullptr; region = region->next) {
      if (queue.bytes >= bytes) return queue;
      const RegionStep next = step(region->state, event);
      if (next.action == RegionAction::kRefuse) continue;
      region->state = next.state;
      queue.append(region);
    }
  }
  return queue;
}

bool any(Space& space, RegionEvent event) {
  const Guard guard(space.lock());
  for (unsigned i = 0; i < Space::kMostContexts; ++i) {
    for (Region* region = space.heaps()[i].regions.first(); region != nullptr; region = region->next) {
      if (step(region->state, event).action != RegionAction::kRefuse) return true;
    }
  }
  return false;
}

// Closes the gate and waits for all work. False: nothing has changed.
bool stand_still(Space& space, std::uint64_t begin, std::uint64_t deadline_ns) {
  if (!close_gate(wire::kGateMemory, deadline_ns)) return false;
  if (quiesce(space, later(begin, deadline_ns))) return true;
  open_gate(wire::kGateMemory);
  return false;
}

// Opens the gate if nothing is away. False: something is.
bool open_if_back(Space& space) {
  {
    const Guard guard(space.lock());
    for (unsigned i = 0; i < Space::kMostContexts; ++i) {
      for (Region* region = space.heaps()[i].regions.first(); region != nullptr; region = region->next) {
        if (region->state.residency != Residency::kResident) return false;
      }
    }
    space.set_away(false);
  }
  open_gate(wire::kGateMemory);
  return true;
}

MoveResult out_result(const Moves& moves, std::size_t moved, std::uint64_t wanted) {
  if (moved == 0) return moves.stopped ? MoveResult::kNoRoom : MoveResult::kNothing;
  return moves.stopped && moved < wanted ? MoveResult::kPartly : MoveResult::kDone;
}

}  // namespace

wire::Moved swap_out(std::uint64_t bytes, std::uint64_t deadline_ns) {
  const Bypass bypass;
  const std::uint64_t begin = now_ns();
  Space& all = space();
  wire::Moved answer = {wire::FrameKind::kSwapOut, MoveResult::kNothing, 0, 0, 0};
  if (all.backing() != nullptr && all.backing()->moves) {
    answer.bytes = all.drop_cached();
    Moves moves;
    if (answer.bytes < bytes && any(all, RegionEvent::kLeave)) {
      const bool was_away = all.is_away();
      if (!was_away && !stand_still(all, begin, deadline_ns)) {
        answer.result = MoveResult::kBusy;
        answer.total_ns = now_ns() - begin;
        return answer;
      }
      {
        const Guard guard(all.lock());
        all.set_away(true);
      }
      const std::uint64_t start = now_ns();
      moves = move_out(all, pick(all, RegionEvent::kLeave, bytes - answer.bytes));
      answer.move_ns = now_ns() - start;
      answer.bytes += moves.arrived;
      open_if_back(all);
    }
    answer.result = out_result(moves, answer.bytes, bytes);
  }
  answer.total_ns = now_ns() - begin;
  return answer;
}

wire::Moved swap_in() {
  const Bypass bypass;
  const std::uint64_t begin = now_ns();
  Space& all = space();
  wire::Moved answer = {wire::FrameKind::kSwapIn, MoveResult::kNothing, 0, 0, 0};
  if (!all.is_away()) {
    answer.total_ns = now_ns() - begin;
    return answer;
  }
  Moves moves;
  // Allocations that come while others return are away too.
  do {
    moves = move_in(all, pick(all, RegionEvent::kReturn, SIZE_MAX));
    answer.bytes += moves.arrived;
  } while (!moves.stopped && !open_if_back(all));
  answer.move_ns = answer.total_ns = now_ns() - begin;
  answer.result = !moves.stopped ? MoveResult::kDone : answer.bytes > 0 ? MoveResult::kPartly : MoveResult::kNoRoom;
  return answer;
}

}  // namespace fairlead::shim::memory
