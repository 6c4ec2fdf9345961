#include "runtime/shim/move_join.h"

#include <algorithm>

namespace fairlead {
namespace {

using wire::MoveResult;

// Of several answers: done when enough moved, or nobody had a reason; else what kept the others back.
MoveResult join(const std::map<MoveResult, int>& results, std::uint64_t moved, std::uint64_t asked) {
  const bool kept_back = results.contains(MoveResult::kPartly) || results.contains(MoveResult::kBusy) ||
                         results.contains(MoveResult::kNoRoom) || results.contains(MoveResult::kFailed);
  if (kept_back && moved < asked) {
    if (moved > 0 || results.contains(MoveResult::kPartly)) return MoveResult::kPartly;
    if (results.contains(MoveResult::kBusy)) return MoveResult::kBusy;
    return results.contains(MoveResult::kNoRoom) ? MoveResult::kNoRoom : MoveResult::kFailed;
  }
  return results.contains(MoveResult::kDone) || moved > 0 ? MoveResult::kDone : MoveResult::kNothing;
}

}  // namespace

std::vector<MoveJoin::Order> MoveJoin::begin(SwapDirection direction, std::uint64_t asked, std::vector<Order> orders) {
  Move move;
  move.outcome.direction = direction;
  move.asked = asked;
  move.waiting = orders.size();
  for (const Order& order : orders) pending_[order.process].push_back({first_ + moves_.size(), direction});
  moves_.push_back(std::move(move));
  return orders;
}

std::vector<MoveJoin::Order> MoveJoin::swap_out(std::uint64_t bytes, const std::vector<Candidate>& candidates) {
  std::vector<Candidate> largest = candidates;
  std::stable_sort(largest.begin(), largest.end(),
                   [](const Candidate& a, const Candidate& b) { return a.movable > b.movable; });
  std::vector<Order> orders;
  std::uint64_t left = bytes;
  for (const Candidate& candidate : largest) {
    // One with a move under way may have more, or less, by the time it comes to this one.
    if (candidate.movable == 0 && !has_pending(candidate.process)) continue;
    if (bytes == kEverything) {
      orders.push_back({candidate.process, SwapDirection::kOut, kEverything});
    } else if (const std::uint64_t share = std::min(left, candidate.movable); share > 0) {
      orders.push_back({candidate.process, SwapDirection::kOut, share});
      left -= share;
    }
  }
  return begin(SwapDirection::kOut, bytes, std::move(orders));
}

std::vector<MoveJoin::Order> MoveJoin::swap_in(const std::vector<Candidate>& candidates) {
  std::vector<Order> orders;
  for (const Candidate& candidate : candidates) {
    if (candidate.away == 0 && !has_pending(candidate.process)) continue;
    orders.push_back({candidate.process, SwapDirection::kIn, 0});
  }
  return begin(SwapDirection::kIn, kEverything, std::move(orders));
}

void MoveJoin::count(std::uint64_t number, const wire::Moved& moved) {
  Move& move = moves_[number - first_];
  --move.waiting;
  ++move.results[moved.result];
  move.outcome.bytes += Bytes(static_cast<std::int64_t>(moved.bytes));
  move.outcome.move_time += Duration(moved.move_ns);
  move.outcome.total_time = std::max(move.outcome.total_time, Duration(moved.total_ns));
}

bool MoveJoin::answered(Process process, const wire::Moved& moved) {
  const auto found = pending_.find(process);
  if (found == pending_.end()) return false;
  const Pending oldest = found->second.front();
  const auto expected = oldest.direction == SwapDirection::kOut ? wire::FrameKind::kSwapOut : wire::FrameKind::kSwapIn;
  if (moved.answered != expected) return false;
  found->second.pop_front();
  if (found->second.empty()) pending_.erase(found);
  count(oldest.move, moved);
  return true;
}

void MoveJoin::lost(Process process, MoveResult result) {
  const auto node = pending_.extract(process);
  if (node.empty()) return;
  for (const Pending& pending : node.mapped()) count(pending.move, {wire::FrameKind::kSwapOut, result, 0, 0, 0});
}

std::optional<SwapOutcome> MoveJoin::take_finished() {
  if (moves_.empty() || moves_.front().waiting > 0) return std::nullopt;
  const Move move = std::move(moves_.front());
  moves_.pop_front();
  ++first_;
  SwapOutcome outcome = move.outcome;
  outcome.result = join(move.results, static_cast<std::uint64_t>(outcome.bytes.count()), move.asked);
  return outcome;
}

}  // namespace fairlead
