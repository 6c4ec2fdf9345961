#include "decide/core/core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "decide/core/holds.h"
#include "decide/core/seats.h"
#include "decide/core/state.h"

namespace fairlead {
namespace {

FlowShare share_of(const FlowSpec& spec) {
  return {.weight = spec.weight,
          .tenant = spec.tenant,
          .objective = spec.objective,
          .width_percent = spec.width_percent,
          .family = spec.family};
}

}  // namespace

Status validate(const CoreOptions& options) {
  if (options.slots_per_gpu < 1) {
    return fail(Errc::kInvalidArgument, "slots_per_gpu is 0, it must be at least 1");
  }
  if (options.instances_per_gpu < options.slots_per_gpu) {
    return fail(Errc::kInvalidArgument, "instances_per_gpu is {}, it must be at least slots_per_gpu, which is {}",
                options.instances_per_gpu, options.slots_per_gpu);
  }
  const std::size_t lanes = std::max(options.task_lanes, options.most_task_lanes);
  if (options.instances_per_gpu < lanes) {
    return fail(Errc::kInvalidArgument, "instances_per_gpu is {}, it must be at least the lanes of kernel tasks, {}",
                options.instances_per_gpu, lanes);
  }
  if (options.start_deadline <= Duration(0) || options.return_deadline <= Duration(0)) {
    return fail(Errc::kInvalidArgument, "start_deadline is {} s and return_deadline is {} s, both must be above 0",
                to_seconds(options.start_deadline), to_seconds(options.return_deadline));
  }
  if (options.move_deadline <= Duration(0) || options.room_deadline <= Duration(0)) {
    return fail(Errc::kInvalidArgument, "move_deadline is {} s and room_deadline is {} s, both must be above 0",
                to_seconds(options.move_deadline), to_seconds(options.room_deadline));
  }
  return {};
}

std::string_view eviction_name(EvictionKind kind) {
  switch (kind) {
    case EvictionKind::kLru: return "lru";
    case EvictionKind::kInactiveFirst: return "inactive-first";
    case EvictionKind::kCost: return "cost";
  }
  return "unknown";
}

std::optional<EvictionKind> eviction_named(std::string_view name) {
  for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kInactiveFirst, EvictionKind::kCost}) {
    if (name == eviction_name(kind)) return kind;
  }
  return std::nullopt;
}

namespace {

std::unique_ptr<SwapPolicy> make_swap(EvictionKind kind) {
  if (kind == EvictionKind::kCost) return std::make_unique<CostAwareSwap>();
  return std::make_unique<LruSwap>();
}

}  // namespace

Core::State::State(CoreOptions core_options, std::unique_ptr<FlowQueue> queue)
    : tables{.options = core_options, .queue = std::move(queue)},
      outlook(tables, core_options.eviction),
      residency({core_options.memory_policy, core_options.move_deadline, core_options.room_deadline},
                make_swap(core_options.eviction), outlook) {}

Core::Core(CoreOptions options, std::unique_ptr<FlowQueue> policy) {
  const Status valid = validate(options);
  FL_CHECK(valid, "{}", valid.error().message);
  FL_CHECK(policy != nullptr);
  state_ = std::make_unique<State>(options, std::move(policy));
}

Core::~Core() = default;

// ---- configuration

void Core::add_gpu(const GpuSpec& gpu) {
  const std::size_t most = gpu.slots == 0 ? state_->tables.options.slots_per_gpu : gpu.slots;
  const std::size_t slots = gpu.is_dynamic ? 1 : most;
  state_->tables.pool.add_gpu(
      gpu.gpu,
      {.slots = gpu.only_seats ? 0 : slots, .clients = state_->tables.options.instances_per_gpu, .memory = gpu.memory});
  state_->tables.slices.set_profile(gpu.gpu, gpu.mig_profile);
  state_->residency.add_gpu(gpu.gpu, gpu.memory);
  state_->devices.add(gpu, most);
  state_->lanes.add(gpu);
}

