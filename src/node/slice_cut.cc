#include "node/slice_cut.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/mig_tag.h"
#include "node/pipeline_placement.h"

namespace fairlead {
namespace {

constexpr double kLateWorth = 0.1;                   // of an answer after the objective, beside one in time
constexpr std::uint64_t kFirstPlanned = 1ULL << 62;  // ids of slices that are not there yet

// With media engines or graphics (+me, +gfx), or without (-me): the driver has a word on those that is not in its placements.
bool is_plain_profile(const std::string& name) {
  return name.find_first_of("+-") == std::string::npos;
}

// Those that are not plain stay where they are, and none is made.
MigGeometry geometry_of(const MigLayout& layout) {
  MigGeometry geometry{
      .gpu = layout.gpu_uuid, .compute_slices = 1, .memory_slices = 1, .profiles = std::vector<MigProfile>()};
  for (const MigLayout::Profile& one : layout.profiles) {
    const bool is_plain = is_plain_profile(one.name);
    geometry.compute_slices = std::max(geometry.compute_slices, one.compute);
    for (const int start : one.starts)
      geometry.memory_slices = std::max(geometry.memory_slices, start + one.memory_slices);
    geometry.profiles.push_back({.type = {.name = one.name, .compute = one.compute, .memory = one.memory, .times = {}},
                                 .memory_slices = one.memory_slices,
                                 .starts = is_plain ? one.starts : std::vector<int>(),
                                 .name = one.name});
  }
  return geometry;
}

const Device* find_device(const std::vector<Device>& devices, const std::string& uuid) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const Device& one) { return one.uuid == uuid; });
  return found == devices.end() ? nullptr : &*found;
}

// One GPU, and what is there beside it.
class GpuCut {
 public:
  GpuCut(const SliceCutQuestion& question, const MigLayout& layout)
      : question_(question), layout_(layout), geometry_(geometry_of(layout)) {
    for (const MigLayout::Instance& one : layout.instances) {
      const MigPlacement placement{.profile = one.profile, .start = one.start};
      devices_.push_back(may_go(one));
      slices_.push_back({.placement = placement, .is_idle = devices_.back() != nullptr});
    }
    const auto goes = [&](const Device& one) {
      return std::any_of(devices_.begin(), devices_.end(), [&](const Device* d) { return d && d->id == one.id; });
    };
    std::remove_copy_if(question.idle.begin(), question.idle.end(), std::back_inserter(idle_elsewhere_), goes);
    std::remove_copy_if(question.devices.begin(), question.devices.end(), std::back_inserter(left_), goes);
  }

  std::optional<SliceCut> plan() {
    const auto set = reslice(
        geometry_, slices_, [this](const std::vector<int>& counts) { return rate(counts); }, question_.terms);
    if (!set) return std::nullopt;
    SliceCut cut{.gpu_uuid = layout_.gpu_uuid, .destroy = {}, .devices = {}, .make = {}, .why = {}};
    std::vector<std::string> gone, made;
    std::vector<int> counts(geometry_.profiles.size());
    for (const MigPlacement& one : *set) {
      ++counts[one.profile];
      if (is_there(one)) continue;
      const MigLayout::Profile& profile = layout_.profiles[one.profile];
      cut.make.push_back({.profile = profile.id, .start = one.start, .memory_slices = profile.memory_slices});
      made.push_back(profile.name);
    }
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      if (!slices_[i].is_idle) --counts[slices_[i].placement.profile];
      if (std::find(set->begin(), set->end(), slices_[i].placement) != set->end()) continue;
      const MigLayout::Instance& ended = layout_.instances[i];
      cut.destroy.push_back({.id = ended.id,
                             .profile = layout_.profiles[ended.profile].id,
                             .start = ended.start,
                             .uuid = ended.uuids.front()});
      cut.devices.push_back(*devices_[i]);
      gone.push_back(layout_.profiles[slices_[i].placement.profile].name);
    }
    rate_ = rate(counts);
    cut.why =
        fmt::format("{} become {}", gone.empty() ? "free memory slices" : fmt::format("{}", fmt::join(gone, ", ")),
                    fmt::join(made, ", "));
    return cut;
  }
  double rate() const { return rate_; }  // after plan()

 private:
  // One compute instance that takes all of it, and it is idle.
  const Device* may_go(const MigLayout::Instance& one) const {
    const std::string& name = layout_.profiles[one.profile].name;
    if (!is_plain_profile(name) || one.uuids.size() != 1) return nullptr;
    const Device* const device = find_device(question_.idle, one.uuids[0]);
    return device != nullptr && profile_of(*device) == name ? device : nullptr;
  }
  bool is_there(const MigPlacement& one) const {
    return std::any_of(slices_.begin(), slices_.end(), [&](const MigSlice& slice) { return slice.placement == one; });
  }

  // What the pipeline answers per second with so many idle slices of each profile here; 0: others would lose the last that holds them.
  double rate(const std::vector<int>& counts) {
    const auto known = rates_.find(counts);
    if (known != rates_.end()) return known->second;
    return rates_[counts] = rate_anew(counts);
  }

  double rate_anew(const std::vector<int>& counts) const {
    std::vector<Device> planned;
    for (std::size_t profile = 0; profile < counts.size(); ++profile) {
      const MigLayout::Profile& is = layout_.profiles[profile];
      for (int i = 0; i < counts[profile]; ++i) {
        planned.push_back({.id = GpuId(kFirstPlanned + planned.size()),
                           .name = {},
                           .uuid = {},
                           .gpu_uuid = layout_.gpu_uuid,
                           .slice = Slice{.profile = is.name, .start = {}, .size = 0},
                           .memory = is.memory});
      }
    }
    std::vector<Device> free = idle_elsewhere_;
    free.insert(free.end(), planned.begin(), planned.end());
    const auto placed = place_pipeline(question_.dag, free);
    if (!placed) return 0;
    std::vector<Device> left = left_;
    left.insert(left.end(), planned.begin(), planned.end());
    std::erase_if(left, [used = placed->slices()](const Device& one) {
      return std::any_of(used.begin(), used.end(), [&](const Device& taken) { return taken.id == one.id; });
    });
    if (!leaves_enough(question_.devices, left, question_.others)) return 0;
    const Duration objective = question_.dag.objective;
    const bool is_late = objective > Duration(0) && placed->latency > objective;
    return placed->rate_per_s * (is_late ? kLateWorth : 1);
  }

  const SliceCutQuestion& question_;
  const MigLayout& layout_;
  const MigGeometry geometry_;
  std::vector<MigSlice> slices_;
  std::vector<const Device*> devices_;  // of slices_; null: not idle
  std::vector<Device> idle_elsewhere_, left_;
  std::map<std::vector<int>, double> rates_;
  double rate_ = 0;
};

}  // namespace

std::optional<SliceCut> plan_cut(const SliceCutQuestion& question) {
  std::optional<SliceCut> best;
  double best_rate = 0;
  for (const MigLayout& layout : question.layouts) {
    GpuCut gpu(question, layout);
    auto cut = gpu.plan();
    if (!cut || gpu.rate() <= best_rate) continue;
    best_rate = gpu.rate();
    best = std::move(cut);
  }
  return best;
}

}  // namespace fairlead
