#include "base/fair_memory.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

std::pair<double, std::string> FairMemory::rank(const std::map<std::string, Owner>::iterator& owner) const {
  const auto part = [](std::size_t held, std::size_t limit) {
    return static_cast<double>(held) / static_cast<double>(limit);
  };
  const Owner& holds = owner->second;
  return {std::max(part(holds.items.size(), limits_.items), part(holds.bytes, limits_.bytes)), owner->first};
}

void FairMemory::add(const std::string& owner, Item item, std::size_t bytes) {
  FL_CHECK(!items_.contains(item), "item {} is there", item);
  const auto [place, is_new] = owners_.try_emplace(owner);
  if (!is_new) by_part_.erase(rank(place));
  place->second.items.insert(item);
  place->second.bytes += bytes;
  by_part_.insert(rank(place));
  items_.emplace(item, Kept{place, bytes});
  bytes_ += bytes;
}

void FairMemory::remove(Item item) {
  const auto found = items_.find(item);
  if (found == items_.end()) return;
  const auto [place, bytes] = found->second;
  by_part_.erase(rank(place));
  place->second.items.erase(item);
  place->second.bytes -= bytes;
  bytes_ -= bytes;
  items_.erase(found);
  if (place->second.items.empty()) {
    owners_.erase(place);
  } else {
    by_part_.insert(rank(place));
  }
}

std::optional<FairMemory::Item> FairMemory::to_forget() const {
  if (items_.size() <= limits_.items && bytes_ <= limits_.bytes) return std::nullopt;
  return *owners_.at(by_part_.rbegin()->second).items.begin();
}

}  // namespace fairlead
