#include "runtime/shim/staging_budget.h"

#include <algorithm>

#include "base/check.h"
#include "wire/shim_frames.h"

namespace fairlead {

using wire::kStagingGranule;

StagingBudget::StagingBudget(Bytes budget)
    : total_(static_cast<std::uint64_t>(std::max<std::int64_t>(budget.count(), 0)) / kStagingGranule) {}

Bytes StagingBudget::bytes_of(std::uint64_t granules) {
  return Bytes(static_cast<std::int64_t>(granules * kStagingGranule));
}

Bytes StagingBudget::granted(Process process) const {
  std::uint64_t sum = 0;
  const auto arena = arenas_.find(process);
  if (arena == arenas_.end()) return Bytes(0);
  for (const auto& [first, count] : arena->second.grants) sum += count;
  return bytes_of(sum);
}

Bytes StagingBudget::granted() const {
  return bytes_of(used_ - kept_in_all());
}

std::uint64_t StagingBudget::kept_in_all() const {
  std::uint64_t kept = 0;
  for (const auto& [process, arena] : arenas_) kept += arena.kept;
  return kept;
}

std::optional<std::uint64_t> StagingBudget::find_free(const Arena& arena, std::uint64_t count) const {
  std::uint64_t start = 0;
  for (const auto& [first, granted] : arena.grants) {
    if (first - start >= count) return start;
    start = first + granted;
  }
  if (total_ - start >= count) return start;
  return std::nullopt;
}

std::optional<StagingBudget::Grant> StagingBudget::allocate(Process process, std::uint64_t bytes) {
  FL_CHECK(bytes > 0 && bytes % kStagingGranule == 0, "{} bytes", bytes);
  const std::uint64_t count = bytes / kStagingGranule;
  if (count > total_ - (used_ - kept_in_all())) return std::nullopt;
  Arena& arena = arenas_[process];
  const auto first = find_free(arena, count);
  if (!first) return std::nullopt;
  if (arena.granules.size() < *first + count) arena.granules.resize(*first + count, Granule::kEmpty);

  const auto begin = arena.granules.begin() + static_cast<std::ptrdiff_t>(*first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  const auto reused = static_cast<std::uint64_t>(std::count(begin, end, Granule::kKept));
  const std::uint64_t fresh = count - reused;
  Grant grant{{process, *first * kStagingGranule, bytes}, fresh > 0, {}};
  if (used_ + fresh > total_) drop_kept(used_ + fresh - total_, process, *first, count, grant.dropped);
  std::fill(begin, end, Granule::kGranted);
  arena.kept -= reused;
  arena.grants[*first] = count;
  arena.last_used = ++clock_;
  used_ += fresh;
  return grant;
}

// The caller made sure that so many are kept outside of the spared range.
void StagingBudget::drop_kept(std::uint64_t count, Process asking, std::uint64_t spare_first, std::uint64_t spare_count,
                              std::vector<Range>& dropped) {
  std::vector<std::pair<std::uint64_t, Process>> by_age;
  for (const auto& [process, arena] : arenas_) {
    if (arena.kept > 0) by_age.emplace_back(arena.last_used, process);
  }
  std::sort(by_age.begin(), by_age.end());
  for (const auto& [age, process] : by_age) {
    Arena& arena = arenas_.at(process);
    for (std::uint64_t i = arena.granules.size(); i-- > 0 && count > 0;) {
      const bool spared = process == asking && i >= spare_first && i < spare_first + spare_count;
      if (arena.granules[i] != Granule::kKept || spared) continue;
      arena.granules[i] = Granule::kEmpty;
      --arena.kept;
      --used_;
      --count;
      const std::uint64_t offset = i * kStagingGranule;
      if (!dropped.empty() && dropped.back().process == process && dropped.back().offset == offset + kStagingGranule) {
        dropped.back().offset = offset;
        dropped.back().bytes += kStagingGranule;
      } else {
        dropped.push_back({process, offset, kStagingGranule});
      }
    }
  }
  FL_CHECK(count == 0, "{} granules short", count);
}

bool StagingBudget::give_back(Process process, std::uint64_t offset, std::uint64_t bytes) {
  const auto found = arenas_.find(process);
  if (found == arenas_.end() || offset % kStagingGranule != 0) return false;
  Arena& arena = found->second;
  const auto grant = arena.grants.find(offset / kStagingGranule);
  if (grant == arena.grants.end() || grant->second * kStagingGranule != bytes) return false;
  const auto begin = arena.granules.begin() + static_cast<std::ptrdiff_t>(grant->first);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(grant->second), Granule::kKept);
  arena.kept += grant->second;
  arena.last_used = ++clock_;
  arena.grants.erase(grant);
  return true;
}

void StagingBudget::remove(Process process) {
  const auto found = arenas_.find(process);
  if (found == arenas_.end()) return;
  used_ -= found->second.kept;
  for (const auto& [first, count] : found->second.grants) used_ -= count;
  arenas_.erase(found);
}

}  // namespace fairlead
