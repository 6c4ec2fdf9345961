#include "softgpu/device/time/fair_share.h"

#include <algorithm>
#include <numeric>

namespace softgpu {

std::vector<std::uint64_t> fair_shares(std::uint64_t total, std::span<const std::uint64_t> demands) {
  std::vector<std::size_t> order(demands.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return demands[a] < demands[b]; });
  std::vector<std::uint64_t> shares(demands.size());
  std::size_t waiting = demands.size();
  for (const std::size_t who : order) {
    shares[who] = std::min(demands[who], total / waiting--);
    total -= shares[who];
  }
  return shares;
}

std::vector<std::uint64_t> grant_milli_sms(std::uint64_t sm_count, std::span<const SmDemand> demands) {
  std::vector<std::uint64_t> grants(demands.size());
  std::uint64_t left = sm_count * 1000;
  for (const bool below_normal : {false, true}) {
    std::vector<std::uint64_t> asked;
    for (const SmDemand& demand : demands) {
      asked.push_back(demand.below_normal == below_normal ? std::min(demand.share, demand.wanted) * 1000 : 0);
    }
    const auto shares = fair_shares(left, asked);
    for (std::size_t i = 0; i < grants.size(); ++i) {
      grants[i] += shares[i];
      left -= shares[i];
    }
  }
  return grants;
}

}  // namespace softgpu
