#include "decide/residency/swap_policy.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

SwapCandidate candidate(std::uint64_t id, Claim claim, Duration last_used, Duration gap, Bytes movable = gib(1)) {
  return {InstanceId(id), claim, Instant(last_used), gap, movable};
}

TEST(LruSwap, LowestClaimThenLeastRecentlyUsed) {
  const LruSwap lru;
  EXPECT_EQ(lru.victim({candidate(1, Claim::kKept, 1s, 1s), candidate(2, Claim::kLeaving, 9s, 1s)}), 1u);
  EXPECT_EQ(lru.victim({candidate(1, Claim::kKept, 3s, 1s), candidate(2, Claim::kKept, 2s, 1s)}), 1u);
  EXPECT_EQ(lru.victim({candidate(2, Claim::kKept, 2s, 1s), candidate(1, Claim::kKept, 2s, 1s)}), 1u);
}

TEST(CostAwareSwap, FarthestNextUseThenLargest) {
  const CostAwareSwap cost;
  EXPECT_EQ(cost.victim({candidate(1, Claim::kKept, 1s, 2s), candidate(2, Claim::kKept, 9s, 60s)}), 1u);
  EXPECT_EQ(cost.victim({candidate(1, Claim::kKept, 1s, 2s, gib(1)), candidate(2, Claim::kKept, 9s, 2s, gib(3))}), 1u);
  EXPECT_EQ(cost.victim({candidate(1, Claim::kQueued, 1s, 60s), candidate(2, Claim::kKept, 9s, 2s)}), 1u);
}

}  // namespace
}  // namespace fairlead
