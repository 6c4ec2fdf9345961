// Which instances share the SMs in the next frame: of those that have a claim, the set whose claims weigh most.
//
// Idea. A 0/1 knapsack over 100 % of the SMs. An instance weighs the square of its credit, taken in windows of its request: so long has it
// been without. The square lets one that is far behind outweigh several that are a little behind; that is maximum-weight scheduling
// (Tassiulas and Ephremides 1992), which serves every set of requests that any schedule can serve. Whoever has to be let in during the
// frame to be in time comes first.
//
// Who is open weighs twice. A change of the set costs room that waits for drains, so the set should change seldom when much is owed. A bonus
// in proportion does that: the more everybody lags, the longer the runs. The price is the theorem, which speaks of the heaviest set; what
// is delivered is measured instead (docs/explanation/pacer.md).
//
// Example: requests of 50 %, credits of 4, 3 and 3 ms, widths 100, 50 and 50. 8 x 8 < 6 x 6 + 6 x 6: the two side by side. At 5, 3 and 3 ms
// the wide one goes first, unless the two are open.
//
// Cost: instances x 100 comparisons, some microseconds for 48. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "decide/pacing/place_scheduler.h"

namespace fairlead {

struct FrameClaim {
  std::size_t who = 0;  // below kMostPlaces
  int width = 0;
  std::int64_t weight = 0;  // above 0; the sum over 64 claims fits
};

struct ClaimOf {
  Duration credit{0};       // above 0
  int request_percent = 1;  // 1-100
  bool is_open = false;
  bool is_urgent = false;
};
inline std::int64_t claim_weight(const ClaimOf& claim) {
  constexpr std::int64_t kUrgent = std::int64_t{1} << 56;  // more than 64 of the others; 64 of these fit
  constexpr std::int64_t kMost = std::int64_t{1} << 24;    // 16 s
  const std::int64_t us = std::min(claim.credit.count() / (10 * claim.request_percent) + 1, kMost);
  return us * us * (claim.is_open ? 2 : 1) + (claim.is_urgent ? kUrgent : 0);
}

// The chosen as a bit mask of `who`. `room`: 0 to 100.
inline std::uint64_t heaviest_set(const std::vector<FrameClaim>& claims, int room) {
  static_assert(kMostPlaces <= 64);
  std::array<std::int64_t, kWholeDevice + 1> best{};  // by room
  std::array<std::uint64_t, kWholeDevice + 1> set{};
  for (const FrameClaim& claim : claims) {
    for (int space = room; space >= claim.width; --space) {
      const auto to = static_cast<std::size_t>(space), from = static_cast<std::size_t>(space - claim.width);
      if (best[from] + claim.weight <= best[to]) continue;
      best[to] = best[from] + claim.weight;
      set[to] = set[from] | std::uint64_t{1} << claim.who;
    }
  }
  return set[static_cast<std::size_t>(room)];
}

// How long a frame is: kDrains times as long as drains take in the mean, within the bounds. A drain costs its room for as long as the
// slowest takes, once a frame.
class FrameLength {
 public:
  static constexpr int kDrains = 10;
  explicit FrameLength(const PlaceOptions& options) : options_(options) {}

  void drained_after(Duration past_its_end) {
    const Duration sample = std::clamp(past_its_end, Duration(0), options_.longest_frame);
    mean_ += (sample - mean_) / 32;
  }
  Duration length() const { return std::clamp(kDrains * mean_, options_.shortest_frame, options_.longest_frame); }

 private:
  const PlaceOptions options_;
  Duration mean_{0};
};

}  // namespace fairlead
