#include "sim/virtual_node.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "decide/queueing/queue_tenants.h"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kNotMeasured = ~std::uint64_t{0};  // a GPU time, in an event

GpuSpec spec_of(GpuId gpu, const DeviceModel& device, bool is_dynamic) {
  return {.gpu = gpu, .memory = device.memory, .is_dynamic = is_dynamic};
}

}  // namespace

VirtualNode::VirtualNode(VirtualClock& clock, std::unique_ptr<Core> core, InstanceModel& model, Mishaps* mishaps)
    : clock_(clock),
      events_(clock, *this),
      core_(std::move(core)),
      model_(model),
      mishaps_(mishaps),
      gpus_(clock),
      memory_(*this) {}

void VirtualNode::add_gpu(GpuId gpu, const DeviceModel& device) {
  core_->add_gpu(spec_of(gpu, device, watch_.is_on()));
  gpus_.add(gpu, device);
  memory_.add_gpu(gpu, device);
}

void VirtualNode::plug_in(const DeviceModel& device) {
  const GpuId gpu(gpus_.most() + 1);
  gpus_.add(gpu, device);
  memory_.add_gpu(gpu, device);
  apply([&](Actions& out) { core_->device(now(), DeviceAppeared{spec_of(gpu, device, watch_.is_on())}, out); });
}

void VirtualNode::pull_out(GpuId gpu) {
  gpus_.pull_out(gpu);
  apply([&](Actions& out) { core_->device(now(), DeviceWent{gpu}, out); });
}

void VirtualNode::watch_gpus(Duration period) {
  watch_.start(period);
  schedule(now() + period, [this] { look_at_gpus(); });
}

void VirtualNode::look_at_gpus() {
  gpus_.for_each([this](GpuId gpu, const DeviceModel&) {
    const double utilisation = watch_.utilisation(gpu, gpus_.busy(gpu));
    apply([&](Actions& out) {
      core_->device(now(), DeviceSample{.gpu = gpu, .utilisation = utilisation, .memory_used = memory_.used(gpu)}, out);
    });
  });
  schedule(now() + watch_.period(), [this] { look_at_gpus(); });
}

void VirtualNode::schedule(Instant at, Call call) {
  FL_CHECK(at >= now(), "{} ns is in the past", at.time_since_epoch().count());
  const std::uint64_t number = calls_.empty() ? 0 : calls_.rbegin()->first + 1;
  calls_.emplace(number, std::move(call));
  events_.add(at, Kind::kCall, number);
}

Result<InvocationId> VirtualNode::arrive(FlowId flow) {
  const InvocationId invocation(next_invocation_++);
  std::optional<Error> refused;
  apply([&](Actions& out) {
    if (Status accepted = core_->arrive(now(), invocation, flow, out); !accepted) refused = std::move(accepted.error());
  });
  if (refused) return fail(*std::move(refused));
  return invocation;
}

void VirtualNode::lose_gpu(GpuId gpu) {
  for (const InstanceId id : instances_.ids()) {
    if (instances_.at(id).gpu == gpu) events_.add(now(), Kind::kGone, id.value());
  }
}

void VirtualNode::restart(std::unique_ptr<Core> core) {
  for (const InstanceId id : instances_.ids()) release(id);
  gpus_.remove_pulled_out();
  core_ = std::move(core);
  gpus_.for_each(
      [this](GpuId gpu, const DeviceModel& device) { core_->add_gpu(spec_of(gpu, device, watch_.is_on())); });
  expect_next();
}

void VirtualNode::happen(const Event& event) {
  const InstanceId instance(event.subject);
  switch (EventsOf<Kind>::kind_of(event)) {
    case Kind::kStarted: memory_.allocate(instance); break;
    case Kind::kRunEnds: end_run(instance, InvocationId(event.detail)); break;
    case Kind::kWorkEnds: {
      std::optional<Duration> gpu_time;
      if (event.detail != kNotMeasured) gpu_time = Duration(static_cast<Duration::rep>(event.detail));
      report([&](Actions& out) { core_->work_ended(now(), instance, gpu_time, out); });
      break;
    }
    case Kind::kOutOfMemory:
      if (Live* live = instances_.find(instance)) live->run = {.end = InstanceModel::RunEnd::kReportsError};
      end_run(instance, InvocationId(event.detail));
      break;
    case Kind::kIdle: report([&](Actions& out) { core_->instance_idle(now(), instance, out); }); break;
    case Kind::kGone:
      release(instance);
      report([&](Actions& out) { core_->instance_gone(now(), instance, out); });
      break;
    case Kind::kSwappedIn: memory_.end_swap_in(instance); break;
    case Kind::kSwappedOut: memory_.end_swap_out(instance, Bytes(static_cast<std::int64_t>(event.detail))); break;
    case Kind::kAsksForRoom: memory_.ask_for_all(instance); break;
    case Kind::kAsksAtGate: memory_.ask_at_the_gate(instance); break;
    case Kind::kCall: calls_.extract(event.subject).mapped()(); break;
  }
  expect_next();
}

