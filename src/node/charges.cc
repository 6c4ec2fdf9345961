#include "node/charges.h"

#include <utility>

#include "base/log.h"

namespace fairlead {

Charges::Charges(boost::asio::io_context& io, CoreDriver& driver, Instances& instances, Functions& functions,
                 MemoryDesk& memory, NamesProcesses names_processes, AddRecord add_record)
    : driver_(driver),
      instances_(instances),
      functions_(functions),
      memory_(memory),
      names_processes_(std::move(names_processes)),
      add_record_(std::move(add_record)),
      after_answers_(
          io, [this](InstanceId instance) { return goes_on(instance, instances_.use(instance)); },
          [this](InstanceId instance) { on_work_ended(instance); }) {}

// Of a version, its function: who lies through one of them lies through all, and what one owes all owe.
FlowId Charges::function_of(FlowId flow) {
  const RegisteredFunction* const known = functions_.find(flow);
  if (known == nullptr || known->record.version == 0) return flow;
  const RegisteredFunction* const function = functions_.find(known->record.name);
  return function == nullptr ? flow : function->flow;
}

// A server's sessions are measured by the server, which knows whose work is whose.
void Charges::owe(InstanceId instance, const GpuBooks::Debt& debt) {
  const LiveInstance* const live = instances_.find(instance);
  if (live == nullptr || live->runner->use_source() != UseSource::kReported) return;
  if (debt.owed > Duration(0)) driver_.core().owes(debt.flow, debt.owed);
}

void Charges::ready(InstanceId instance) {
  const LiveInstance* const live = instances_.find(instance);
  if (live == nullptr) return;
  const std::optional<DeviceUse> use = live->runner->use(instance);
  books_.opened(monotonic_now(), instance, function_of(live->flow), use ? use->gpu_time : Duration(0));
}

// What was measured between two invocations is none of the function's doing.
void Charges::begin(InstanceId instance) {
  const LiveInstance* const live = instances_.find(instance);
  if (live == nullptr) return;  // it has gone meanwhile
  const std::optional<DeviceUse> use = live->runner->use(instance);
  const Duration so_far = use ? use->gpu_time : Duration(0);
  const FlowId function = function_of(live->flow);
  owe(instance, {function, books_.delivered(monotonic_now(), instance, function, so_far)});
}

std::optional<Duration> Charges::used(InstanceId instance, const std::optional<DeviceUse>& use) {
  const LiveInstance* const live = instances_.find(instance);
  if (!use || live == nullptr) return std::nullopt;
  const std::optional<Duration> used = books_.used(monotonic_now(), instance, use->gpu_time);
  if (live->runner->use_source() == UseSource::kMeasured) return used;
  return names_processes_(live->gpu) && !books_.is_suspect(instance) ? used : std::nullopt;
}

bool Charges::goes_on(InstanceId instance, const std::optional<DeviceUse>& use) const {
  return use && (use->is_busy || books_.may_still_work(instance));
}

void Charges::on_work_ended(InstanceId instance) {
  driver_.tell([&](Core& core, Instant now, Actions& out) {
    const std::optional<DeviceUse> use = memory_.report(instance, out);
    core.work_ended(now, instance, used(instance, use), out);
  });
}

void Charges::completed(InstanceId instance, const Complete& complete) {
  if (!is_open(complete.invocation)) owe(instance, books_.charged(instance, complete.service - complete.owed));
}

void Charges::act(const Charge& charge) {
  functions_.add_service(charge.flow, charge.after_answer);
  if (!is_open(charge.invocation)) return;
  WorkAfterAnswers::Charged charged = after_answers_.take(charge.invocation);
  const Duration service = charge.service - charge.owed;
  owe(charged.instance, books_.charged(charged.instance, service));
  if (!charged.record) return;
  charged.record->gpu_time = service;
  add_record_(*charged.record);
}

void Charges::gone(InstanceId instance) {
  after_answers_.forget(instance);
  const std::optional<DeviceUse> use = instances_.use(instance);
  const GpuBooks::Leftover left = books_.gone(monotonic_now(), instance, use ? use->gpu_time : Duration(0));
  owe(instance, left.debt);
  if (left.finding) correct(instance, *left.finding);
}

std::map<InstanceId, Duration> Charges::compare_with_devices(const std::vector<ProcessSample>& samples) {
  std::map<InstanceId, Duration> seen;
  if (samples.empty()) {
    books_.observed(monotonic_now());
    return seen;
  }
  InstanceProcesses::Inits inits;
  for (const auto& [id, live] : instances_.all()) inits[live.runner->init_pid(id)] = id;
  inits.erase(0);  // of those that have none
  for (const ProcessSample& sample : samples) {
    const auto instance = processes_.find(sample.pid, inits);
    if (!instance) continue;
    books_.device_worked(*instance, sample.from, sample.until, sample.busy);
    seen[*instance] += sample.busy;
  }
  books_.observed(monotonic_now());
  for (const auto& [instance, busy] : seen) {
    const std::optional<DeviceUse> use = instances_.use(instance);
    const auto finding =
        books_.compare(monotonic_now(), instance, use ? use->gpu_time : Duration(0), use && use->is_busy);
    if (finding) correct(instance, *finding);
  }
  return seen;
}

void Charges::correct(InstanceId instance, const GpuBooks::Finding& finding) {
  driver_.core().owes(finding.flow, finding.missing);
  RegisteredFunction* const function = functions_.find(finding.flow);
  if (function == nullptr) return;
  function->stats.gpu_time_not_reported += finding.missing;
  spdlog::log(finding.is_first ? spdlog::level::warn : spdlog::level::debug,
              "function {}: its instance {} reported {:.0f} ms less GPU time than the device says; the device's counts",
              function->record.name, instance.value(), to_ms(finding.missing));
}

}  // namespace fairlead