void Core::add_function(const FlowSpec& spec) {
  FL_CHECK(state_->tables.functions.try_emplace(spec.flow, {spec}).second, "flow {} is there already",
           spec.flow.value());
  state_->tables.slices.set_wanted(spec.flow, spec.mig_profile);
  state_->residency.add_function(spec.flow, spec.expected_memory);
  state_->tables.queue->add_flow(spec.flow, share_of(spec));
  state_->tables.invocations.know(spec.tenant);
  state_->tables.queue->set_max_concurrency(spec.flow, spec.max_concurrency);
  state_->news.note_supply(spec.flow);
  Actions none;  // nothing follows before the next event
  State::Seats{*state_, Instant(), none}.keep(state_->tables.functions.at(spec.flow));
}

void Core::prepare(FlowId flow) {
  if (starts_ahead(state_->tables) && state_->tables.functions.contains(flow)) state_->kept.to_prepare.push_back(flow);
}

void Core::update_function(Instant now, const FlowSpec& spec, Actions& out, Instances instances) {
  CoreFunction* function = state_->tables.functions.find(spec.flow);
  if (function == nullptr) return;
  function->spec = spec;
  state_->tables.slices.set_wanted(spec.flow, spec.mig_profile);
  state_->tables.invocations.know(spec.tenant);
  function->seat_retries = {};
  const State::Seats seats{*state_, now, out};
  if (instances == Instances::kKept) seats.renew(*function);
  seats.keep(*function);
  state_->residency.update_function(spec.flow, spec.expected_memory);
  state_->tables.queue->set_share(spec.flow, share_of(spec));
  if (instances == Instances::kReplaced) state_->retire_instances(now, spec.flow, out);
  state_->limit_concurrency(now, spec.flow, out);
  state_->dispatch(now, out);
}

void Core::set_max_concurrency(Instant now, FlowId flow, std::optional<std::size_t> limit, Actions& out) {
  CoreFunction* function = state_->tables.functions.find(flow);
  if (function == nullptr) return;
  function->spec.max_concurrency = limit;
  state_->limit_concurrency(now, flow, out);
  state_->dispatch(now, out);
}

void Core::remove_function(Instant now, FlowId flow, Actions& out) {
  if (!state_->tables.functions.contains(flow)) return;
  const std::vector<Instance*> all = state_->tables.pool.of_flow(flow);  // a copy: stop() changes it
  for (Instance* instance : all) {
    if (instance->life.runs()) {
      state_->tables.pool.take(*instance, InstanceEvent::kRetired);
      continue;
    }
    state_->end_bound(now, *instance, OutcomeKind::kRemoved, OutcomeKind::kRemoved, out);
    state_->keeper.stop(now, instance->id, StopReason::kFunctionChanged, out);
  }
  state_->complete_queued(now, flow, OutcomeKind::kRemoved, out);
  State::Seats{*state_, now, out}.forget(flow);
  State::Holds{*state_, now, out}.forget(flow);
  state_->tables.queue->remove_flow(flow);
  state_->tables.functions.erase(flow);
  state_->tables.slices.set_wanted(flow, "");
  state_->residency.remove_function(flow);
  state_->lanes.forget(flow);
  state_->dispatch(now, out);
}

// ---- events

Status Core::arrive(Instant now, InvocationId invocation, FlowId flow, Actions& out, Instant deadline) {
  Status admitted = admit(state_->tables, flow);
  if (!admitted) {
    state_->tables.invocations.refuse();
    return admitted;
  }
  const TenantId tenant = state_->tables.functions.at(flow).spec.tenant;
  state_->tables.invocations.arrive(now, invocation, flow, tenant, deadline);
  state_->tables.queue->on_arrival(now, flow, invocation);
  state_->note_call(flow);
  state_->dispatch(now, out);
  return {};
}

// Something is queued that was not, or again: those who foresee the next call are told how often the flow is called.
void Core::State::note_call(FlowId flow) {
  ArrivalPace& pace = tables.functions.at(flow).pace;
  pace = tables.queue->view(flow).pace;
  residency.called(flow, pace);
}

