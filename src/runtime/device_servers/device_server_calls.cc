// DeviceServers' calls: from a payload to a frame, and from the server's answer to the function's.
#include <algorithm>
#include <boost/asio/steady_timer.hpp>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/device_servers/device_servers.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

void add(TaskPhases& sum, const TaskPhases& phases) {
  sum.kernel_run += phases.kernel_run;
  sum.kernel_init += phases.kernel_init;
  sum.device_malloc += phases.device_malloc;
  sum.device_copy += phases.device_copy;
  sum.data_layer += phases.data_layer;
  sum.overhead += phases.overhead;
}

}  // namespace

void DeviceServers::deliver(InstanceId instance, DeliverRequest request) {
  DeviceSession& session = sessions_.at(instance);
  FL_CHECK(!session.call, "instance {} has a call already", instance.value());
  const InvocationId invocation = request.id;
  const Duration patience = std::chrono::milliseconds(request.deadline_epoch_ms - wall_clock_ms());
  auto call = read_call(session.spec.task, instance, session.spec.tenant, request, monotonic_now(), patience);
  Status reserved;
  if (call) reserved = reserve_outputs(objects_, *call);
  session.call = invocation;
  if (!call || !reserved) {
    calls_.emplace(invocation, DeviceCall{.invocation = invocation, .instance = instance});
    const std::string what = (call ? reserved.error() : call.error()).message;
    return post([this, invocation, what] { fail_call(invocation, "KernelTask.InvalidCall", what); });
  }
  calls_.emplace(invocation, *std::move(call));
  happens(*session.server, &ServerLife::add_call, invocation, instance);
}

// Anew: what was begun before, with the server's last process or before something was missing, counts no more.
void DeviceServers::open_inputs(DeviceCall& call) {
  const std::uint64_t opening = ++call.openings;
  call.opening = 1;
  const InvocationId invocation = call.invocation;
  const auto one_less = [this, invocation, opening](const BoundPtr& bound, const Status& status) {
    const auto found = calls_.find(invocation);
    if (found == calls_.end() || found->second.openings != opening) return;
    DeviceCall& current = found->second;
    const auto session = sessions_.find(current.instance);
    if (session == sessions_.end()) return;  // nobody waits
    if (!status) {
      const BufferSpec& buffer = current.spec->task.buffers[bound->buffer];
      return fail_call(invocation, "KernelTask.ObjectNotFound",
                       fmt::format("{} {}: {}", buffer_role_name(buffer.role), buffer.name, status.error().message));
    }
    if (--current.opening > 0) return;
    current.data_layer = monotonic_now() - current.begun;
    happens(*session->second.server, &ServerLife::inputs_opened, invocation);
  };
  DeviceServer& server = *sessions_.at(call.instance).server;
  std::vector<BoundPtr> all = std::exchange(call.lost_constants, {});
  for (const BoundPtr& input : call.inputs) {
    input->object = 0;
    if (!input->name.key.empty()) all.push_back(input);
  }
  for (const BoundPtr& bound : all) {
    if (opener_.known(server, *bound)) continue;
    ++call.opening;
    opener_.open(server, servers_.handle_of(server), bound, call.deadline - monotonic_now(),
                 [one_less, bound](const Status& status) { one_less(bound, status); });
  }
  one_less(nullptr, {});
}

void DeviceServers::send(DeviceServer& server, DeviceCall& call) {
  const auto sent = frame_of(call, sessions_.at(call.instance).constants, opener_);
  server.process->send(sent.frame, sent.descriptors);
}

