// What invocations are charged: reports of the shims, work that goes on after its answer, and what the devices say.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "node/node.h"

namespace fairlead {

void Node::make_charges() {
  const auto is_busy = [this](InstanceId instance) { return goes_on(instance, measure(instance)); };
  after_answers_ =
      std::make_unique<WorkAfterAnswers>(io_, is_busy, [this](InstanceId instance) { on_work_ended(instance); });
}

// An invocation is delivered. What the instance did on the device since its last one is owed; a kernel task does nothing.
void Node::begin_charge(InstanceId instance) {
  const auto it = instances_.find(instance);
  if (it == instances_.end()) return;  // it has gone meanwhile
  const FlowId flow = it->second.flow;
  const Duration outside = books_.delivered(monotonic_now(), instance, flow, gpu_time_of(instance));
  if (!device_servers_->has(instance)) core_.owes(flow, outside);
}

// On a slice nobody says which process computes, so that no report can be held against anything: the time held counts.
bool Node::believes_reports(GpuId gpu) const {
  if (!gpus_) return true;
  const GpuSample& sample = gpus_->samples().at(gpu.value() - 1);
  return !sample.is_slice() && sample.names_processes;
}

// After an answer: there is work on the device, as the instance's own processes say, or the device where they lied before.
bool Node::goes_on(InstanceId instance, const std::optional<ShimUse>& use) const {
  return use && (use->busy > 0 || books_.may_still_work(instance));
}

std::optional<Duration> Node::used_since_delivery(InstanceId instance, const std::optional<ShimUse>& use) {
  const auto it = instances_.find(instance);
  if (!use || it == instances_.end()) return std::nullopt;
  const std::optional<Duration> used = books_.used(monotonic_now(), instance, use->gpu_time);
  if (device_servers_->has(instance)) return used;
  return believes_reports(it->second.gpu) && !books_.is_suspect(instance) ? used : std::nullopt;
}

void Node::on_work_ended(InstanceId instance) {
  Actions actions;
  const std::optional<ShimUse> use = report_memory(instance, actions);
  core_.work_ended(monotonic_now(), instance, used_since_delivery(instance, use), actions);
  carry_out(std::move(actions));
}

void Node::act(const Charge& charge) {
  if (RegisteredFunction* function = functions_.find(charge.flow)) {
    function->stats.service += charge.after_answer;
    if (function->requested) request_stats_.service += charge.after_answer;
  }
  if (!after_answers_->has(charge.invocation)) return;
  WorkAfterAnswers::Charged charged = after_answers_->take(charge.invocation);
  books_.charged(charged.instance, charge.service - charge.owed);
  if (!charged.record || !history_) return;
  charged.record->gpu_time = charge.service - charge.owed;
  history_->add(*charged.record);
}

// ---- reports against what the devices say

void Node::compare_with_devices(const std::vector<ProcessSample>& samples) {
  InstanceProcesses::Inits inits;
  if (samples.empty()) return books_.observed(monotonic_now());
  for (const auto& [id, instance] : instances_) {
    if (!device_servers_->has(id)) inits[static_cast<int>(host_->stats(id).init_pid)] = id;
  }
  inits.erase(0);  // of those that are being started
  std::vector<InstanceId> seen;
  for (const ProcessSample& sample : samples) {
    const auto instance = processes_.find(sample.pid, inits);
    if (!instance) continue;
    books_.device_worked(*instance, sample.from, sample.until, sample.busy);
    seen.push_back(*instance);
  }
  books_.observed(monotonic_now());
  for (const InstanceId instance : seen) {
    const std::optional<ShimUse> use = measure(instance);
    const auto finding = books_.compare(monotonic_now(), instance, use ? use->gpu_time : Duration(0));
    if (finding) correct(instance, *finding);
  }
}

void Node::correct(InstanceId instance, const GpuBooks::Finding& finding) {
  core_.owes(finding.flow, finding.missing);
  RegisteredFunction* const function = functions_.find(finding.flow);
  if (function == nullptr) return;
  function->stats.gpu_time_not_reported += finding.missing;
  spdlog::log(finding.is_first ? spdlog::level::warn : spdlog::level::debug,
              "function {}: its instance {} reported {:.0f} ms less GPU time than the device says; the device's counts",
              function->record.name, instance.value(), to_ms(finding.missing));
}

}  // namespace fairlead