void Core::cancel(Instant now, InvocationId invocation, Actions& out) {
  const LiveInvocation* found = state_->tables.invocations.find(invocation);
  if (found == nullptr || found->instance) return;
  FL_CHECK(state_->tables.queue->cancel(now, found->flow, invocation), "invocation {}", invocation.value());
  state_->tables.invocations.complete(now, invocation, OutcomeKind::kCancelled, Duration(0), out);
  state_->dispatch(now, out);
}

void Core::instance_ready(Instant now, InstanceId instance, Actions& out) {
  state_->ready(now, instance, out);
}

void Core::instance_gone(Instant now, InstanceId instance, Actions& out) {
  state_->gone(now, instance, out);
}

void Core::answered(Instant now, InvocationId invocation, bool is_error, std::optional<Duration> gpu_time,
                    Actions& out) {
  state_->answered(now, invocation, is_error, gpu_time, out);
}

void Core::answered_early(Instant now, InvocationId invocation, bool is_error, Duration gpu_time, Actions& out) {
  state_->answered_early(now, invocation, is_error, gpu_time, out);
}

void Core::work_ended(Instant now, InstanceId instance, std::optional<Duration> gpu_time, Actions& out) {
  state_->work_ended(now, instance, gpu_time, out);
}

void Core::loaded(Instant now, InvocationId invocation, Actions& out) {
  state_->loaded(now, invocation, out);
}

void Core::owes(FlowId flow, Duration gpu_time) {
  if (CoreFunction* function = debtor(state_->tables, flow)) function->owed += gpu_time;
}

void Core::instance_idle(Instant now, InstanceId instance, Actions& out) {
  state_->idle(now, instance, out);
}

void Core::set_reload(InstanceId instance, Duration reload) {
  state_->keeper.set_reload(instance, reload);
}

void Core::set_residence(InstanceId instance, const SessionResidence& residence) {
  state_->tables.pool.set_residence(instance, residence);
  state_->keeper.set_reload(instance, residence.reload);
}

void Core::set_session_memory(InstanceId instance, const SessionMemory& memory) {
  if (state_->tables.pool.find(instance) != nullptr) state_->tables.pool.set_session_memory(instance, memory);
}

void Core::drain(Instant now, Actions& out) {
  state_->tables.draining = true;
  state_->dispatch(now, out);
}

bool Core::drained() const {
  return state_->tables.invocations.empty();
}

void Core::shut_down(Instant now, Actions& out) {
  state_->tables.draining = true;
  for (const InstanceId id : state_->tables.pool.ids()) {
    state_->end_bound(now, *state_->tables.pool.find(id), OutcomeKind::kShutdown, OutcomeKind::kShutdown, out);
    state_->keeper.stop(now, id, StopReason::kShutdown, out);
  }
  state_->complete_queued(now, FlowId(), OutcomeKind::kShutdown, out);
}

std::optional<Instant> Core::next_wakeup() const {
  Instant next = state_->tables.queue->next_expiry().value_or(Instant::max());
  if (state_->tables.pool.has_turn() && state_->tables.queue->queued() > 0) {
    next = std::min(next, state_->tables.queue->next_chance().value_or(Instant::max()));
    next = std::min(next, state_->dispatchable.answers().patient_until());
  }
  next = std::min(next, state_->keeper.next_deadline());
  next = std::min({next, state_->tables.invocations.next_due(), state_->kept.next_start, state_->kept.next_end});
  next = std::min(next, state_->residency.next_deadline().value_or(Instant::max()));
  return next == Instant::max() ? std::nullopt : std::optional(next);
}

void Core::wake(Instant now, Actions& out) {
  state_->expire_deadlines(now, out);
  state_->tables.queue->expire(now);
  for (const InstanceId id : state_->residency.expire(now)) {
    if (Instance* there = state_->tables.pool.find(id)) state_->keeper.count_memory(*there);
  }
  state_->dispatch(now, out);
}

