#include "node/spare_starts.h"

#include <algorithm>
#include <map>

namespace fairlead {
namespace {

constexpr Bytes kContext = mib(300);    // that a parked process keeps on its device
constexpr double kSparesMemory = 0.1;   // of a device's memory, at most, in contexts of spares
constexpr std::size_t kSparesPool = 4;  // and that part of its pool

// On the device with the fewest instances of the function.
AllowedStarts spare_start(const std::vector<InstanceView>& there, const std::vector<GpuId>& with_room) {
  std::map<GpuId, std::pair<std::size_t, std::size_t>> counts;  // all, parked
  for (const GpuId gpu : with_room) counts[gpu] = {};
  for (const InstanceView& one : there) {
    const auto count = counts.find(one.gpu);
    if (count == counts.end()) continue;
    ++count->second.first;
    count->second.second += one.entitled ? 0 : 1;
  }
  const auto fewest = std::min_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  return {.allowed = fewest->second.second + 1, .spare_on = fewest->first, .refused = ""};
}

}  // namespace

AllowedStarts allowed_starts(const ScalingDecision& decision, const ScalerView& view,
                             const std::vector<InstanceView>& there, const SpareRoom& room) {
  std::size_t starts = 0, firsts = 0, returns = 0;
  for (const ScalingStep& step : decision.steps) {
    starts += step.verb == ScalingVerb::kStart || step.verb == ScalingVerb::kStartParked ? 1 : 0;
    firsts += step.verb == ScalingVerb::kStart ? 1 : 0;
    returns += step.verb == ScalingVerb::kReturn ? 1 : 0;
  }
  const std::size_t have = view.instances.size(), needed = static_cast<std::size_t>(std::max(0, decision.needed));
  const std::size_t now = std::min(starts, std::max(firsts, needed - std::min(needed, have)));
  if (now > 0 || returns > 0 || starts == 0) return {.allowed = now, .spare_on = {}, .refused = ""};
  const bool one_starts = std::any_of(view.instances.begin(), view.instances.end(),
                                      [](const auto& one) { return one.stage == InstanceStage::kStarting; });
  if (one_starts || view.waiting > 0) return {};
  const double by_memory =
      kSparesMemory * static_cast<double>(room.device_memory.count()) / static_cast<double>(kContext.count());
  const std::size_t most = room.serving * std::min(room.pool / kSparesPool, static_cast<std::size_t>(by_memory));
  if (room.parked >= most || room.with_room.empty()) {
    return {.allowed = 0,
            .spare_on = {},
            .refused =
                fmt::format("no more spares start: {} parked instances are the most on {} GPUs", most, room.serving)};
  }
  return room.is_due ? spare_start(there, room.with_room) : AllowedStarts();
}

}  // namespace fairlead
