#include "sim/simulation.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace fairlead::sim {
namespace {

constexpr int kSamples = 240;           // over the time in which invocations arrive
constexpr std::size_t kTimeline = 600;  // invocations

// Near normal with mean 0 and deviation 1, by sums alone: transcendental functions differ between C libraries.
double bell(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

std::vector<double> weights_of(const Scenario& scenario) {
  std::vector<double> weights;
  for (const FunctionModel& function : scenario.functions) weights.push_back(function.weight);
  return weights;
}

std::unique_ptr<QueuePolicy> policy_of(const Scenario& scenario, std::uint64_t seed) {
  PolicyOptions options = scenario.policy_options;
  options.seed = seed;
  auto policy = make_policy(scenario.policy, options);
  FL_CHECK(policy, "{}", policy.error().message);
  return *std::move(policy);
}

FlowId flow_of(std::size_t function) {
  return FlowId(function + 1);
}

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::uint64_t seed, std::unique_ptr<ArrivalSource> arrivals)
    : scenario_(scenario),
      seed_(seed),
      arrivals_(std::move(arrivals)),
      gpus_(scenario.devices, GpuModel(scenario.device)),
      links_(scenario.devices),
      memory_used_(scenario.devices),
      runs_(scenario.functions.size()),
      starts_(scenario.functions.size()),
      last_delivered_(scenario.functions.size()),
      gaps_(weights_of(scenario)) {
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    const FunctionModel& function = scenario.functions[i];
    FlowSpec spec{.flow = flow_of(i), .weight = function.weight};
    spec.timeout = scenario.faults ? std::chrono::seconds(60) : std::chrono::hours(1000);
    spec.expected_memory = function.memory;
    spec.objective = function.objective;
    if (!function.tenant.empty()) {
      spec.tenant = tenants_.try_emplace(function.tenant, TenantId(tenants_.size())).first->second;
    }
    flows_.push_back(spec);
    result_.functions.push_back({.name = function.name});
  }
  if (scenario.faults) faults_.emplace(seed);
  result_.seed = seed;
  core_ = make_core();
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
  for (std::size_t i = 0; i < scenario_.devices; ++i) core->add_gpu({GpuId(i + 1), scenario_.device.memory});
  for (const FlowSpec& flow : flows_) core->add_function(flow);
  return core;
}

RunResult Simulation::run() {
  const Instant end = Instant(scenario_.duration);
  next_arrival_ = arrivals_->next();
  for (;;) {
    if (next_arrival_ && next_arrival_->at >= end) next_arrival_.reset();
    const auto wakeup = core_->next_wakeup();
    if (!has_work()) break;
    Instant next = Instant::max();
    if (next_arrival_) next = next_arrival_->at;
    if (!events_.empty()) next = std::min(next, events_.first().at);
    if (!gpu_ends_.empty()) next = std::min(next, gpu_ends_.top_key().at);
    if (wakeup && *wakeup <= next) {
      advance_to(*wakeup);
      tell([&](Actions& out) { core_->wake(now_, out); });
      continue;
    }
    FL_CHECK(next != Instant::max(), "{} invocations wait for nothing", invocations_.size());
    const bool is_event = !events_.empty() && events_.first().at == next;
    const bool is_end = !gpu_ends_.empty() && gpu_ends_.top_key().at == next &&
                        (!is_event || gpu_ends_.top_key().order < events_.first().order);
    advance_to(next);
    if (is_end) {
      // What struck meanwhile may have stopped it.
      if (!gpu_ends_.empty() && gpu_ends_.top_key().at <= now_) end_on_gpu(GpuId(gpu_ends_.top() + 1));
    } else if (is_event) {
      handle(events_.take());
    } else {
      const Arrival arrival = *next_arrival_;
      next_arrival_ = arrivals_->next();
      arrive(arrival);
    }
  }
  gaps_.advance(now_);
  if (faults_) result_.faults = faults_->struck();
  result_.seconds = to_seconds(now_ - Instant{});
  for (const GpuModel& gpu : gpus_) result_.busy_seconds += gpu.busy_seconds();
  result_.worst_gap = gaps_.worst();
  result_.mean_gap = gaps_.mean();
  result_.gap_windows = gaps_.windows();
  result_.gaps = gaps_.each();
  const CoreCounters& counters = core_->counters();
  result_.evictions = counters.evictions;
  result_.swap_ins = counters.memory.swap_ins;
  result_.swap_outs = counters.memory.swap_outs;
  result_.prefetches_in_time = counters.memory.prefetches_in_time;
  result_.prefetches_late = counters.memory.prefetches_late;
  result_.swap_outs_in_vain = counters.memory.swap_outs_in_vain;
  result_.swapped_gib = static_cast<double>(counters.memory.bytes_in + counters.memory.bytes_out) / (1 << 30);
  return std::move(result_);
}

