#include "node/pipeline_slices.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace fairlead {
namespace {

constexpr Duration kLongWait = std::chrono::seconds(1);  // of calls of other functions, until idle pipelines make room
}  // namespace

std::optional<PipelineSlices::Holder> PipelineSlices::holder(GpuId gpu) const {
  const auto found = held_.find(gpu);
  return found == held_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<Device> PipelineSlices::free() const {
  std::vector<Device> all = devices_.all();
  const bool has_slices = std::any_of(all.begin(), all.end(), [](const Device& device) { return device.is_slice(); });
  std::set<GpuId> busy;
  for (const GpuView& view : driver_.core().gpus()) {
    if (view.slots_in_use > 0 || view.entitled_in_use > 0 || !view.serves) busy.insert(view.gpu);
  }
  for (const InstanceView& instance : driver_.core().instances()) {
    if (instance.seated) busy.insert(instance.gpu);  // it was promised its place
  }
  std::set<std::string> promised;  // also where the instance in the seat is not there
  for (const auto& [name, function] : functions_.all()) {
    if (!function.is_pipeline()) promised.insert(function.record.seats.begin(), function.record.seats.end());
  }
  std::erase_if(all, [&](const Device& device) {
    return held_.contains(device.id) || promised.contains(device.uuid) || busy.contains(device.id) ||
           device.is_slice() != has_slices;
  });
  return all;
}

std::vector<Device> PipelineSlices::unheld() const {
  std::vector<Device> all = devices_.all();
  std::erase_if(all, [this](const Device& device) { return held_.contains(device.id); });
  return all;
}

bool PipelineSlices::are_gone(const PipelinePlacement& placement) const {
  const std::vector<Device> all = devices_.all(), slices = placement.slices();
  return std::none_of(all.begin(), all.end(), [&](const Device& there) {
    return std::any_of(slices.begin(), slices.end(), [&](const Device& one) { return one.id == there.id; });
  });
}

std::vector<DeviceNeed> PipelineSlices::needs_of_others() const {
  std::vector<DeviceNeed> needs;
  for (const auto* const functions : {&functions_.all(), &functions_.versions()}) {
    for (const auto& [name, function] : *functions) {
      if (function.is_pipeline()) continue;
      const GpuSettings settings = gpu_settings(function.record.config).value_or(GpuSettings());
      needs.push_back({.memory = settings.share.memory.value_or(Bytes(0)), .mig_profile = settings.mig_profile});
    }
  }
  return needs;
}

bool PipelineSlices::leaves_enough_to_others(const PipelinePlacement& placement) const {
  const std::vector<Device> before = unheld(), taken = placement.slices();
  std::vector<Device> after = before;
  std::erase_if(after, [&](const Device& device) {
    return std::any_of(taken.begin(), taken.end(), [&](const Device& one) { return one.id == device.id; });
  });
  return leaves_enough(before, after, needs_of_others());
}

// On all that is free; or, where that leaves nothing to others, without one of them, the first first.
Result<PipelinePlacement> PipelineSlices::plan(const PipelineProgram& program,
                                               const std::vector<Device>& leaving) const {
  std::vector<Device> slices = free_now();
  std::copy_if(leaving.begin(), leaving.end(), std::back_inserter(slices), [this](const Device& one) {
    return held_.contains(one.id) && !next_.contains(one.id) && !(round_ && round_->saved.contains(one.id));
  });
  return plan_on(with_times(program), slices);
}

Dag PipelineSlices::with_times(const PipelineProgram& program) const {
  return times_->applied(program.dag, program.kinds());
}

std::vector<Device> PipelineSlices::free_now() const {
  if (!round_) return free();
  std::vector<Device> slices = round_->free;
  std::erase_if(slices, [this](const Device& one) { return held_.contains(one.id) || round_->saved.contains(one.id); });
  return slices;
}

void PipelineSlices::save(const PipelinePlacement& placement) {
  for (const Device& device : placement.slices()) round_->saved.insert(device.id);
}

bool PipelineSlices::are_held(Holder by, const PipelinePlacement& placement) const {
  for (const Device& device : placement.slices()) {
    if (holder(device.id).value_or(by) != by) return false;
  }
  return true;
}

std::optional<PipelinePlacement> PipelineSlices::plan_in_time(const PipelineProgram& program,
                                                              std::vector<Device> held) const {
  for (const Device& one : round_ ? round_->free : free()) {
    const auto is_it = [&](const Device& other) { return other.id == one.id; };
    if (std::none_of(held.begin(), held.end(), is_it)) held.push_back(one);
  }
  if (auto placement = plan_on(with_times(program), held)) return *std::move(placement);
  return std::nullopt;
}

Result<PipelinePlacement> PipelineSlices::plan_on(const Dag& dag, const std::vector<Device>& slices) const {
  auto best = place_pipeline(dag, slices);
  if (!best || leaves_enough_to_others(*best)) return best;
  for (const Device& left : slices) {
    std::vector<Device> rest = slices;
    std::erase_if(rest, [&](const Device& one) { return one.id == left.id; });
    auto placed = place_pipeline(dag, rest);
    if (!placed || !leaves_enough_to_others(*placed)) continue;
    placed->why += fmt::format("; {} is left to other functions", slice_type(left));
    return placed;
  }
  return fail(Errc::kResourceExhausted, "it fits only on all free slices, and the last one is left to other functions");
}

std::optional<PipelinePlacement> PipelineSlices::plan_whole(const PipelineProgram& program,
                                                            const PipelinePlacement& now) const {
  const std::vector<Device> slices = free_now();
  if (slices.empty()) return std::nullopt;
  const Dag dag = with_times(program);
  const Duration at_most = std::max(dag.objective, latency_of(dag, now).value_or(Duration(0)));
  if (at_most == Duration(0)) return std::nullopt;  // nobody knows what would be no later
  auto whole = place_whole(dag, slices, at_most);
  if (!whole || !leaves_enough_to_others(*whole)) return std::nullopt;
  return *std::move(whole);
}

void PipelineSlices::take(Holder holder, const PipelinePlacement& placement) {
  for (const Device& device : placement.slices()) {
    const GpuId gpu = device.id;
    if (!held_.try_emplace(gpu, holder).second) {
      next_[gpu] = holder;
      continue;
    }
    driver_.tell([gpu](Core& core, Instant now, Actions& out) { core.drain_gpu(now, gpu, out); });
    devices_.end_idle_servers(gpu);
  }
}

void PipelineSlices::give_back(Holder holder, const PipelinePlacement& placement) {
  std::map<GpuId, GpuState> known;
  for (const GpuView& view : driver_.core().gpus()) known[view.gpu] = view.state;
  for (const Device& device : placement.slices()) {
    const GpuId gpu = device.id;
    const auto next = next_.find(gpu);
    if (next != next_.end() && next->second == holder) {  // it never had it
      next_.erase(next);
      continue;
    }
    const auto held = held_.find(gpu);
    if (held == held_.end() || held->second != holder) continue;
    const bool has_next = next != next_.end();
    if (has_next) {
      held->second = next->second;
      next_.erase(next);
    } else {
      held_.erase(held);
    }
    if (!known.contains(gpu)) continue;
    driver_.tell([&](Core& core, Instant now, Actions& out) {
      if (known.at(gpu) == GpuState::kDraining) core.device(now, DeviceEmptied{gpu}, out);
      if (!has_next) core.restore_gpu(now, gpu, out);
    });
  }
}

bool PipelineSlices::are_empty(Holder asks, const PipelinePlacement& placement) const {
  const std::vector<Device> slices = placement.slices();
  return std::all_of(slices.begin(), slices.end(),
                     [&](const Device& device) { return holder(device.id) == asks && devices_.is_empty(device.id); });
}

std::string PipelineSlices::lost(const PipelinePlacement& placement) const {
  std::map<GpuId, GpuView> views;
  for (const GpuView& view : driver_.core().gpus()) views[view.gpu] = view;
  const std::vector<Device> all = devices_.all();
  for (const Device& device : placement.slices()) {
    const auto is_it = [&](const Device& one) { return one.id == device.id; };
    const auto name = fmt::format("slice {} (GPU {})", slice_type(device), device.id.value());
    if (std::none_of(all.begin(), all.end(), is_it)) return name + " is gone";
    const auto view = views.find(device.id);
    if (view != views.end() && view->second.state != GpuState::kServing) return name + ": " + view->second.reason;
  }
  return "";
}

bool PipelineSlices::others_wait(Instant now) {
  const auto waits = [this](const auto& entry) {
    return !entry.second.is_pipeline() && driver_.core().flow(entry.second.flow).queued > 0;
  };
  if (std::none_of(functions_.all().begin(), functions_.all().end(), waits)) {
    waits_since_.reset();
  } else if (!waits_since_) {
    waits_since_ = now;
  }
  return waits_since_ && now - *waits_since_ >= kLongWait;
}

}  // namespace fairlead
