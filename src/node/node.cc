#include "node/node.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace fairlead {

Result<std::unique_ptr<Node>> Node::create(boost::asio::io_context& io, NodeOptions options) {
  if (Status valid = validate(options.core); !valid) return fail(valid.error());
  auto policy = make_policy(options.policy, options.policy_options);
  if (!policy) return fail(policy.error());
  std::unique_ptr<Node> node(new Node(io, std::move(options), *std::move(policy)));

  // The spawner is forked before the store's thread starts.
  auto host = InstanceHost::create(io, node->options_.host, node->instance_events());
  if (!host) return fail(host.error());
  node->host_ = *std::move(host);
  auto store = Store::open(io, node->options_.state_dir);
  if (!store) return fail(store.error());
  node->store_ = *std::move(store);
  node->worker_ = std::make_unique<Worker>(io);

  if (Status recovered = node->recover(); !recovered) return fail(recovered.error());
  return node;
}

Node::Node(boost::asio::io_context& io, NodeOptions options, std::unique_ptr<QueuePolicy> policy)
    : io_(io),
      options_(std::move(options)),
      started_(monotonic_now()),
      events_(options_.events),
      core_(options_.core, std::move(policy)),
      timer_(io),
      event_timer_(io) {}

Node::~Node() = default;

Status Node::recover() {
  auto records = store_->load_functions();
  if (!records) return fail(records.error());
  for (FunctionRecord& record : *records) {
    const RegisteredFunction& function = functions_.add(std::move(record));
    core_.add_function(flow_spec(function.flow, function.record));
  }
  remove_unused_bundles(options_.state_dir, functions_.code_paths());

  auto events = store_->load_events();
  if (!events) return fail(events.error());
  for (QueuedEvent& event : *events) events_.restore(std::move(event));
  if (!records->empty() || !events->empty()) {
    spdlog::info("found {} functions and {} waiting asynchronous invocations", records->size(), events->size());
  }
  return {};
}

void Node::use_gpus(std::unique_ptr<GpuMonitor> monitor) {
  gpus_ = std::move(monitor);
  for (const GpuSample& gpu : gpus_->samples()) core_.add_gpu({gpu.gpu, gpu.memory_total});
  gpus_->start(io_);
  submit_events();
}

InstanceEvents Node::instance_events() {
  return {
      .next = [this](InstanceId instance) { on_next(instance); },
      .answered = [this](InstanceId instance, Answer answer) { on_answered(instance, std::move(answer)); },
      .gone = [this](InstanceId instance, const ExitInfo& exit) { on_gone(instance, exit); },
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
  core_.answered(monotonic_now(), invocation, is_error, std::nullopt, actions);
  carry_out(std::move(actions));
}

void Node::on_gone(InstanceId instance, const ExitInfo& exit) {
  instances_.erase(instance);
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
  host_->start(instance_spec(action, *function));
}

void Node::act(const StopInstance& action) {
  spdlog::debug("instance {} stops: {}", action.instance.value(), stop_reason_name(action.reason));
  instances_.erase(action.instance);
  host_->kill(action.instance);
}

void Node::act(const Deliver& action) {
  const auto it = live_.find(action.invocation);
  FL_CHECK(it != live_.end(), "invocation {} is not live", action.invocation.value());
  Live& live = it->second;
  live.instance = action.instance;
  live.gpu = action.gpu;
  const Duration left = action.deadline - monotonic_now();
  live.timeout = left;
  DeliverRequest request{.invocation = action.invocation, .request_id = live.request_id};
  request.payload = live.event ? live.payload : std::move(live.payload);  // an event may have to be sent again
  request.client_context = live.client_context;
  request.trace_id = live.trace_id;
  request.deadline_epoch_ms = wall_clock_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  host_->deliver(action.instance, std::move(request));
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