void Simulation::advance_to(Instant next) {
  now_ = std::max(now_, next);
  if (now_ >= next_sample_) sample();
  if (faults_) strike_at_any_time();
}

void Simulation::arrive(const Arrival& arrival) {
  const std::size_t function = arrival.function;
  const InvocationId id(next_invocation_++);
  const Duration work =
      arrival.service.value_or(varied(scenario_.functions[function].warm, function, runs_[function]++));
  invocations_[id] = {function, now_, work};
  if (faults_) invocations_[id].asynchronous = faults_->below(3) == 0;
  ++result_of(function).arrived;
  gaps_.queued(now_, function);
  ++queued_;
  bool accepted = true;
  tell([&](Actions& out) { accepted = core_->arrive(now_, id, flow_of(function), out).has_value(); });
  if (!accepted) {
    ++result_of(function).refused;
    gaps_.unqueued(now_, function);
    --queued_;
    invocations_.erase(id);
    expect_after_answer(function);
  }
}

void Simulation::expect_after_answer(std::size_t function) {
  const auto next = arrivals_->after_answer(now_, function);
  if (!next || *next >= Instant(scenario_.duration)) return;
  events_.add(*next, EventKind::kArrival, function);
  ++thinking_;
}

void Simulation::handle(const Event& event) {
  const InstanceId instance(event.subject);
  switch (event.kind) {
    case EventKind::kArrival:
      --thinking_;
      arrive({event.at, static_cast<std::size_t>(event.subject)});
      break;
    case EventKind::kReady: allocate(instance); break;
    case EventKind::kIdle: report([&](Actions& out) { core_->instance_idle(now_, instance, out); }); break;
    case EventKind::kGone:
      release(instance);
      report([&](Actions& out) { core_->instance_gone(now_, instance, out); });
      break;
    case EventKind::kSwappedIn: end_swap_in(event); break;
    case EventKind::kSwappedOut: end_swap_out(event); break;
  }
}

void Simulation::end_on_gpu(GpuId id) {
  const GpuModel::Finished finished = gpu(id).finish(now_);
  schedule_end(id);
  if (!finished.invocation) return allocate(finished.instance);
  report([&](Actions& out) { core_->answered(now_, finished.invocation, false, gpu_time(finished.invocation), out); });
  if (strikes(Fault::kNeverReturns)) return;
  if (is_quiet()) {  // the event would be the next
    tell([&](Actions& out) { core_->instance_idle(now_, finished.instance, out); });
  } else {
    events_.add(now_, EventKind::kIdle, finished.instance.value());
  }
}

bool Simulation::has_work() const {
  return next_arrival_ || !invocations_.empty() || thinking_ > 0;
}

// Nothing else happens at this instant, and nothing may strike.
bool Simulation::is_quiet() const {
  const auto is_now = [this](std::optional<Instant> at) { return at && *at <= now_; };
  return !faults_ && has_work() && (events_.empty() || events_.first().at > now_) &&
         (gpu_ends_.empty() || gpu_ends_.top_key().at > now_) && !is_now(core_->next_wakeup());
}

// Empty: all of its run.
std::optional<Duration> Simulation::gpu_time(InvocationId id) const {
  const Invocation* invocation = invocations_.find(id);
  if (invocation == nullptr) return std::nullopt;
  const double share = scenario_.functions[invocation->function].gpu_share;
  if (share >= 1) return std::nullopt;
  return from_seconds(to_seconds(now_ - invocation->delivered) * share);
}

Actions Simulation::take_list() {
  if (scratch_.empty()) return {};
  Actions list = std::move(scratch_.back());
  scratch_.pop_back();
  return list;
}

void Simulation::carry_out(Actions actions) {
  for (const Action& action : actions) {
    hash(action.index());
    std::visit([this](const auto& a) { perform(a); }, action);
  }
  actions.clear();
  scratch_.push_back(std::move(actions));
}

void Simulation::perform(const StartInstance& action) {
  const auto function = static_cast<std::size_t>(action.flow.value() - 1);
  hash(action.instance.value());
  instances_[action.instance] = {function, action.gpu};
  Duration start = varied(scenario_.functions[function].cold_start, function, ~starts_[function]++);
  if (start_goes_wrong(action.instance, start)) return;
  gpu(action.gpu).begin_start(now_, action.instance, start);
  schedule_end(action.gpu);
}

