#include "decide/residency/swap_policy.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead {
namespace {

template <typename Key>
std::size_t least(const std::vector<SwapCandidate>& candidates, Key key) {
  FL_CHECK(!candidates.empty());
  const auto found = std::min_element(candidates.begin(), candidates.end(),
                                      [&](const SwapCandidate& a, const SwapCandidate& b) { return key(a) < key(b); });
  return static_cast<std::size_t>(found - candidates.begin());
}

}  // namespace

std::size_t LruSwap::victim(const std::vector<SwapCandidate>& candidates) const {
  return least(candidates, [](const SwapCandidate& c) { return std::tuple(c.claim, c.last_used, c.instance); });
}

std::size_t CostAwareSwap::victim(const std::vector<SwapCandidate>& candidates) const {
  return least(candidates, [](const SwapCandidate& c) {
    const bool queued = c.claim == Claim::kQueued;  // its next use is not a matter of probability
    return std::tuple(queued, -c.expected_gap, Bytes(0) - c.movable, c.last_used, c.instance);
  });
}

}  // namespace fairlead
