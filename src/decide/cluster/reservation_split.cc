#include "decide/cluster/reservation_split.h"

#include <algorithm>
#include <numeric>

namespace fairlead {

std::vector<std::uint64_t> in_proportion(std::uint64_t whole, const std::vector<std::uint64_t>& weights) {
  using Wide = unsigned __int128;
  const std::size_t count = weights.size();
  Wide sum = 0;
  for (const std::uint64_t weight : weights) sum += weight;
  const bool are_equal = sum == 0;
  if (are_equal) sum = count;
  std::vector<std::uint64_t> parts(count);
  std::vector<Wide> rests(count);
  std::uint64_t left = whole;
  for (std::size_t i = 0; i < count; ++i) {
    const Wide product = Wide(whole) * (are_equal ? 1 : weights[i]);
    parts[i] = static_cast<std::uint64_t>(product / sum);
    rests[i] = product % sum;
    left -= parts[i];
  }
  std::vector<std::size_t> by_rest(count);
  std::iota(by_rest.begin(), by_rest.end(), std::size_t{0});
  std::stable_sort(by_rest.begin(), by_rest.end(), [&](std::size_t a, std::size_t b) { return rests[a] > rests[b]; });
  for (std::size_t i = 0; i < left; ++i) ++parts[by_rest[i]];
  return parts;
}

void ReservationSplit::join(NodeId node) {
  parts_.try_emplace(node);
}

void ReservationSplit::lose(NodeId node) {
  if (parts_.erase(node) == 0 || parts_.empty()) return;
  std::vector<std::uint64_t> weights;
  for (const auto& [id, part] : parts_) weights.push_back(part.aim);
  const auto aims = in_proportion(reserved_, weights);
  std::size_t i = 0;
  for (auto& [id, part] : parts_) part.aim = aims[i++];
  grant();
}

void ReservationSplit::applies(NodeId node, std::uint64_t number) {
  const auto found = parts_.find(node);
  if (found == parts_.end() || number != found->second.number) return;
  found->second.held = found->second.told;
  grant();
}

void ReservationSplit::aim(const std::map<NodeId, std::uint64_t>& arrivals) {
  if (parts_.empty()) return;
  std::vector<std::uint64_t> weights;
  for (const auto& [node, part] : parts_) {
    const auto found = arrivals.find(node);
    weights.push_back(found == arrivals.end() ? 0 : found->second);
  }
  const auto aims = in_proportion(reserved_, weights);
  std::size_t i = 0;
  for (auto& [node, part] : parts_) {
    part.aim = aims[i++];
    tell(part, std::min(part.told, part.aim));
  }
  grant();
}

void ReservationSplit::tell(Part& part, std::uint64_t share) {
  if (share == part.told) return;
  part.told = share;
  ++part.number;
}

void ReservationSplit::grant() {
  std::uint64_t free = reserved_ - held();
  for (auto& [node, part] : parts_) {
    if (part.told < part.aim &&
        part.held > part.told) {  // it was told to shrink, and is to grow again: it has that already
      tell(part, std::min(part.aim, part.held));
    }
    const std::uint64_t more = std::min(free, part.aim - part.told);
    if (more == 0 || part.held > part.told) continue;
    tell(part, part.told + more);
    part.held = part.told;
    free -= more;
  }
}

ReservationSplit::Told ReservationSplit::told(NodeId node) const {
  const auto found = parts_.find(node);
  return found == parts_.end() ? Told{} : Told{found->second.told, found->second.number};
}

std::uint64_t ReservationSplit::held() const {
  std::uint64_t sum = 0;
  for (const auto& [node, part] : parts_) sum += part.held;
  return sum;
}

std::uint64_t ReservationSplit::told_in_all() const {
  std::uint64_t sum = 0;
  for (const auto& [node, part] : parts_) sum += part.told;
  return sum;
}

}  // namespace fairlead