// Deadlines first: an answer at its very deadline is too late.
void VirtualNode::due(const Moment& expected) {
  if (expected.order == kBeforeEvents) {
    tell([&](Actions& out) { core_->wake(now(), out); });
  } else if (gpus_.first().at <= now()) {  // else it was stopped meanwhile
    const GpuModel::Finished finished = gpus_.finish_first();
    if (finished.invocation) {
      end_run(finished.instance, finished.invocation);
    } else {
      memory_.allocate(finished.instance);
    }
  }
  expect_next();
}

void VirtualNode::expect_next() {
  const auto wakeup = core_->next_wakeup();
  if (wakeup && *wakeup <= gpus_.first().at) {
    events_.expect({*wakeup, kBeforeEvents});
  } else {
    events_.expect(gpus_.first());
  }
}

void VirtualNode::carry_out(const Actions& actions) {
  for (const Action& action : actions) {
    if (observer_) observer_(action);
    std::visit([this](const auto& a) { perform(a); }, action);
  }
}

void VirtualNode::perform(const StartInstance& action) {
  Live& live = instances_[action.instance];
  live = {.flow = action.flow, .gpu = action.gpu};
  const InstanceModel::Start start = model_.start(action);
  if (gpus_.has(action.gpu)) {
    const auto memory = model_.memory(action.flow);
    if (memory) memory_.add(action.instance, action.gpu, *memory, start.allocations);
  }
  switch (start.end) {
    case InstanceModel::StartEnd::kReady:
      live.start_part = start.after / std::max(1, start.allocations);
      go_on_starting(action.instance);
      break;
    case InstanceModel::StartEnd::kExits: events_.add(now() + start.after, Kind::kGone, action.instance.value()); break;
    case InstanceModel::StartEnd::kHangs: break;
  }
}

void VirtualNode::go_on_starting(InstanceId id) {
  const Live& live = instances_.at(id);
  if (gpus_.has(live.gpu)) {
    gpus_.begin_start(live.gpu, id, live.start_part);
  } else {
    events_.add(now() + live.start_part, Kind::kStarted, id.value());
  }
}

void VirtualNode::perform(const StopInstance& action) {
  const GpuId gpu = instances_.at(action.instance).gpu;
  const bool was_starting = gpus_.has(gpu) && gpus_.stop(gpu, action.instance);
  events_.add(now(), Kind::kGone, action.instance.value());
  if (was_starting) events_.add(now(), Kind::kStarted, action.instance.value());  // said too late, as by a real one
}

void VirtualNode::begin_run(InstanceId id, InvocationId invocation) {
  Live& live = instances_.at(id);
  InstanceModel::Run& run = live.run;
  run = plain_run_;
  model_.run(live.flow, invocation, run);
  if (run.end == InstanceModel::RunEnd::kHangs) return;
  if (run.end == InstanceModel::RunEnd::kExits) {
    events_.add(now() + run.after, Kind::kGone, id.value());
  } else if (gpus_.has(live.gpu)) {
    gpus_.run(live.gpu, invocation, id, run.after);
  } else {
    events_.add(now() + run.after, Kind::kRunEnds, id.value(), invocation.value());
  }
}

void VirtualNode::end_run(InstanceId id, InvocationId invocation) {
  Live* live = instances_.find(id);
  const InstanceModel::Run& run = live != nullptr ? live->run : plain_run_;
  if (live != nullptr) model_.ends(live->flow, invocation, live->run);
  const bool is_error = run.end == InstanceModel::RunEnd::kReportsError;
  const auto return_after = run.return_after;
  memory_.report_first(id);  // first, as the node does: what follows from the answer knows what the instance holds
  if (run.work_after > Duration(0)) {
    const Duration so_far = std::min(run.gpu_time.value_or(run.after), run.after);
    const auto gpu_time = run.gpu_time ? static_cast<std::uint64_t>(run.gpu_time->count()) : kNotMeasured;
    events_.add(now() + run.work_after, Kind::kWorkEnds, id.value(), gpu_time);
    report([&](Actions& out) { core_->answered_early(now(), invocation, is_error, so_far, out); });
  } else {
    report([&](Actions& out) { core_->answered(now(), invocation, is_error, run.gpu_time, out); });
  }
  if (!return_after || (mishaps_ != nullptr && mishaps_->never_returns())) return;
  if (*return_after == Duration(0) && is_quiet()) {  // the event would be the next
    tell([&](Actions& out) { core_->instance_idle(now(), id, out); });
  } else {
    events_.add(now() + *return_after, Kind::kIdle, id.value());
  }
}

// Nothing else happens at this instant, and nothing goes wrong.
bool VirtualNode::is_quiet() const {
  if (mishaps_ != nullptr || !model_.returns_at_once()) return false;
  if (clock_.has_event_now() || gpus_.first().at <= now()) return false;
  const auto wakeup = core_->next_wakeup();
  return !wakeup || *wakeup > now();
}

// Its process is gone: it runs no more, and the device takes its memory back.
void VirtualNode::release(InstanceId id) {
  const Live* live = instances_.find(id);
  if (live == nullptr) return;
  if (gpus_.has(live->gpu)) gpus_.stop(live->gpu, id);
  memory_.release(id);
  instances_.erase(id);
}

TenantUse tenant_use(const VirtualNode& node, TenantId tenant) {
  return QueueTenants::use(node.core().policy(), tenant);
}

}  // namespace fairlead::sim
