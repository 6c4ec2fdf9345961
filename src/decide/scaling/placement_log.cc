#include "decide/scaling/placement_log.h"

#include <utility>

namespace fairlead {

void PlacementLog::note(PlacementEntry entry) {
  const auto known = last_.find(entry.function);
  if (known == last_.end() && entry.seats.empty()) return;
  if (known != last_.end()) {
    const PlacementEntry& last = known->second;
    const bool is_same_size = last.width_percent == entry.width_percent && last.quota_percent == entry.quota_percent;
    if (last.seats == entry.seats && (is_same_size || entry.seats.empty())) return;
  }
  if (entry.seats.empty()) {
    last_.erase(entry.function);
  } else {
    last_[entry.function] = entry;
  }
  entries_.push_back(std::move(entry));
  if (entries_.size() <= kMostEntries) return;
  PlacementEntry oldest = std::move(entries_.front());
  entries_.pop_front();
  if (oldest.seats.empty()) {
    before_.erase(oldest.function);
  } else {
    before_[oldest.function] = std::move(oldest);
  }
}

void PlacementLog::forget(const std::string& function) {
  before_.erase(function);
  last_.erase(function);
  std::erase_if(entries_, [&](const PlacementEntry& one) { return one.function == function; });
}

std::vector<PlacementEntry> PlacementLog::entries() const {
  std::vector<PlacementEntry> all;
  for (const auto& [function, entry] : before_) all.push_back(entry);
  all.insert(all.end(), entries_.begin(), entries_.end());
  return all;
}

}  // namespace fairlead
