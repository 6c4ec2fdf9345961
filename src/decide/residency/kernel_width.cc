#include "decide/residency/kernel_width.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fairlead {
namespace {

constexpr int kAll = 100;  // per cent

}  // namespace

std::uint64_t most_blocks_at_once(const std::vector<std::vector<std::uint32_t>>& before,
                                  const std::vector<std::uint64_t>& blocks) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint64_t> chains;                      // of each, the most blocks that one of its kernels has
  std::vector<std::uint32_t> ends(before.size(), kNone);  // the chain that kernel k is the last of
  for (std::uint32_t kernel = 0; kernel < before.size(); ++kernel) {
    const auto is_last = [&](std::uint32_t earlier) { return ends[earlier] != kNone; };
    const auto follows = std::ranges::find_if(before[kernel], is_last);
    auto chain = static_cast<std::uint32_t>(chains.size());
    if (follows == before[kernel].end()) {
      chains.push_back(0);
    } else {
      chain = std::exchange(ends[*follows], kNone);
    }
    chains[chain] = std::max(chains[chain], blocks[kernel]);
    ends[kernel] = chain;
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t most : chains) sum += std::min(most, std::numeric_limits<std::uint64_t>::max() - sum);
  return sum;
}

int width_percent(std::uint64_t blocks, std::uint64_t sms) {
  if (blocks >= sms) return kAll;
  return std::max(1, static_cast<int>((blocks * kAll + sms - 1) / sms));
}

}  // namespace fairlead
