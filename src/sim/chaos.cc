#include "sim/chaos.h"

#include "base/check.h"
#include "decide/core/hold_desk.h"

namespace fairlead::sim {

void Chaos::strike(InstanceModel::Start& start) {
  if (faults_.strikes(Fault::kStartHangs)) {
    start.end = InstanceModel::StartEnd::kHangs;
  } else if (faults_.strikes(Fault::kStartFails)) {
    start.end = InstanceModel::StartEnd::kExits;
    start.after = faults_.up_to(start.after + Duration(1));
  } else if (faults_.strikes(Fault::kStartSlow)) {
    start.after *= 1 + static_cast<Duration::rep>(faults_.below(20));
  }
}

void Chaos::strike(InstanceModel::Run& run) {
  if (faults_.strikes(Fault::kRunHangs)) {
    run.end = InstanceModel::RunEnd::kHangs;
  } else if (faults_.strikes(Fault::kRunCrashes)) {
    run.end = InstanceModel::RunEnd::kExits;
    run.after = faults_.up_to(run.after + Duration(1));
  }
}

// What leaves may be refused or slow; what comes back is what the link gives.
std::optional<Duration> Chaos::move_time(MoveDirection direction, Duration link_time) {
  if (direction == MoveDirection::kIn) return link_time;
  if (faults_.strikes(Fault::kMoveFails)) return std::nullopt;
  if (faults_.strikes(Fault::kMoveSlow)) link_time += faults_.up_to(std::chrono::seconds(30));
  return link_time;
}

bool Chaos::loses(Report report) {
  return faults_.strikes(report == Report::kMoved ? Fault::kMoveLost : Fault::kReportLost);
}

bool Chaos::strike_at_any_time(VirtualClock& clock, VirtualNode& node, std::vector<FlowSpec>& flows) {
  if (faults_.strikes(Fault::kClockJumps)) clock.pass(faults_.up_to(std::chrono::minutes(5)));
  if (faults_.strikes(Fault::kDeviceLost)) {
    if (const auto gpu = some_device(node)) node.lose_gpu(*gpu);
  }
  if (faults_.strikes(Fault::kDeviceGoes)) take_one_away(node);
  if (faults_.strikes(Fault::kCancelled)) cancel_one(node);
  if (faults_.strikes(Fault::kUpdated)) update_one(node, flows[faults_.below(flows.size())]);
  return faults_.strikes(Fault::kNodeRestarts);
}

// One that serves. Empty: none does.
std::optional<GpuId> Chaos::some_device(const VirtualNode& node) {
  std::vector<GpuId> serving;
  for (const GpuView& view : node.core().gpus()) {
    if (view.state == GpuState::kServing) serving.push_back(view.gpu);
  }
  if (serving.empty()) return std::nullopt;
  return serving[faults_.below(serving.size())];
}

void Chaos::take_one_away(VirtualNode& node) {
  const auto gpu = some_device(node);
  if (!gpu) return;
  node.schedule(node.now() + faults_.up_to(std::chrono::minutes(1)), [this, &node] { node.plug_in(scenario_.device); });
  node.pull_out(*gpu);
}

void Chaos::cancel_one(VirtualNode& node) {
  const std::uint64_t sent = node.next_invocation().value() - 1;
  if (sent == 0) return;
  const InvocationId id(1 + faults_.below(sent));
  node.apply([&](Actions& out) { node.core().cancel(node.now(), id, out); });
}

void Chaos::update_one(VirtualNode& node, FlowSpec& flow) {
  auto instances = Core::Instances::kKept;
  switch (faults_.below(4)) {
    case 0: flow.weight = 0.5 + static_cast<double>(faults_.below(4)); break;
    case 1:
      flow.max_concurrency = faults_.below(3) == 0 ? std::nullopt : std::optional<std::size_t>(faults_.below(4));
      break;
    case 2: {
      WarmHold hold{.pin = static_cast<PinKind>(faults_.below(3))};
      if (faults_.below(2) == 0) hold.keep = faults_.up_to(std::chrono::seconds(30));
      return node.apply([&](Actions& out) { HoldDesk(node.core()).set(node.now(), flow.flow, hold, out); });
    }
    default: instances = Core::Instances::kReplaced; break;  // new code
  }
  node.apply([&](Actions& out) { node.core().update_function(node.now(), flow, out, instances); });
}

void Chaos::check_invariants(const VirtualNode& node, const OpenWork& work) {
  const CoreOptions& options = scenario_.core;
  const Core& core = node.core();
  std::size_t slots = 0;
  for (const GpuView& view : core.gpus()) {
    FL_CHECK(view.slots_in_use <= options.slots_per_gpu, "GPU {} has {} slots in use", view.gpu.value(),
             view.slots_in_use);
    FL_CHECK(view.instances <= options.instances_per_gpu, "GPU {} has {} instances", view.gpu.value(), view.instances);
    FL_CHECK(view.starting_ahead <= options.starts_per_gpu, "GPU {}: {} instances start ahead", view.gpu.value(),
             view.starting_ahead);
    FL_CHECK(view.memory_admitted <= scenario_.device.memory, "GPU {}: {} bytes admitted", view.gpu.value(),
             view.memory_admitted.count());
    slots += view.slots_in_use;
    const Bytes used = node.memory_used(view.gpu);
    FL_CHECK(used >= Bytes(0) && used <= scenario_.device.memory, "{} bytes in use", used.count());
  }
  FL_CHECK(core.policy().queued() + slots >= work.invocations.size(), "{} queued, {} slots, {} invocations",
           core.policy().queued(), slots, work.invocations.size());
  const Duration unnamed = core.counters().idle_slots[static_cast<std::size_t>(IdleReason::kUnnamed)];
  FL_CHECK(unnamed == Duration(0), "slots idled for {} s beside queued work, and nobody can say why",
           to_seconds(unnamed));
  FL_CHECK(core.policy().global_virtual_time() >= global_virtual_time_, "Global_VT fell");
  global_virtual_time_ = core.policy().global_virtual_time();
}

}  // namespace fairlead::sim
