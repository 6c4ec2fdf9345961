#include "node/pipeline_placement.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "decide/pipeline/planner.h"
#include "model/mig_tag.h"

namespace fairlead {
namespace {

constexpr std::string_view kOneSliceForEachStage = "exact", kWholeFunction = "esg";  // planner.h
constexpr std::size_t kMostTold = 3;                                                 // partitions that were passed over

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
      const bool first =
          std::none_of(types.all.begin(), types.all.end(), [&](const SliceType& t) { return t.times == name; });
      types.all.push_back(
          {.name = first ? name : name + "+", .compute = compute_of(name), .memory = device.memory, .times = name});
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
    const std::string where = stage.has_slice() ? slice_type(stage.device) : "the host";
    text += fmt::format("{}[{}] on {}", text.empty() ? "" : " ", fmt::join(names, ", "), where);
  }
  return text;
}

// Slices of a type are alike: the first that is left.
PipelinePlacement on_devices(const PipelineModel& model, const PipelinePlan& plan, const std::vector<Device>& free,
                             const Types& types) {
  PipelinePlacement placement{.stages = {}, .latency = plan.latency, .rate_per_s = plan.rate_per_s, .why = {}};
  std::vector<bool> taken(free.size(), false);
  const Partition& partition = model.partitions()[plan.partition];
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    std::size_t at = 0;
    if (!partition.stages[s].needs_slice) {
      placement.stages.push_back({.device = {}, .components = partition.stages[s].components});
      continue;
    }
    while (taken[at] || types.of_device[at] != plan.slices[s].front()) ++at;
    taken[at] = true;
    placement.stages.push_back({free[at], partition.stages[s].components});
  }
  return placement;
}

std::string passed_over(const PipelineModel& model, const PlanRequest& request,
                        const std::optional<PipelinePlan>& plan) {
  std::string text;
  std::size_t told = 0;
  for (const PlanConsidered& considered : explain(model, request, plan)) {
    if (considered.why.empty() || ++told > kMostTold) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", considered.partition, considered.why);
  }
  return text;
}

Result<PipelinePlacement> placed_by(std::string_view planner, const Dag& dag, std::vector<Device> free,
                                    Duration objective) {
  free = smallest_first(std::move(free));
  if (free.empty()) return fail(Errc::kResourceExhausted, "no slice is free");
  const Types types = types_of(free);
  if (types.all.size() > kMaxSliceTypes) {
    return fail(Errc::kResourceExhausted, "there are slices of {} types, at most {} are planned for", types.all.size(),
                kMaxSliceTypes);
  }
  const PipelineModel model(dag, types.all);
  PlanRequest request{.free = std::vector<int>(types.all.size(), 0), .objective = objective};
  for (const std::size_t type : types.of_device) ++request.free[type];
  const auto chosen = planner_named(planner);
  if (!chosen) return fail(chosen.error());
  const auto plan = (*chosen)->one(model, request);
  if (!plan) {
    return fail(Errc::kResourceExhausted, "no plan fits the {} slices that are free: {}", free.size(),
                passed_over(model, request, plan));
  }
  PipelinePlacement placement = on_devices(model, *plan, free, types);
  placement.why = describe(placement, dag);
  if (const std::string passed = passed_over(model, request, plan); !passed.empty()) {
    placement.why += "; passed over: " + passed;
  }
  return placement;
}

}  // namespace

bool leaves_enough(const std::vector<Device>& before, const std::vector<Device>& after,
                   const std::vector<DeviceNeed>& others) {
  const auto any_holds = [](const std::vector<Device>& devices, const DeviceNeed& need) {
    return std::any_of(devices.begin(), devices.end(), [&](const Device& one) {
      return is_of_profile(profile_of(one), need.mig_profile) && need.memory <= one.memory;
    });
  };
  if (!others.empty() && after.empty()) return false;
  return std::all_of(others.begin(), others.end(),
                     [&](const DeviceNeed& need) { return any_holds(after, need) || !any_holds(before, need); });
}

std::string slice_type(const Device& device) {
  if (!device.slice) return "7g";
  return device.slice->profile.substr(0, device.slice->profile.find('.'));
}

std::vector<Device> PipelinePlacement::slices() const {
  std::vector<Device> all;
  for (const Stage& stage : stages) {
    if (stage.has_slice()) all.push_back(stage.device);
  }
  return all;
}

int compute_slices(const PipelinePlacement& placement) {
  int sum = 0;
  for (const Device& device : placement.slices()) sum += compute_of(slice_type(device));
  return sum;
}

std::optional<Duration> latency_of(const Dag& dag, const PipelinePlacement& placement) {
  const std::vector<Device> slices = smallest_first(placement.slices());
  const Types types = types_of(slices);
  if (slices.empty() || types.all.size() > kMaxSliceTypes) return std::nullopt;
  const auto types_on = [&](const PipelinePlacement::Stage& stage) {
    std::vector<std::size_t> its;
    for (std::size_t i = 0; stage.has_slice() && i < slices.size(); ++i) {
      if (slices[i].id == stage.device.id) its.push_back(types.of_device[i]);
    }
    return its;
  };
  const PipelineModel model(dag, types.all);
  for (std::size_t p = 0; p < model.partitions().size(); ++p) {
    const std::vector<StageShape>& stages = model.partitions()[p].stages;
    std::vector<std::vector<std::size_t>> on;
    for (std::size_t s = 0; s < stages.size() && stages.size() == placement.stages.size(); ++s) {
      const std::vector<std::size_t> its = types_on(placement.stages[s]);
      const bool is_it = stages[s].components == placement.stages[s].components &&
                         stages[s].needs_slice == !its.empty() && (its.empty() || stages[s].fits(its.front()));
      if (is_it) on.push_back(its);
    }
    if (!on.empty() && on.size() == stages.size()) return evaluate(model, p, std::move(on)).latency;
  }
  return std::nullopt;
}

Result<PipelinePlacement> place_pipeline(const Dag& dag, const std::vector<Device>& free) {
  if (dag.objective > Duration(0)) {
    if (auto in_time = placed_by(kOneSliceForEachStage, dag, free, dag.objective)) return in_time;
  }
  return placed_by(kOneSliceForEachStage, dag, free, Duration(0));
}

Result<PipelinePlacement> place_whole(const Dag& dag, const std::vector<Device>& free, Duration at_most) {
  return placed_by(kWholeFunction, dag, free, at_most);
}

}  // namespace fairlead
