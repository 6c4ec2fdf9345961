#include "node/pipeline_placement.h"

#include <algorithm>
#include <map>

#include "decide/pipeline/pipeline_model.h"

namespace fairlead {
namespace {

int compute_of(const std::string& type) {
  return type.empty() || type[0] < '1' || type[0] > '9' ? 7 : type[0] - '0';
}

std::vector<Device> smallest_first(std::vector<Device> free) {
  std::stable_sort(free.begin(), free.end(), [](const Device& a, const Device& b) {
    return std::pair(compute_of(slice_type(a)), a.memory) < std::pair(compute_of(slice_type(b)), b.memory);
  });
  return free;
}

// One type for each pair of compute slices and memory: "1g" with double memory is another.
struct Types {
  std::vector<SliceType> all;
  std::vector<std::size_t> of_device;
};

Types types_of(const std::vector<Device>& devices) {
  Types types;
  for (const Device& device : devices) {
    const std::string name = slice_type(device);
    const auto is_it = [&](const SliceType& type) { return type.times == name && type.memory == device.memory; };
    auto known = std::find_if(types.all.begin(), types.all.end(), is_it);
    if (known == types.all.end()) {
      const bool first = std::none_of(types.all.begin(), types.all.end(), [&](const SliceType& t) { return t.times == name; });
      types.all.push_back({.name = first ? name : name + "+", .compute = compute_of(name), .memory = device.memory, .times = name});
      known = types.all.end() - 1;
    }
    types.of_device.push_back(static_cast<std::size_t>(known - types.all.begin()));
  }
  return types;
}

std::string describe(const PipelinePlacement& placement, const Dag& dag) {
  std::string text;
  for (const PipelinePlacement::Stage& stage : placement.stages) {
    std::vector<std::string> names;
    for (const std::size_t component : stage.components) names.push_back(dag.components[component].name);
    text += fmt::format("{}[{}] on {}", text.empty() ? "" : " ", fmt::join(names, ", "), slice_type(stage.device));
  }
  return text;
}

struct Fit {
  std::optional<PipelinePlacement> placement;
  std::string why_not;
};

// Each stage on the least free slice where it fits, the largest stage first.
Fit fit(const PipelineModel& model, const Partition& partition, const std::vector<Device>& free, const Types& types) {
  Fit found;
  std::vector<std::size_t> order(partition.stages.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return partition.stages[a].memory > partition.stages[b].memory;
  });
  std::vector<bool> taken(free.size(), false);
  PipelinePlacement placement;
  placement.stages.resize(partition.stages.size());
  for (const std::size_t s : order) {
    const StageShape& stage = partition.stages[s];
    std::size_t at = 0;
    while (at < free.size() && (taken[at] || !stage.fits(types.of_device[at]))) ++at;
    if (at == free.size()) {
      std::vector<std::string> names;
      for (const std::size_t component : stage.components) names.push_back(model.dag().components[component].name);
      found.why_not = fmt::format("[{}] needs {:.0f} MiB, and no free slice that is left has them", fmt::join(names, ", "),
                                  stage.memory.mib());
      return found;
    }
    taken[at] = true;
    placement.stages[s] = {free[at], stage.components};
    placement.latency += stage.hop + *stage.times[types.of_device[at]];
  }
  found.placement = std::move(placement);
  return found;
}

Result<PipelinePlacement> first_fit(const Dag& dag, std::vector<Device> free, std::size_t most_stages, Duration at_most) {
  free = smallest_first(std::move(free));
  if (free.empty()) return fail(Errc::kResourceExhausted, "no slice is free");
  const Types types = types_of(free);
  if (types.all.size() > kMaxSliceTypes) return fail(Errc::kResourceExhausted, "slices of more than {} types", kMaxSliceTypes);
  const PipelineModel model(dag, types.all);
  std::vector<std::string> passed;
  for (const Partition& partition : model.partitions()) {
    if (partition.stages.size() > most_stages) continue;
    Fit found = fit(model, partition, free, types);
    if (found.placement && found.placement->latency <= at_most) {
      found.placement->why = describe(*found.placement, dag);
      if (!passed.empty()) found.placement->why += "; passed over: " + fmt::format("{}", fmt::join(passed, "; "));
      return *std::move(found.placement);
    }
    if (passed.size() < 3) {
      passed.push_back(partition.text(dag) + ": " + (found.placement ? "slower than it may be" : found.why_not));
    }
  }
  return fail(Errc::kResourceExhausted, "{}", passed.empty() ? "no partition" : fmt::format("{}", fmt::join(passed, "; ")));
}

}  // namespace

std::string slice_type(const Device& device) {
  if (!device.slice) return "7g";
  return device.slice->profile.substr(0, device.slice->profile.find('.'));
}

Result<PipelinePlacement> place_pipeline(const Dag& dag, const std::vector<Device>& free) {
  if (dag.objective > Duration(0)) {
    if (auto in_time = first_fit(dag, free, kMaxComponents, dag.objective)) return in_time;
  }
  return first_fit(dag, free, kMaxComponents, Duration::max());
}

Result<PipelinePlacement> place_whole(const Dag& dag, const std::vector<Device>& free, Duration at_most) {
  return first_fit(dag, free, 1, at_most);
}

}  // namespace fairlead