void DeviceServers::on(DeviceServer& server, wire::CallDone& frame) {
  const InvocationId invocation(frame.call);
  server.view.counters = frame.counters;
  if (!server.life.calls().on_device(invocation)) return;
  DeviceCall& call = calls_.at(invocation);
  if (server.life.calls().find(invocation)->state == CallState::kUnwanted) {
    for (const BoundPtr& output : call.outputs) {
      if (output->object != 0) server.process->send(wire::DropObject{output->object});
    }
    happens(server, &ServerLife::end_call, invocation);
    calls_.erase(invocation);
  } else {
    switch (frame.outcome) {
      case wire::CallDone::Outcome::kDone: answer_done(server, invocation, frame); break;
      case wire::CallDone::Outcome::kFailed: fail_call(invocation, "KernelTask.Failed", frame.error); break;
      case wire::CallDone::Outcome::kMissing: reopen_missing(server, call, frame.missing); break;
    }
  }
}

void DeviceServers::reopen_missing(DeviceServer& server, DeviceCall& call, const std::vector<std::uint64_t>& missing) {
  const std::set<std::uint64_t> lost(missing.begin(), missing.end());
  server.objects.lose(lost);
  // A constant keeps its number: the session knows it by that.
  for (const BoundPtr& constant : sessions_.at(call.instance).constants) {
    if (lost.contains(constant->object)) call.lost_constants.push_back(constant);
  }
  happens(server, &ServerLife::objects_missing, call.invocation);
}

Result<KernelTaskAnswer> DeviceServers::promise_outputs(DeviceServer& server, DeviceCall& call, wire::CallDone& done) {
  KernelTaskAnswer answer;
  answer.phases = done.phases;
  answer.phases.data_layer = call.data_layer;
  for (wire::BoundObject& output : done.outputs) {
    answer.outputs.push_back({.buffer = output.buffer, .key = {}, .bytes = std::move(output.bytes)});
  }
  for (const BoundPtr& output : call.outputs) {
    const ObjectKey& name = output->name;
    if (name.key.empty()) continue;
    const std::uint64_t object = output->object;
    const ServerTable::Handle handle = servers_.handle_of(server);
    Status promised = objects_.promise(
        name, output->size,
        [this, object, handle](UniqueFd destination, std::function<void(Status)> fetched) {
          if (handle.outlives_all()) return fetched(fail(Errc::kUnavailable, "the node is shutting down"));
          DeviceServer* const has_it = handle.find();
          if (has_it != nullptr) return has_it->fetch(object, std::move(destination), std::move(fetched));
          post([fetched = std::move(fetched)] { fetched(fail(Errc::kUnavailable, "its device server has ended")); });
        },
        [name, object, handle] {
          DeviceServer* const has_it = handle.find();
          if (has_it == nullptr || !has_it->objects.remove_output(name, object)) return;
          has_it->process->send(wire::DropObject{object});
        });
    if (!promised) return fail(promised.error());
    const auto known = objects_.look_up(name);
    server.objects.add_output(name, {output->object, known ? known->created_ms : 0});
    answer.outputs.push_back({.buffer = output->buffer, .key = name.key, .bytes = {}});
  }
  return answer;
}

void DeviceServers::answer_done(DeviceServer& server, InvocationId invocation, wire::CallDone& done) {
  DeviceCall& call = calls_.at(invocation);
  ++server.view.calls;
  add(server.view.phases, done.phases);
  server.view.phases.data_layer += call.data_layer;
  DeviceSession& session = sessions_.at(call.instance);
  done.phases.kernel_init = std::exchange(session.kernel_init, Duration(0));  // in the sum since the registration
  session.use.gpu_time += Duration(done.gpu_ns);
  session.use.device = Bytes(static_cast<std::int64_t>(done.session_bytes));
  auto content = promise_outputs(server, call, done);
  if (!content) return fail_call(invocation, "KernelTask.Failed", content.error().message);
  Answer reply{.invocation = invocation, .is_error = false, .content_type = {}, .payload = {}, .failure = {}};
  reply.content_type = call.binary ? wire::kKernelTaskContentType : "application/json";
  reply.payload = call.binary ? wire::encode(*content) : wire::kernel_task_answer_to_json(call.spec->task, *content);
  if (server.place.is_shared()) return keep_outputs(server, call, std::move(reply));
  answer(invocation, std::move(reply));
}

