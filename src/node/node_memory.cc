// Device memory between the core and the shims: orders one way, answers and reports the other, and the GPU time that
// flows are charged.
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "node/node.h"
#include "wire/shim_codec.h"

namespace fairlead {
namespace {

// Of an order's deadline, how long its process may wait for its own work to end; the rest is for copying.
constexpr int kQuiesceShare = 4;

MemoryUse memory_use(const ShimUse& use) {
  return {.held = use.held, .resident = use.resident, .away = use.away, .fixed = use.fixed};
}

MoveDirection direction_of(SwapDirection direction) {
  return direction == SwapDirection::kOut ? MoveDirection::kOut : MoveDirection::kIn;
}

MoveOutcome outcome_of(wire::MoveResult result) {
  switch (result) {
    case wire::MoveResult::kDone: return MoveOutcome::kDone;
    case wire::MoveResult::kPartly: return MoveOutcome::kPartly;
    case wire::MoveResult::kBusy: return MoveOutcome::kBusy;
    case wire::MoveResult::kNoRoom: return MoveOutcome::kNoRoom;
    case wire::MoveResult::kNothing: return MoveOutcome::kNothing;
    case wire::MoveResult::kFailed: return MoveOutcome::kFailed;
  }
  return MoveOutcome::kFailed;
}

}  // namespace

void Node::make_shims() {
  if (!options_.shims) return;
  staging_worker_ = std::make_unique<Worker>(io_);
  ShimHostOptions options = *options_.shims;
  options.socket_dir = options_.host.state_dir + "/run";
  options.background = [this](std::function<bool()> job, std::function<void(bool)> done) {
    staging_worker_->run(std::move(job), std::move(done));
  };
  options.run_move = [this](GpuId gpu, std::function<void()> job, std::function<void()> done) {
    std::unique_ptr<Worker>& mover = movers_[gpu];
    if (!mover) mover = std::make_unique<Worker>(io_);
    auto run = [job = std::move(job)] { return job(), true; };
    mover->run(std::move(run), [done = std::move(done)](bool) { done(); });
  };
  ShimEvents events;
  events.moved = [this](InstanceId instance, const SwapOutcome& outcome) { on_swapped(instance, outcome); };
  events.needs_room = [this](InstanceId instance, std::uint64_t request, Bytes bytes) {
    spdlog::debug("instance {} needs room for {:.1f} MiB", instance.value(), bytes.mib());
    Actions actions;
    report_grown(actions);
    core_.needs_room(monotonic_now(), instance, request, bytes, actions);
    carry_out(std::move(actions));
  };
  events.wants_memory = [this](InstanceId instance) {
    Actions actions;
    core_.wants_memory(monotonic_now(), instance, actions);
    carry_out(std::move(actions));
  };
  events.usage_changed = [this](InstanceId instance) {
    Actions actions;
    report_memory(instance, actions);
    carry_out(std::move(actions));
  };
  shims_ = ShimHost::create(io_, std::move(options), std::move(events));
}

// An instance without a shim runs all the same: it is counted as its function is expected to need, and never moved.
std::optional<ShimAccess> Node::shim_access(const StartInstance& action, const RegisteredFunction& function) {
  if (!shims_) return std::nullopt;
  ShimTerms terms{.instance = action.instance, .gpu = action.gpu, .function = function.record.name};
  const auto settings = gpu_settings(function.record.config);
  if (settings && settings->memory_mib) terms.cap = mib(*settings->memory_mib);
  if (gpus_) terms.device_memory = gpus_->samples().at(action.gpu.value() - 1).memory_total;
  Result<ShimAccess> access = shims_->add(std::move(terms));
  if (access) return *std::move(access);
  spdlog::warn("instance {} of {} starts without the shim: {}", action.instance.value(), function.record.name,
               access.error().message);
  return std::nullopt;
}

std::optional<ShimUse> Node::measure(InstanceId instance) {
  if (!device_servers_->has(instance)) return shims_ ? shims_->measure(instance) : std::nullopt;
  const DeviceServers::Use use = device_servers_->use(instance);
  ShimUse as_shim;
  as_shim.held = as_shim.resident = as_shim.fixed = use.device;  // the device server moves it, not the core
  as_shim.gpu_time = use.gpu_time;
  return as_shim;
}

// What the core knows next; nothing when the instance has never used a GPU.
std::optional<ShimUse> Node::report_memory(InstanceId instance, Actions& out) {
  std::optional<ShimUse> use = measure(instance);
  if (!use) return use;
  const auto it = instances_.find(instance);
  if (it != instances_.end()) {
    it->second.reported = memory_use(*use);
    count_calls(it->second, use->calls);
  }
  core_.memory_report(monotonic_now(), instance, memory_use(*use), out);
  return use;
}

void Node::count_calls(LiveInstance& instance, const ShimCalls& calls) {
  const ShimCalls before = std::exchange(instance.counted, calls);
  RegisteredFunction* const function = functions_.find(instance.flow);
  if (function == nullptr) return;
  FunctionStats& stats = function->stats;
  stats.launches += calls.launches - before.launches;
  stats.gate_waits += calls.gate_waits - before.gate_waits;
  stats.passed_through += calls.passed_through - before.passed_through;
  stats.unhooked_functions += calls.unhooked_functions - before.unhooked_functions;
}

Duration Node::gpu_time_of(InstanceId instance) {
  const std::optional<ShimUse> use = measure(instance);
  return use ? use->gpu_time : Duration(0);
}

void Node::on_swapped(InstanceId instance, const SwapOutcome& outcome) {
  spdlog::debug("instance {} swapped {}: {}, {:.1f} MiB in {:.2f} ms, copying {:.2f} ms", instance.value(),
                outcome.direction == SwapDirection::kOut ? "out" : "in", wire::move_result_name(outcome.result),
                outcome.bytes.mib(), to_ms(outcome.total_time), to_ms(outcome.move_time));
  (outcome.direction == SwapDirection::kOut ? moves_.out : moves_.in) += outcome.move_time;
  Actions actions;
  report_memory(instance, actions);
  core_.memory_moved(monotonic_now(), instance, direction_of(outcome.direction), outcome_of(outcome.result), actions);
  carry_out(std::move(actions));
}

void Node::act(const SwapOutMemory& action) {
  if (shims_) {
    shims_->swap_out(action.instance, static_cast<std::uint64_t>(action.bytes.count()),
                     options_.core.move_deadline / kQuiesceShare);
  }
}

void Node::act(const SwapInMemory& action) {
  if (shims_) shims_->swap_in(action.instance);
}

void Node::act(const GrantRoom& action) {
  spdlog::debug("instance {} is {} room", action.instance.value(), action.granted ? "given" : "refused");
  if (shims_) shims_->grant_room(action.instance, action.request, action.granted);
}

// What the core decides about room rests on what it believes to be on the device: what starts side by side fills it within
// milliseconds, long before the next look. So a request for room is preceded by one, unless another just was.
void Node::report_grown(Actions& out) {
  constexpr Duration kFresh = std::chrono::milliseconds(1);
  const Instant now = monotonic_now();
  if (now - looked_at_memory_ < kFresh) return;
  looked_at_memory_ = now;
  std::vector<InstanceId> grown;  // a report may start and stop instances
  for (const auto& [id, instance] : instances_) {
    const std::optional<ShimUse> use = measure(id);
    if (use && memory_use(*use) != instance.reported) grown.push_back(id);
  }
  for (const InstanceId id : grown) report_memory(id, out);
}

// What runs may grow between two answers, and what starts: looked at every monitor period while anything does.
void Node::watch_memory() {
  if (!shims_ || std::exchange(watching_memory_, true)) return;
  memory_timer_.expires_after(GpuMonitor::kPeriod);
  memory_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    watching_memory_ = false;
    Actions actions;
    report_grown(actions);
    carry_out(std::move(actions));
    if (!live_.empty()) watch_memory();
  });
}

}  // namespace fairlead
