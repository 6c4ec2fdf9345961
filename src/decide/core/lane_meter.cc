#include "decide/core/lane_meter.h"

#include <algorithm>

namespace fairlead {

void LaneMeter::add(const GpuSpec& gpu) {
  InstancePool& pool = tables_.pool;
  const CoreOptions& options = tables_.options;
  if (!starts_ahead(tables_) || gpu.only_seats) return;
  pool.set_loads_at_once(gpu.gpu, options.task_loads_per_gpu);
  if (!gpu.has_task_lanes) return;
  pool.set_lanes(gpu.gpu, options.task_lanes);
  if (options.most_task_lanes == 0) return;
  const std::size_t least = std::min(pool.gpu(gpu.gpu).capacity.slots, options.most_task_lanes);
  const MeasuredLanes::Options bounds{.least = least, .most = options.most_task_lanes};
  pool.set_lanes(gpu.gpu, measured_.try_emplace(gpu.gpu, bounds).first->second.lanes());
}

void LaneMeter::slots_changed(GpuId gpu, std::size_t slots) {
  if (measured_.erase(gpu) == 0) return;
  tables_.options.most_task_lanes = std::max(tables_.options.most_task_lanes, slots);
  add({.gpu = gpu});
}

// A program runs on the GPU, starts there, or has an instance there and work for it.
void LaneMeter::tell_turns_there() {
  for (const Gpu* gpu : tables_.pool.gpus()) {
    const auto has_a_turn = [this](const Instance* instance) {
      return !instance->terms.is_session && (!instance->spare() || tables_.queue->queued(instance->flow) > 0);
    };
    const auto& there = gpu->instances;
    tables_.pool.set_for_programs(gpu->id, gpu->programs > 0 && std::any_of(there.begin(), there.end(), has_a_turn));
  }
}

void LaneMeter::begin_measured(Instant now, const Instance& instance) {
  const auto lanes = measured_.find(instance.gpu);
  if (!instance.terms.is_session || instance.terms.is_entitled || lanes == measured_.end()) return;
  lanes->second.begin(now, instance.bound, instance.flow);
}

void LaneMeter::end_measured(Instant now, InvocationId id, bool says_something) {
  const LiveInvocation& over = tables_.invocations.at(id);
  const Instance* instance = tables_.pool.find(over.instance);
  const auto lanes = instance == nullptr ? measured_.end() : measured_.find(instance->gpu);
  if (lanes == measured_.end()) return;
  if (says_something && tables_.functions.contains(over.flow)) {
    lanes->second.end(now, id);
  } else {
    lanes->second.abandon(now, id);
  }
  tables_.pool.set_lanes(instance->gpu, lanes->second.lanes());
}

void LaneMeter::forget(FlowId flow) {
  for (auto& [gpu, lanes] : measured_) lanes.forget(flow);
}

}  // namespace fairlead