// What is answered is kept: a neighbour may end the server at any time. So its bytes go to the data layer first.
void DeviceServers::keep_outputs(DeviceServer& server, DeviceCall& call, Answer reply) {
  const InvocationId invocation = call.invocation;
  std::vector<ObjectKey> names;
  for (const BoundPtr& output : call.outputs) {
    if (!output->name.key.empty()) names.push_back(output->name);
  }
  if (names.empty()) return answer(invocation, std::move(reply));
  happens(server, &ServerLife::keep_outputs, invocation);
  call.keeping = names.size();
  const std::uint64_t opening = ++call.openings;
  const auto kept = std::make_shared<Answer>(std::move(reply));  // shared by the outputs of the call
  for (const ObjectKey& name : names) {
    objects_.open(name, call.deadline - monotonic_now(),
                  life_.guarded([this, invocation, opening, kept](const Result<ObjectSource::Opened>& opened) {
                    const auto found = calls_.find(invocation);
                    if (found == calls_.end() || found->second.openings != opening) return;
                    if (!opened) return rerun_lost(found->second, opened.error());
                    if (--found->second.keeping == 0) answer(invocation, std::move(*kept));
                  }));
  }
}

// The server ended before the outputs were kept: nobody has seen them, so the call runs again.
void DeviceServers::rerun_lost(DeviceCall& call, const Error& why) {
  const InvocationId invocation = call.invocation;
  abandon_outputs(objects_, call, why.message);
  const Status reserved = why.code == Errc::kUnavailable ? reserve_outputs(objects_, call) : Status(fail(why));
  if (!reserved) {
    return fail_call(invocation, "KernelTask.Failed", "its outputs could not be kept: " + reserved.error().message);
  }
  happens(*sessions_.at(call.instance).server, &ServerLife::outputs_lost, invocation);
}

void DeviceServers::fail_call(InvocationId invocation, std::string_view type, const std::string& message, Fault fault) {
  const auto found = calls_.find(invocation);
  if (found == calls_.end()) return;
  abandon_outputs(objects_, found->second, "its task failed: " + message);
  answer(invocation, {.invocation = invocation,
                      .is_error = true,
                      .content_type = {},
                      .payload = {},
                      .failure = {std::string(type), message},
                      .is_nodes_fault = fault == Fault::kNodes});
}

void DeviceServers::answer(InvocationId invocation, Answer reply) {
  const InstanceId instance = calls_.at(invocation).instance;
  calls_.erase(invocation);
  const auto session = sessions_.find(instance);
  if (session == sessions_.end()) return;
  session->second.call.reset();
  happens(*session->second.server, &ServerLife::end_call, invocation);
  events_.answered(instance, std::move(reply));
  if (sessions_.contains(instance)) events_.next(instance);
}

// Nobody waits for it any more; what it occupies is taken back when its time is over.
void DeviceServers::arm_deadline(const DeviceServer& server, const DeviceCall& call) {
  auto timer = std::make_shared<boost::asio::steady_timer>(io_);  // shared with its handler, which is all that keeps it
  timer->expires_after(std::max(Duration(0), call.deadline - monotonic_now()));
  timer->async_wait([this, timer, handle = servers_.handle_of(server), tenant = call.tenant,
                     invocation = call.invocation](boost::system::error_code error) {
    DeviceServer* const runs_it = error ? nullptr : handle.find();
    if (runs_it == nullptr || !runs_it->life.calls().on_device(invocation)) return;
    spdlog::warn("a kernel of tenant {} on GPU {} runs past its deadline: its device server is ended", tenant,
                 runs_it->place.gpu.value());
    runs_it->fault = "a kernel ran past its deadline";
    happens(*runs_it, &ServerLife::overdue, invocation);
  });
}

}  // namespace fairlead
