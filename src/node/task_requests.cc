#include "node/task_requests.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/tenant.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

constexpr std::size_t kMaxTasksBeingRead = 64;
// More is read, or hashed, on another thread: a megabyte of numbers takes 100 ms.
constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr Bytes kHashedAtOnce{1 << 20};

// Before it queues: a call that cannot work costs nobody a session. The session's own check has the same words.
Status check_call(const KernelTask& task, const std::string& payload) {
  const auto call = wire::is_binary(payload) ? wire::decode_kernel_task_call(payload)
                                             : wire::kernel_task_call_from_json(task, payload);
  if (!call) return fail(Errc::kInvalidArgument, "call: {}", call.error().message);
  if (Status valid = validate_call(task, *call); !valid) {
    return fail(valid.error().code, "call: {}", valid.error().message);
  }
  return {};
}

FunctionRecord record_of(const std::string& name, const TaskRun& run) {
  FunctionRecord record{.name = name};
  record.config.handler = "task.json";
  record.config.timeout_seconds = static_cast<int>(run.request.timeout_seconds);
  record.config.tags[kTenantTag] = run.tenant;
  return record;
}

}  // namespace

// What is large is hashed on the other thread, too.
TaskRequests::CancelHandle TaskRequests::run(TaskRun run, NodeService::Callback<Outcome> done) {
  Status valid = validate_tenant(run.tenant);
  if (valid) valid = validate_request(run.request);
  if (!valid) return done(fail(valid.error())), CancelHandle();
  InvokeRequest request;
  request.invocation.payload = std::move(run.request.call);
  request.sdk_invocation_id = std::move(run.sdk_invocation_id);
  request.invocation.trace_id = std::move(run.trace_id);
  request.invocation.deadline_ms = run.deadline_ms;
  auto waiter = std::make_shared<Waiter>(std::move(request), std::move(done));
  CancelHandle cancel = [waiter] {
    waiter->gone = true;
    waiter->done = nullptr;  // it owns the connection, which owns this
    if (waiter->cancel) waiter->cancel();
  };
  const Bytes bytes = size_of(run.request).bytes;
  if (bytes <= kHashedAtOnce) {
    const std::string name = requested_name(run.tenant, run.request);
    run_named(name, std::move(run), waiter);
    return cancel;
  }
  const auto shared = std::make_shared<TaskRun>(std::move(run));  // with the worker's job
  const Status accepted = worker_.run(shared->tenant, bytes, [this, shared, waiter] {
    return [this, shared, waiter, name = requested_name(shared->tenant, shared->request)] {
      if (!waiter->gone) run_named(name, std::move(*shared), waiter);
    };
  });
  if (!accepted) std::exchange(waiter->done, nullptr)(fail(accepted.error()));
  return cancel;
}

void TaskRequests::run_named(const std::string& name, TaskRun run, WaiterPtr waiter) {
  waiter->request.invocation.function = name;
  if (functions_.find_requested(name) != nullptr) return queue(name, std::move(waiter));
  if (!being_read_.contains(name) && being_read_.size() >= kMaxTasksBeingRead) {
    return std::exchange(waiter->done, nullptr)(
        fail(Errc::kResourceExhausted, "{} one-off tasks are being read, so many are possible; retry later",
             being_read_.size()));
  }
  Waiters& waiters = being_read_[name];
  waiters.push_back(std::move(waiter));
  if (waiters.size() > 1) return;
  const auto shared = std::make_shared<TaskRun>(std::move(run));  // with the worker's job
  const Status accepted = worker_.run(shared->tenant, size_of(shared->request).bytes, [this, name, shared] {
    auto task = std::make_shared<Result<BundledTask>>(read_requested_task(shared->request));
    return [this, name, shared, task] { add(name, std::move(*shared), std::move(*task)); };
  });
  if (accepted) return;
  const Waiters refused = std::move(being_read_.extract(name).mapped());
  std::exchange(refused.front()->done, nullptr)(fail(accepted.error()));
}

void TaskRequests::add(const std::string& name, TaskRun run, Result<BundledTask> task) {
  const Waiters waiters = std::move(being_read_.extract(name).mapped());
  const auto refuse_all = [&](const Error& error) {
    for (const auto& waiter : waiters) {
      if (!waiter->gone) std::exchange(waiter->done, nullptr)(fail(error));
    }
  };
  if (!task) return refuse_all(task.error());
  if (std::all_of(waiters.begin(), waiters.end(), [](const auto& waiter) { return waiter->gone; })) return;
  if (Status room = make_room_for(run); !room) return refuse_all(room.error());
  for (const auto& object : task->lent) objects_.lend(run.tenant, object);
  const RegisteredFunction& function =
      functions_.add_requested(record_of(name, run), std::make_shared<const BundledTask>(*std::move(task)));
  driver_.core().add_function(flow_spec(function, tenants_));
  kept_.add(name, size_of(run.request));
  for (const auto& waiter : waiters) {
    if (!waiter->gone) queue(name, waiter);
  }
}

Status TaskRequests::make_room_for(const TaskRun& run) {
  const auto in_use = [this](const std::string& name) {
    const FlowView flow = driver_.core().flow(functions_.find_requested(name)->flow);
    return flow.queued + flow.in_flight > 0;
  };
  const auto names = kept_.to_drop(size_of(run.request), in_use);
  if (!names) {
    const KeptTasks::Limits& limits = kept_.limits();
    return fail(
        Errc::kResourceExhausted,
        "of the {} different one-off tasks that are kept too many are in use: at most {}, of {} files and {:.0f} "
        "MiB together, are possible; retry later",
        kept_.count(), limits.tasks, limits.files, limits.bytes.mib());
  }
  for (const std::string& name : *names) {
    const FlowId flow = functions_.find_requested(name)->flow;
    driver_.tell([&](Core& core, Instant now, Actions& out) { core.remove_function(now, flow, out); });
    functions_.remove_requested(name);
    kept_.remove(name);
  }
  return {};
}

// The call is checked before it queues; one that is large, on the other thread.
void TaskRequests::queue(const std::string& name, WaiterPtr waiter) {
  kept_.use(name);
  const auto go_on = [this, name, waiter](const Status& valid) {
    if (waiter->gone) return;
    const RegisteredFunction* const function = functions_.find_requested(name);
    if (!valid || function == nullptr) {
      const Status gone = fail(Errc::kResourceExhausted, "its task was dropped for others meanwhile; retry");
      return std::exchange(waiter->done, nullptr)(fail((valid ? gone : valid).error()));
    }
    waiter->cancel = invocations_.invoke(*function, std::move(waiter->request), std::move(waiter->done));
  };
  const RegisteredFunction& function = *functions_.find_requested(name);
  const auto spec = function.kernel_task->spec;
  const std::string& payload = waiter->request.invocation.payload;
  if (payload.size() <= kReadAtOnce) return go_on(check_call(spec->task, payload));
  const std::string tenant = function.record.config.tags.at(kTenantTag);
  const Status accepted = worker_.run(tenant, Bytes(std::ssize(payload)), [go_on, spec, waiter] {
    return [go_on, valid = check_call(spec->task, waiter->request.invocation.payload)] { go_on(valid); };
  });
  if (!accepted) go_on(accepted);
}

TaskRequestsStatus TaskRequests::status() const {
  TaskRequestsStatus status{.kept = kept_.count(), .stats = functions_.requested_stats()};
  for (const auto& [name, function] : functions_.requested()) {
    const FlowView flow = driver_.core().flow(function.flow);
    status.queued += flow.queued;
    status.in_flight += flow.in_flight;
  }
  return status;
}

}  // namespace fairlead