// ---- views

namespace {

// People see what returns as busy.
InstanceState seen_as(const InstanceLife& life) {
  if (life.starts()) return InstanceState::kStarting;
  return life.spare() && !life.returning() ? InstanceState::kIdle : InstanceState::kBusy;
}

}  // namespace

FlowView Core::flow(FlowId flow) const {
  return state_->tables.queue->view(flow);
}

std::vector<InstanceView> Core::instances() const {
  std::vector<InstanceView> views;
  for (const InstanceId id : state_->tables.pool.ids()) {
    const Instance& i = *state_->tables.pool.find(id);
    views.push_back({id, i.flow, i.gpu, seen_as(i.life), i.last_used});
    if (const MemoryUse* use = state_->residency.use(id)) views.back().memory = *use;
    views.back().seated = i.terms.is_seated;
    views.back().entitled = i.terms.is_entitled;
  }
  return views;
}

Bytes Core::expected_memory(FlowId flow) const {
  return state_->residency.expected(flow);
}

std::vector<GpuView> Core::gpus() const {
  std::vector<GpuView> views;
  for (const Gpu* gpu : state_->tables.pool.gpus()) {
    const auto works = [](const Instance* instance) { return instance->life.works(); };
    const auto answered_early = std::count_if(gpu->instances.begin(), gpu->instances.end(), works);
    views.push_back({gpu->id, gpu->slots_in_use, gpu->instances.size(), gpu->memory_in_use, gpu->capacity.slots,
                     gpu->serves, gpu->starting_ahead, static_cast<std::size_t>(answered_early), gpu->unreported});
    views.back().state = state_->devices.state(gpu->id);
    views.back().reason = state_->devices.reason(gpu->id);
    views.back().daemon_restarts = state_->devices.daemon_restarts(gpu->id);
    views.back().task_lanes = gpu->task_lanes().lanes;
    views.back().task_loads = gpu->loading;
    const auto runs_entitled = [](const Instance* i) { return i->terms.is_entitled && i->life.holds_slot(); };
    views.back().entitled_in_use =
        static_cast<std::size_t>(std::count_if(gpu->instances.begin(), gpu->instances.end(), runs_entitled));
  }
  return views;
}

CoreCounters Core::counters() const {
  const LiveInvocations::Counts& invocations = state_->tables.invocations.counts();
  CoreCounters counters;
  counters.arrived = invocations.arrived;
  counters.rejected = invocations.refused;
  counters.completed = invocations.completed;
  counters.failed = invocations.failed;
  counters.cold_starts = state_->keeper.started();
  counters.device_warm_starts = invocations.device_warm_starts;
  counters.host_warm_starts = invocations.host_warm_starts;
  counters.evictions = state_->keeper.evicted();
  counters.loads_given_up = state_->runs.loads_given_up();
  counters.memory = state_->residency.counters();
  counters.idle_slots = state_->idle_slots.seconds();
  return counters;
}

IdleReason Core::idle_reason() const {
  return state_->idle_slots.reason();
}

Obstacle Core::obstacle(FlowId flow) const {
  const Supply supply = state_->tables.functions.at(flow).told_supply;
  if (supply == Supply::kSeats) return Obstacle::kItself;
  const bool needs_start = starts_ahead(state_->tables) && supply != Supply::kReady;
  return needs_start ? state_->planner.obstacle(flow) : state_->dispatchable.obstacle(flow);
}

Learnt Core::learnt(FlowId flow) const {
  const CoreFunction& function = state_->tables.functions.at(flow);
  Learnt all{.failed = function.seat_retries.starts_failed(), .cold_start = function.cold_start.known()};
  for (const auto& [profile, times] : function.slice_times.all()) {
    all.on_slices[profile] = {.cold_start = times.start.or_nothing(), .run = times.run.or_nothing()};
  }
  return all;
}

const FlowQueue& Core::policy() const {
  return *state_->tables.queue;
}

}  // namespace fairlead
