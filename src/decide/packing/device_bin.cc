#include "decide/packing/device_bin.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

// Per cent of a device's area that each instance on it counts for in the choice among devices. A device with many instances is seldom
// empty by chance, so those with few should be left to empty. Under churn on the profiler's grid, 1 % fewer devices than by area alone.
constexpr double kWorthOfCompany = 5;

constexpr double kRounding = 1e-3;  // per cent; coarser than that of the admission test, which has the last word

double area_of(const PacedShare& share) {
  return share.width_percent * share.request_percent / 100.0;
}

}  // namespace

std::string_view packing_rule_name(PackingRule rule) {
  switch (rule) {
    case PackingRule::kRectangles: return "rectangles";
    case PackingRule::kRebuilt: return "rebuilt";
    case PackingRule::kExact: return "exact";
  }
  return "";
}

Result<PackingRule> packing_rule(std::string_view name) {
  for (const PackingRule rule : {PackingRule::kRectangles, PackingRule::kRebuilt, PackingRule::kExact}) {
    if (packing_rule_name(rule) == name) return rule;
  }
  return fail(Errc::kInvalidArgument, "packing rule is \"{}\", it must be one of rectangles, rebuilt, exact", name);
}

DeviceBin::DeviceBin(PackingRule rule, const DeviceRoom& room, std::size_t most_free_rectangles, Admission& admission)
    : rule_(rule),
      room_(room),
      admission_(admission),
      free_(static_cast<int>(100 - room.reserve_percent), rule == PackingRule::kRebuilt ? 0 : most_free_rectangles) {}

std::vector<PacedShare> DeviceBin::shares(const std::vector<InstanceId>& without) const {
  std::vector<PacedShare> all;
  for (const PackedInstance& one : instances_) {
    if (std::find(without.begin(), without.end(), one.id) == without.end()) all.push_back(one.share);
  }
  return all;
}

std::optional<Lacking> DeviceBin::lacks_memory_or_clients(const std::vector<PacedShare>& shares) const {
  // Of a set without requests, the admission test looks at memory and clients alone.
  std::vector<PacedShare> without_time = shares;
  for (PacedShare& one : without_time) one.request_percent = 0;
  return admission_.ask(without_time).lacking;
}

std::optional<double> DeviceBin::misfit(const PacedShare& share, const std::vector<InstanceId>& without,
                                        const std::vector<PacedShare>& to_come) const {
  std::vector<PacedShare> all = shares(without);
  all.insert(all.end(), to_come.begin(), to_come.end());
  all.push_back(share);
  if (rule_ == PackingRule::kExact) {
    double area = 0;
    for (const PacedShare& one : all) area += area_of(one);
    // No schedule is shorter than the area, so most full devices are passed over without the linear program.
    if (area > 100 - room_.reserve_percent + kRounding || !admission_.ask(all).fits()) return std::nullopt;
    return 100 - area - kWorthOfCompany * static_cast<double>(all.size());
  }
  if (lacks_memory_or_clients(all)) return std::nullopt;
  if (share.request_percent == 0) return 100 - area_percent_;
  FL_CHECK(without.empty() && to_come.empty(), "{} instances are thought away, {} added, by rectangles", without.size(),
           to_come.size());
  const std::optional<int> left = free_.left_over(share.request_percent, share.width_percent);
  if (!left) return std::nullopt;
  return *left / 100.0;
}

Lacking DeviceBin::what_lacks(const PacedShare& share) const {
  std::vector<PacedShare> all = shares({});
  all.push_back(share);
  if (auto lacking = lacks_memory_or_clients(all)) return *lacking;
  if (rule_ == PackingRule::kExact) {
    const AdmissionAnswer answer = admission_.ask(all);
    FL_CHECK(answer.lacking, "a share of {} x {} fits and is refused", share.width_percent, share.request_percent);
    return *answer.lacking;
  }
  int largest = 0;
  for (const Rectangle& one : free_.free()) largest = std::max(largest, one.area());
  return {
      "rectangle", share.width_percent * share.request_percent / 100.0, largest / 100.0,
      fmt::format("no free rectangle holds {} % of the SMs for {} % of the time; the largest of {} is {:.1f} % of the "
                  "device",
                  share.width_percent, share.request_percent, free_.free().size(), largest / 100.0)};
}

void DeviceBin::put(const PackedInstance& instance) {
  Rectangle taken;
  if (rule_ != PackingRule::kExact && instance.share.request_percent > 0) {
    const auto placed = free_.place(instance.share.request_percent, instance.share.width_percent);
    FL_CHECK(placed, "no free rectangle for {} x {}", instance.share.request_percent, instance.share.width_percent);
    taken = *placed;
  }
  instances_.push_back(instance);
  rectangles_.push_back(taken);
  area_percent_ += area_of(instance.share);
}

PackedInstance DeviceBin::take(InstanceId id) {
  const auto found = std::find_if(instances_.begin(), instances_.end(), [id](const auto& one) { return one.id == id; });
  FL_CHECK(found != instances_.end(), "instance {} is not on the device", id.value());
  const auto at = found - instances_.begin();
  if (rectangles_[static_cast<std::size_t>(at)].area() > 0) free_.release(rectangles_[static_cast<std::size_t>(at)]);
  PackedInstance taken = *found;
  instances_.erase(found);
  rectangles_.erase(rectangles_.begin() + at);
  area_percent_ = 0;  // summed anew: differences would add up to a drift
  for (const PackedInstance& one : instances_) area_percent_ += area_of(one.share);
  return taken;
}

void DeviceBin::set_may_move(InstanceId id, bool may_move) {
  for (PackedInstance& one : instances_) {
    if (one.id == id) one.may_move = may_move;
  }
}

}  // namespace fairlead
