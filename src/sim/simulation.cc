#include "sim/simulation.h"

#include "base/check.h"

namespace fairlead::sim {
namespace {

constexpr Duration kMonitorPeriod = std::chrono::milliseconds(200);  // the node's (node/gpu_monitor.h)

std::unique_ptr<FlowQueue> policy_of(const Scenario& scenario, std::uint64_t seed) {
  PolicyOptions options = scenario.policy_options;
  options.seed = seed;
  auto policy = make_policy(scenario.policy, options);
  FL_CHECK(policy, "{}", policy.error().message);
  return *std::move(policy);
}

// Tenants are numbered in the order in which functions name them.
std::vector<FlowSpec> flows_of(const Scenario& scenario, std::map<std::string, TenantId>& tenants) {
  std::vector<FlowSpec> flows;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    const FunctionModel& function = scenario.functions[i];
    FlowSpec spec{.flow = ModelledFunctions::flow_of(i), .weight = function.weight};
    spec.timeout = scenario.faults ? std::chrono::seconds(60) : std::chrono::hours(1000);
    spec.expected_memory = function.memory;
    spec.objective = function.objective;
    if (!function.tenant.empty()) {
      spec.tenant = tenants.try_emplace(function.tenant, TenantId(tenants.size())).first->second;
    }
    flows.push_back(spec);
  }
  return flows;
}

// What the hash of a run has of an action.
template <typename Kind>
std::uint64_t subject_of(const Kind& action) {
  return action.instance.value();
}
std::uint64_t subject_of(const Complete& action) {
  return action.invocation.value();
}
std::uint64_t subject_of(const Deliver& action) {
  return action.invocation.value();
}
std::uint64_t subject_of(const Charge&) {
  return 0;
}
std::uint64_t subject_of(const DeviceChange& action) {
  return action.gpu.value();
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::uint64_t seed, std::unique_ptr<ArrivalSource> arrivals)
    : scenario_(scenario),
      seed_(seed),
      arrivals_(std::move(arrivals)),
      flows_(flows_of(scenario, tenants_)),
      events_(clock_, *this),
      chaos_(scenario.faults ? std::optional<Chaos>(std::in_place, scenario, seed) : std::nullopt),
      functions_(scenario, seed, clock_, work_, chaos_ ? &*chaos_ : nullptr),
      record_(scenario, seed),
      node_(clock_, make_core(), functions_, chaos_ ? &*chaos_ : nullptr) {
  if (scenario.dynamic_slots) node_.watch_gpus(kMonitorPeriod);
  for (std::size_t i = 0; i < scenario.devices; ++i) node_.add_gpu(GpuId(i + 1), scenario.device);
  node_.observe([this](const Action& action) { observe(action); });
}

std::unique_ptr<Core> Simulation::make_core() const {
  CoreOptions options = scenario_.core;
  if (scenario_.faults) options.start_deadline = std::chrono::seconds(60);
  auto policy = policy_of(scenario_, seed_);
  for (const auto& [name, share] : scenario_.tenants) {
    const auto known = tenants_.find(name);  // else none of its functions is here
    if (known != tenants_.end()) policy->set_tenant(known->second, share);
  }
  auto core = std::make_unique<Core>(options, std::move(policy));
  for (const FlowSpec& flow : flows_) core->add_function(flow);
  return core;
}

RunResult Simulation::run() {
  expect_arrival();
  while (work_.any()) {
    const bool something_happens = clock_.step([this] {
      record_.moment(clock_.now());
      if (chaos_) strike();
    });
    FL_CHECK(something_happens, "{} invocations wait for nothing", work_.invocations.size());
  }
  RunResult result = record_.take(clock_.now(), node_.core().counters(), node_.busy_seconds());
  if (chaos_) result.faults = chaos_->struck();
  return result;
}

void Simulation::strike() {
  if (chaos_->strike_at_any_time(clock_, node_, flows_)) restart_node();
  chaos_->check_invariants(node_, work_);
}

void Simulation::due(const Moment&) {
  const Arrival arrival = *work_.next_arrival;
  expect_arrival();
  arrive(arrival);
}

void Simulation::happen(const Event& event) {
  --work_.thinking;
  arrive({event.moment.at, static_cast<std::size_t>(event.subject)});
}

void Simulation::expect_arrival() {
  work_.next_arrival = arrivals_->next();
  if (work_.next_arrival && work_.next_arrival->at >= Instant(scenario_.duration)) work_.next_arrival.reset();
  events_.expect(work_.next_arrival ? Moment{work_.next_arrival->at, kAfterEvents} : kNothing);
}

void Simulation::expect_after_answer(std::size_t function) {
  const auto next = arrivals_->after_answer(clock_.now(), function);
  if (!next || *next >= Instant(scenario_.duration)) return;
  events_.add(*next, Kind::kArrival, function);
  ++work_.thinking;
}

void Simulation::arrive(const Arrival& arrival) {
  const std::size_t function = arrival.function;
  const InvocationId id = node_.next_invocation();
  const Duration typical = functions_.next_work(function);  // counted also where a trace says how long this one runs
  work_.invocations.try_emplace(id, {.function = function,
                                     .arrived = clock_.now(),
                                     .work = arrival.service.value_or(typical),
                                     .asynchronous = chaos_ && chaos_->is_asynchronous()});
  record_.arrived(clock_.now(), function);
  if (node_.arrive(ModelledFunctions::flow_of(function))) return;
  record_.refused(clock_.now(), function);
  work_.invocations.erase(id);
  expect_after_answer(function);
}

void Simulation::observe(const Action& action) {
  std::visit(
      [this, kind = action.index()](const auto& a) {
        record_.action(clock_.now(), kind, subject_of(a));
        note(a);
      },
      action);
}

void Simulation::note(const Deliver& action) {
  OpenInvocation& invocation = work_.invocations.at(action.invocation);
  invocation.delivered = clock_.now();
  invocation.gpu = action.gpu;
  record_.delivered(clock_.now(), invocation);
}

void Simulation::note(const Complete& action) {
  const OpenInvocation& invocation = work_.invocations.at(action.invocation);
  const std::size_t function = invocation.function;
  record_.completed(clock_.now(), invocation, action);
  work_.invocations.erase(action.invocation);
  expect_after_answer(function);
}

// The process is gone and with it everything but the disk: functions and asynchronous invocations.
void Simulation::restart_node() {
  std::vector<OpenInvocation> live;
  for (const InvocationId id : work_.invocations.ids()) {
    record_.forgotten(clock_.now(), live.emplace_back(work_.invocations.at(id)));
    work_.invocations.erase(id);
  }
  node_.restart(make_core());
  chaos_->restarted();
  for (const OpenInvocation& invocation : live) {
    if (!invocation.asynchronous) {
      record_.failed_by_restart(invocation.function);  // its client saw the connection close
      expect_after_answer(invocation.function);
      continue;
    }
    record_.comes_again(invocation.function);
    const InvocationId id = node_.next_invocation();
    arrive({clock_.now(), invocation.function, invocation.work});
    if (OpenInvocation* again = work_.invocations.find(id)) again->asynchronous = true;
  }
}

}  // namespace fairlead::sim
