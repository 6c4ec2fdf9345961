// Faults: where they strike, and what must hold whatever strikes.
#include <algorithm>

#include "base/check.h"
#include "sim/simulation.h"

namespace fairlead::sim {

bool Simulation::start_goes_wrong(InstanceId instance, Duration& start) {
  if (strikes(Fault::kStartHangs)) return true;
  if (strikes(Fault::kStartFails)) {
    events_.add(now_ + faults_->up_to(start + Duration(1)), EventKind::kGone, instance.value());
    return true;
  }
  if (strikes(Fault::kStartSlow)) start *= 1 + static_cast<Duration::rep>(faults_->below(20));
  return false;
}

bool Simulation::run_goes_wrong(InstanceId instance, InvocationId invocation) {
  if (strikes(Fault::kRunHangs)) return true;
  if (!strikes(Fault::kRunCrashes)) return false;
  const Duration work = invocations_.at(invocation).work;
  events_.add(now_ + faults_->up_to(work + Duration(1)), EventKind::kGone, instance.value());
  return true;
}

// Before each event.
void Simulation::strike_at_any_time() {
  if (strikes(Fault::kClockJumps)) now_ += faults_->up_to(std::chrono::minutes(5));
  if (strikes(Fault::kDeviceLost)) lose_device();
  if (strikes(Fault::kCancelled)) cancel_one();
  if (strikes(Fault::kUpdated)) update_one();
  if (strikes(Fault::kNodeRestarts)) restart_node();
  check_invariants();
}

void Simulation::lose_device() {
  const GpuId lost(1 + faults_->below(scenario_.devices));
  for (const InstanceId id : instances_.ids()) {
    if (instances_.at(id).gpu == lost) events_.add(now_, EventKind::kGone, id.value());
  }
}

void Simulation::cancel_one() {
  if (next_invocation_ == 1) return;
  const InvocationId id(1 + faults_->below(next_invocation_ - 1));
  tell([&](Actions& out) { core_->cancel(now_, id, out); });
}

void Simulation::update_one() {
  FlowSpec& flow = flows_[faults_->below(flows_.size())];
  switch (faults_->below(3)) {
    case 0: flow.weight = 0.5 + static_cast<double>(faults_->below(4)); break;
    case 1:
      flow.max_concurrency = faults_->below(3) == 0 ? std::nullopt : std::optional<std::size_t>(faults_->below(4));
      break;
    default: break;  // new code
  }
  tell([&](Actions& out) { core_->update_function(now_, flow, out); });
}

// The process is gone and with it everything but the disk: functions and asynchronous invocations.
void Simulation::restart_node() {
  std::vector<Invocation> live;
  for (const InvocationId id : invocations_.ids()) {
    const Invocation& invocation = live.emplace_back(invocations_.at(id));
    invocations_.erase(id);
    if (invocation.gpu) {
      gaps_.ended(now_, invocation.function);
    } else {
      gaps_.unqueued(now_, invocation.function);
      --queued_;
    }
  }
  for (const InstanceId id : instances_.ids()) release(id);

  core_ = make_core();
  global_virtual_time_ = Duration(0);
  for (const Invocation& invocation : live) {
    FunctionResult& result = result_of(invocation.function);
    if (!invocation.asynchronous) {
      ++result.failed;  // its client saw the connection close
      expect_after_answer(invocation.function);
      continue;
    }
    --result.arrived;
    ++result_.restarts_survived;
    arrive({now_, invocation.function, invocation.work});
    if (Invocation* again = invocations_.find(InvocationId(next_invocation_ - 1))) again->asynchronous = true;
  }
}

void Simulation::check_invariants() {
  const CoreOptions& options = scenario_.core;
  std::size_t tokens = 0;
  for (const GpuView& view : core_->gpus()) {
    FL_CHECK(view.tokens_in_use <= options.tokens_per_gpu, "GPU {} has {} tokens in use", view.gpu.value(),
             view.tokens_in_use);
    FL_CHECK(view.instances <= options.instances_per_gpu, "GPU {} has {} instances", view.gpu.value(), view.instances);
    FL_CHECK(view.starting_ahead <= options.starts_per_gpu, "GPU {}: {} instances start ahead", view.gpu.value(),
             view.starting_ahead);
    FL_CHECK(view.memory_admitted <= scenario_.device.memory, "GPU {}: {} bytes admitted", view.gpu.value(),
             view.memory_admitted.count());
    tokens += view.tokens_in_use;
  }
  for (const Bytes used : memory_used_) {
    FL_CHECK(used >= Bytes(0) && used <= scenario_.device.memory, "{} bytes in use", used.count());
  }
  FL_CHECK(core_->policy().queued() + tokens >= invocations_.size(), "{} queued, {} tokens, {} invocations",
           core_->policy().queued(), tokens, invocations_.size());
  FL_CHECK(core_->counters().idle_tokens[static_cast<std::size_t>(IdleReason::kUnnamed)] == Duration(0),
           "tokens idled for {} s beside queued work, and nobody can say why",
           to_seconds(core_->counters().idle_tokens[static_cast<std::size_t>(IdleReason::kUnnamed)]));
  FL_CHECK(core_->policy().global_virtual_time() >= global_virtual_time_, "Global_VT fell");
  global_virtual_time_ = core_->policy().global_virtual_time();
}

}  // namespace fairlead::sim
