#include "node/node.h"

#include <unistd.h>

#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/tenant.h"
#include "runtime/sandbox_process.h"

namespace fairlead {

Result<std::unique_ptr<Node>> Node::create(boost::asio::io_context& io, NodeOptions options) {
  if (Status valid = validate(options.core); !valid) return fail(valid.error());
  auto policy = make_policy(options.policy, options.policy_options);
  if (!policy) return fail(policy.error());
  Tenants(options.tenants).tell(**policy);
  std::unique_ptr<Node> node(new Node(io, std::move(options), *std::move(policy)));

  // The spawner is forked before the store's thread starts.
  auto host = InstanceHost::create(io, node->options_.host, node->instance_events());
  if (!host) return fail(host.error());
  node->host_ = *std::move(host);
  node->make_shims();
  node->make_charges();
  auto store = Store::open(io, node->options_.state_dir);
  if (!store) return fail(store.error());
  node->store_ = *std::move(store);
  auto objects = ObjectStore::open(io, node->options_.objects);
  if (!objects) return fail(objects.error());
  node->objects_ = *std::move(objects);
  node->object_sockets_ = std::make_unique<ObjectSockets>(io, *node->objects_, node->options_.state_dir + "/run");
  node->graphs_ =
      std::make_unique<GraphRuns>(io, *node, *node->objects_, [functions = &node->functions_](const std::string& name) {
        const RegisteredFunction* function = functions->find(name);
        return function != nullptr && function->kernel_task != nullptr;
      });
  node->make_device_servers();
  node->worker_ = std::make_unique<Worker>(io);
  node->tenant_worker_ = std::make_unique<TenantWorker>(io);
  if (const std::uint64_t bytes = node->options_.history_bytes; bytes > 0) {
    auto history = History::open(io, node->options_.state_dir + "/history", bytes);
    if (!history) return fail(history.error());
    node->history_ = *std::move(history);
  }
  node->images_ = std::make_unique<ImageStore>(
      ImageStoreOptions{.state_dir = node->options_.state_dir, .root = geteuid() == 0, .functions_id = kSandboxUid});
  node->image_worker_ = std::make_unique<Worker>(io);

  if (Status recovered = node->recover(); !recovered) return fail(recovered.error());
  return node;
}

Node::Node(boost::asio::io_context& io, NodeOptions options, std::unique_ptr<QueuePolicy> policy)
    : io_(io),
      options_(std::move(options)),
      started_(monotonic_now()),
      epoch_(std::chrono::milliseconds(wall_clock_ms()) - started_.time_since_epoch()),
      tenants_(options_.tenants),
      events_(options_.events),
      core_(options_.core, std::move(policy)),
      timer_(io),
      event_timer_(io),
      memory_timer_(io) {
  request_stats_.duration_histogram.resize(std::size(kDurationBucketsSeconds) + 1);
}

Node::~Node() {
  if (images_) images_->stop();  // else the worker's end would wait for a registry
}

namespace {

// Of a function that was registered before: what was valid then is now.
std::shared_ptr<const BundledTask> kernel_task_of(const FunctionRecord& record) {
  if (!is_kernel_task(record.code_path)) return nullptr;
  auto task = read_kernel_task(record.code_path);
  if (task) return std::make_shared<const BundledTask>(*std::move(task));
  spdlog::error("kernel task {} cannot be read any more: {}", record.name, task.error().message);
  return nullptr;
}

}  // namespace

Status Node::recover() {
  auto records = store_->load_functions();
  if (!records) return fail(records.error());
  for (FunctionRecord& record : *records) {
    const RegisteredFunction& function = functions_.add(record, kernel_task_of(record));
    core_.add_function(flow_spec(function.flow, function.record, tenants_));
    if (function.kernel_task) core_.prepare(function.flow);
  }
  remove_unused_bundles(options_.state_dir, functions_.code_paths());
  remove_unused_images(options_.state_dir, functions_.code_paths());

  auto events = store_->load_events();
  if (!events) return fail(events.error());
  for (QueuedEvent& event : *events) events_.restore(std::move(event));
  if (!records->empty() || !events->empty()) {
    spdlog::info("found {} functions and {} waiting asynchronous invocations", records->size(), events->size());
  }
  return {};
}

void Node::use_gpus(std::unique_ptr<GpuMonitor> monitor, std::unique_ptr<GpuSharing> sharing) {
  gpus_ = std::move(monitor);
  sharing_ = std::move(sharing);
  sharing_->connect(gpu_control());
  for (const GpuSample& gpu : gpus_->samples()) {
    core_.add_gpu({.gpu = gpu.gpu, .memory = gpu.memory_total, .tokens = sharing_->tokens(gpu.gpu)});
  }
  gpus_->start(io_, [this](const GpuObservation& observation) { observe(observation); });
  submit_events();
}

void Node::observe(const GpuObservation& observation) {
  sharing_->observe(monotonic_now(), observation, core_.gpus(), core_.policy().queued() > 0);
  compare_with_devices(observation.processes);
  Actions actions;
  for (const GpuSample& gpu : observation.samples) {
    if (gpu.failure.empty()) core_.device_memory_used(monotonic_now(), gpu.gpu, gpu.memory_used, actions);
  }
  carry_out(std::move(actions));
}

GpuSharing::Control Node::gpu_control() {
  const auto tell = [this](auto call) {
    Actions actions;
    call(actions);
    carry_out(std::move(actions));
  };
  return {
      .drain = [this, tell](GpuId gpu) { tell([&](Actions& out) { core_.drain_gpu(monotonic_now(), gpu, out); }); },
      .restore = [this, tell](GpuId gpu) { tell([&](Actions& out) { core_.restore_gpu(monotonic_now(), gpu, out); }); },
      .set_tokens =
          [this, tell](GpuId gpu, std::size_t tokens) {
            tell([&](Actions& out) { core_.set_tokens(monotonic_now(), gpu, tokens, out); });
          },
  };
}

InstanceEvents Node::instance_events() {
  return {
      .next = [this](InstanceId instance) { on_next(instance); },
      .answered = [this](InstanceId instance, Answer answer) { on_answered(instance, std::move(answer)); },
      .gone = [this](InstanceId instance, const ExitInfo& exit) { on_gone(instance, exit); },
      .residence = [this](InstanceId instance, const SessionResidence& is) { core_.set_residence(instance, is); },
      .session_memory = [this](InstanceId instance,
                               const SessionMemory& has) { core_.set_session_memory(instance, has); },
  };
}

void Node::on_next(InstanceId instance) {
  const auto it = instances_.find(instance);
  if (it == instances_.end()) return;  // being killed
  Actions actions;
  if (std::exchange(it->second.ready, true)) {
    core_.instance_idle(monotonic_now(), instance, actions);
  } else {
    core_.instance_ready(monotonic_now(), instance, actions);
  }
  carry_out(std::move(actions));
}

void Node::on_answered(InstanceId instance, Answer answer) {
  const InvocationId invocation = answer.invocation;
  const auto it = live_.find(invocation);
  if (it == live_.end()) return;  // timed out a moment ago
  const bool is_error = answer.is_error;
  if (wants_log_tail(it->second)) it->second.log_tail = host_->stats(instance).log_tail;
  it->second.answer = std::move(answer);
  Actions actions;
  // First, so that what follows from the answer knows what the instance holds.
  const std::optional<ShimUse> use = report_memory(instance, actions);
  const std::optional<Duration> used = used_since_delivery(instance, use);
  if (goes_on(instance, use)) {
    after_answers_->add(instance, invocation);
    core_.answered_early(monotonic_now(), invocation, is_error, used.value_or(Duration(0)), actions);
  } else {
    core_.answered(monotonic_now(), invocation, is_error, used, actions);
  }
  carry_out(std::move(actions));
}

void Node::on_gone(InstanceId instance, const ExitInfo& exit) {
  instances_.erase(instance);
  after_answers_->forget(instance);
  books_.gone(instance);
  if (shims_) shims_->remove(instance);
  Actions actions;
  core_.instance_gone(monotonic_now(), instance, actions);
  for (const Action& action : actions) {
    const auto* complete = std::get_if<Complete>(&action);
    if (complete == nullptr) continue;
    const auto it = live_.find(complete->invocation);
    if (it == live_.end()) continue;
    it->second.failure = exit.reason;
    if (!exit.init_error_payload.empty()) it->second.answer = Answer{.payload = exit.init_error_payload};
  }
  carry_out(std::move(actions));
  sharing_->instance_gone(instance);
}

// An action may cause events whose actions follow from a later state of the core, so they wait until all earlier ones
// are carried out.
void Node::carry_out(Actions actions) {
  pending_.insert(pending_.end(), actions.begin(), actions.end());
  if (carrying_out_) return;
  carrying_out_ = true;
  while (!pending_.empty()) {
    const Action action = pending_.front();
    pending_.pop_front();
    std::visit([this](const auto& a) { act(a); }, action);
  }
  carrying_out_ = false;
  arm_timer();
  note_drained();
}

void Node::act(const StartInstance& action) {
  const RegisteredFunction* function = functions_.find(action.flow);
  FL_CHECK(function != nullptr, "flow {} has no function", action.flow.value());
  instances_[action.instance] = {action.flow, action.gpu};
  sharing_->instance_started(action.instance, action.gpu);
  watch_memory();
  if (function->kernel_task) return start_kernel_task(action, *function);
  InstanceSpec spec = instance_spec(action, *function);
  spec.shim = shim_access(action, *function);
  const std::string tenant = tenant_of(function->record.config.tags);
  if (Status offered = object_sockets_->offer(tenant, spec); !offered) {
    spdlog::error("function {} runs without objects: {}", spec.function, offered.error().message);
  }
  host_->start(std::move(spec));
}

void Node::act(const StopInstance& action) {
  const auto level = action.reason == StopReason::kNoRoom ? spdlog::level::info : spdlog::level::debug;
  spdlog::log(level, "instance {} stops: {}", action.instance.value(), stop_reason_name(action.reason));
  instances_.erase(action.instance);
  after_answers_->forget(action.instance);
  if (device_servers_->has(action.instance)) {
    device_servers_->kill(action.instance);
  } else {
    host_->kill(action.instance);
  }
}

void Node::act(const Deliver& action) {
  const auto it = live_.find(action.invocation);
  FL_CHECK(it != live_.end(), "invocation {} is not live", action.invocation.value());
  Live& live = it->second;
  live.instance = action.instance;
  live.gpu = action.gpu;
  live.delivered = monotonic_now();
  const Duration left = action.deadline - live.delivered;
  live.timeout = left;
  begin_charge(action.instance);
  watch_memory();
  DeliverRequest request{.id = action.invocation};
  std::string payload = live.event ? live.invocation.payload  // an event may have to be sent again
                                   : std::exchange(live.invocation.payload, {});
  request.invocation = live.invocation;
  request.invocation.payload = std::move(payload);
  request.deadline_epoch_ms = wall_clock_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  if (device_servers_->has(action.instance)) {
    device_servers_->deliver(action.instance, std::move(request));
  } else {
    host_->deliver(action.instance, std::move(request));
  }
}

void Node::arm_timer() {
  const auto next = core_.next_wakeup();
  if (!next || *next >= armed_at_) return;
  armed_at_ = *next;
  timer_.expires_at(std::chrono::steady_clock::time_point(next->time_since_epoch()));
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // re-armed for an earlier time
    armed_at_ = Instant::max();
    Actions actions;
    core_.wake(monotonic_now(), actions);
    carry_out(std::move(actions));
  });
}

void Node::drain(std::function<void()> drained) {
  graphs_->drain();
  draining_ = true;
  drained_ = std::move(drained);
  Actions actions;
  core_.drain(monotonic_now(), actions);
  for (const auto& [invocation, live] : live_) {
    if (live.event) core_.cancel(monotonic_now(), invocation, actions);  // stays on disk for the next start
  }
  carry_out(std::move(actions));
}

void Node::note_drained() {
  if (!draining_ || !drained_ || !core_.drained() || store_->pending_writes() > 0) return;
  boost::asio::post(io_, std::exchange(drained_, nullptr));
}

}  // namespace fairlead