void Simulation::perform(const StopInstance& action) {
  hash(action.instance.value());
  const GpuId id = instances_.at(action.instance).gpu;
  const bool was_starting = gpu(id).stop(now_, action.instance);
  schedule_end(id);
  events_.add(now_, EventKind::kGone, action.instance.value());
  if (was_starting) events_.add(now_, EventKind::kReady, action.instance.value());  // said too late, as by a real one
}

void Simulation::perform(const Deliver& action) {
  hash(action.invocation.value());
  Invocation& invocation = invocations_.at(action.invocation);
  invocation.delivered = now_;
  invocation.gpu = action.gpu;
  --queued_;
  gaps_.unqueued(now_, invocation.function);
  gaps_.started(now_, invocation.function);
  // It has been the head of its queue since the one before it went, or since it came.
  Instant& head_since = last_delivered_[invocation.function];
  head_since = std::max(head_since, invocation.arrived);
  FunctionResult& result = result_of(invocation.function);
  result.greatest_wait = std::max(result.greatest_wait, now_ - head_since);
  head_since = now_;
  LiveInstance& instance = instances_.at(action.instance);
  if (instance.away > Bytes(0)) {
    instance.waiting = action.invocation;
  } else {
    begin_run(action.instance, action.invocation);
  }
}

void Simulation::begin_run(InstanceId instance, InvocationId id) {
  const Invocation* invocation = invocations_.find(id);
  if (invocation == nullptr || run_goes_wrong(instance, id)) return;  // it timed out, waiting
  const GpuId on = instances_.at(instance).gpu;
  gpu(on).start(now_, id, instance, invocation->work);
  schedule_end(on);
}

void Simulation::perform(const Complete& action) {
  hash(action.invocation.value());
  const Invocation& invocation = invocations_.at(action.invocation);
  const std::size_t function = invocation.function;
  FunctionResult& result = result_of(function);
  if (invocation.gpu) {
    gaps_.ended(now_, function);
  } else {
    gaps_.unqueued(now_, function);
    --queued_;
  }
  if (action.outcome == OutcomeKind::kSuccess) {
    ++result.answered;
    count_start(result, action.start);
    const Duration latency = now_ - invocation.arrived;
    result.latency.add(latency);
    result_.latency.add(latency);
    result.service_seconds += to_seconds(action.service);
    if (result_.timeline.size() < kTimeline) {
      result_.timeline.push_back({invocation.gpu.value(), function, to_seconds(invocation.delivered - Instant{}),
                                  to_seconds(now_ - Instant{}), action.start == StartKind::kCold});
    }
  } else {
    ++result.failed;
  }
  invocations_.erase(action.invocation);
  expect_after_answer(function);
}

void Simulation::count_start(FunctionResult& result, StartKind start) {
  switch (start) {
    case StartKind::kCold: ++result.cold; break;
    case StartKind::kHostWarm: ++result.host_warm; break;
    case StartKind::kDeviceWarm: ++result.device_warm; break;
  }
}

void Simulation::schedule_end(GpuId id) {
  const auto slot = static_cast<std::uint32_t>(id.value() - 1);
  if (const auto end = gpu(id).next_end()) {
    gpu_ends_.set(slot, {*end, events_.take_order()});
  } else {
    gpu_ends_.erase(slot);
  }
}

Duration Simulation::varied(Duration typical, std::size_t function, std::uint64_t number) const {
  if (scenario_.noise <= 0) return typical;
  Rng rng(seed_ ^ (function + 1) * 0x9e3779b97f4a7c15u ^ number * 0xd1b54a32d192ed03u);
  const double factor = std::clamp(1.0 + scenario_.noise * bell(rng), 0.1, 4.0);
  return Duration(static_cast<Duration::rep>(static_cast<double>(typical.count()) * factor));
}

void Simulation::sample() {
  next_sample_ = now_ + scenario_.duration / kSamples;
  Sample sample{to_seconds(now_ - Instant{}), queued_, {}};
  sample.served.reserve(result_.functions.size());
  for (const FunctionResult& function : result_.functions)
    sample.served.push_back(static_cast<float>(function.service_seconds));
  result_.samples.push_back(std::move(sample));
}

void Simulation::hash(std::uint64_t value) {
  const auto now = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  result_.state_hash = Rng(result_.state_hash ^ value ^ now << 7).next();
}

}  // namespace fairlead::sim
