#include "runtime/shim/cap_shares.h"

#include <algorithm>

namespace fairlead {

std::vector<std::uint64_t> cap_shares(std::uint64_t cap, const std::vector<std::uint64_t>& held) {
  std::uint64_t left = cap;
  for (const std::uint64_t bytes : held) left -= std::min(left, bytes);
  std::vector<std::uint64_t> shares;
  shares.reserve(held.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::uint64_t part = left / (held.size() - i);
    left -= part;
    shares.push_back(std::max<std::uint64_t>(std::min(held[i], cap) + part, 1));
  }
  return shares;
}

}  // namespace fairlead
