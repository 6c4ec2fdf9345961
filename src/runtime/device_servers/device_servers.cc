#include "runtime/device_servers/device_servers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <cerrno>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {

DeviceServers::DeviceServers(boost::asio::io_context& io, DeviceServersOptions options, ObjectSource& objects,
                             InstanceEvents events)
    : io_(io),
      options_(std::move(options)),
      objects_(objects),
      events_(std::move(events)),
      trials_(io, {.program = options_.program, .arguments = options_.arguments, .patience = options_.trial_patience}),
      quarantine_(options_.quarantine) {}

DeviceServers::~DeviceServers() = default;

void DeviceServers::post(std::function<void()> call) {
  boost::asio::post(io_, [alive = std::weak_ptr<int>(alive_), call = std::move(call)] {
    if (!alive.expired()) call();
  });
}

// ---- servers

DeviceServers::Server& DeviceServers::server_for(const SessionSpec& spec) {
  const bool is_shared = options_.one_for_all && !quarantine_.has(spec.tenant, monotonic_now());
  const Place place{spec.gpu, is_shared ? kAllTenants : spec.tenant};
  const auto [found, added] = servers_.try_emplace(place);
  Server& server = found->second;
  if (added) {
    server.place = place;
    server.number = ++last_server_;
    server.environment = spec.environment;
    server.view = {.gpu = place.gpu, .tenant = place.domain};
    server.idle = std::make_unique<boost::asio::steady_timer>(io_);
    server.recovery = ServerRecovery(options_.recovery);
  }
  if (!server.process && !server.restart) start_process(server);
  return server;
}

void DeviceServers::start_process(Server& server) {
  const std::uint64_t generation = server.generation = ++last_generation_;
  server.recovery.on_start(monotonic_now());
  const Place place = server.place;
  const auto current = [this, place, generation]() -> Server* {
    const auto found = servers_.find(place);
    return found != servers_.end() && found->second.generation == generation ? &found->second : nullptr;
  };
  ServerProcess::Events events{
      .frame =
          [this, current](wire::FrameToNode frame) {
            if (Server* it = current()) on_frame(*it, std::move(frame));
          },
      .gone =
          [this, current](std::string reason) {
            // Posted: the process object must not go inside its own callback.
            post([this, current, reason = std::move(reason)] {
              if (Server* it = current()) on_gone(*it, reason);
            });
          },
  };
  auto process = ServerProcess::start(
      io_, {.program = options_.program, .arguments = options_.arguments, .environment = server.environment},
      std::move(events));
  if (process) {
    server.process = *std::move(process);
    server.view.pid = server.process->pid();
  } else {
    post([this, current, reason = process.error().message] {
      if (Server* it = current()) on_gone(*it, reason);
    });
  }
}

void DeviceServers::on_frame(Server& server, wire::FrameToNode frame) {
  std::visit([&](auto& alternative) { on(server, alternative); }, frame);
}

void DeviceServers::on(Server& server, wire::ServerReady& frame) {
  server.ready = true;
  server.recovery.on_ready();
  server.view.device = frame.device;
  server.memory = Bytes(static_cast<std::int64_t>(frame.memory));
  spdlog::info("device server {} of tenant {} on GPU {}: {}, {:.0f} MiB for objects", server.process->pid(),
               server.place.domain, server.place.gpu.value(), frame.device,
               Bytes(static_cast<std::int64_t>(frame.memory)).mib());
  for (const InstanceId instance : server.sessions) {
    Session& session = sessions_.at(instance);
    if (session.state == SessionState::kOpened) register_session(session);
  }
}

// By the server's own numbers of objects, so that equal constants count once.
void DeviceServers::tell_memory(const Session& session) {
  if (!events_.session_memory) return;
  const KernelTask& task = session.spec.task->task;
  SessionMemory memory{.server = session.server->number, .device = session.server->memory};
  for (const BufferSpec& buffer : task.buffers) {
    if (buffer.role != BufferRole::kConstant) memory.call += buffer.bytes;
  }
  for (const BoundPtr& bound : session.constants) {
    memory.constants.emplace_back(bound->object, task.buffers[bound->buffer].bytes);
  }
  events_.session_memory(session.instance, memory);
}

void DeviceServers::on(Server& server, wire::ServerFault& frame) {
  spdlog::warn("device server {} of tenant {}: {}", server.process->pid(), server.place.domain, frame.error);
  server.fault = std::move(frame);
}

void DeviceServers::on(Server&, wire::ConstantsMissing& frame) {
  if (!events_.residence) return;
  for (const auto& [session, bytes] : frame.sessions) {
    const InstanceId instance(session);
    if (sessions_.contains(instance)) {
      events_.residence(instance, {.missing = Bytes(static_cast<std::int64_t>(bytes)),
                                   .reload = from_seconds(static_cast<double>(bytes) / frame.bytes_per_second),
                                   .resident = Bytes(static_cast<std::int64_t>(frame.resident))});
    }
  }
}

void DeviceServers::on(Server& server, wire::ModuleTrial& frame) {
  const InstanceId instance(frame.session);
  const auto session = sessions_.find(instance);
  if (session == sessions_.end()) return;
  session->second.on_trial = true;
  trials_.start(
      {.instance = instance,
       .gpu = server.place.gpu,
       .tenant = session->second.spec.tenant,
       .environment = server.environment,
       .trial = std::move(frame)},
      [this, instance, place = server.place, generation = server.generation](const wire::FrameToServer& said) {
        const auto found = servers_.find(place);
        if (found == servers_.end() || found->second.generation != generation) return;
        const auto waiting = sessions_.find(instance);
        const bool is_over = std::holds_alternative<wire::TrialEnded>(said);
        if (waiting != sessions_.end()) waiting->second.on_trial = !is_over;
        if (found->second.process) found->second.process->send(said);
      });
}

void DeviceServers::on(Server&, wire::VariablesPlaced& frame) {
  const InstanceId instance(frame.session);
  if (sessions_.contains(instance)) trials_.place(instance, std::move(frame));
}

// What a process that tries modules says.
template <typename TrialFrame>
void DeviceServers::on(Server& server, TrialFrame&) {
  spdlog::error("device server {}: it says how a trial went, which is another process's to say", server.process->pid());
  server.process->kill();
}

void DeviceServers::on(Server& server, wire::ObjectFetched& frame) {
  const auto fetch = server.fetches.extract(frame.fetch);
  if (fetch.empty()) return;
  fetch.mapped()(frame.error.empty() ? Status() : Status(fail(Errc::kUnavailable, "{}", frame.error)));
}

void DeviceServers::on_gone(Server& server, const std::string& reason) {
  const bool was_ready = server.ready;
  const bool stopped = server.sessions.empty() && server.sent.empty();
  const std::string why = server.fault ? server.fault->error : reason;
  forget_process(server, why);
  const Place place = server.place;
  if (stopped) {
    servers_.erase(place);
    return;
  }
  ++server.view.restarts;
  for (const InstanceId instance : server.sessions) trials_.forget(instance);
  const ServerRecovery::End end = describe_end(server, was_ready);
  server.fault.reset();
  recover(server, end, why);
}

ServerRecovery::End DeviceServers::describe_end(const Server& server, bool was_ready) const {
  ServerRecovery::End end{.now = monotonic_now(), .was_ready = was_ready};
  end.is_shared = server.place.domain == kAllTenants;
  end.names_calls = server.fault.has_value();
  if (server.fault) {
    for (const std::uint64_t call : server.fault->calls) end.named.insert(InvocationId(call));
  }
  for (const InvocationId id : server.sent) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) continue;
    const Call& call = found->second;
    end.calls.push_back({id, call.tenant, call.suspected, call.given_up});
  }
  for (const InstanceId instance : server.sessions) {
    const Session& session = sessions_.at(instance);
    if (session.state != SessionState::kRegistering || session.on_trial) continue;
    end.registering.push_back({instance, session.spec.tenant, session.suspected});
  }
  return end;
}

// Carries out what ServerRecovery decided. Last comes Restart or GiveUp.
void DeviceServers::recover(Server& server, const ServerRecovery::End& end, const std::string& reason) {
  server.sent.clear();
  std::deque<InvocationId> again;
  std::set<std::string> quarantined;
  for (const ServerRecovery::Action& action : server.recovery.on_end(end)) {
    if (const auto* send = std::get_if<ServerRecovery::Send>(&action)) {
      calls_.at(send->call).suspected += send->is_suspect ? 1 : 0;
      again.push_back(send->call);
    } else if (const auto* caused = std::get_if<ServerRecovery::Fail>(&action)) {
      fail_call(caused->call, "KernelTask.Fault", "the device server ended while this call ran: " + reason);
    } else if (const auto* forgotten = std::get_if<ServerRecovery::Forget>(&action)) {
      calls_.erase(forgotten->call);
    } else if (const auto* suspect = std::get_if<ServerRecovery::Suspect>(&action)) {
      ++sessions_.at(suspect->session).suspected;
    } else if (const auto* ended = std::get_if<ServerRecovery::EndSession>(&action)) {
      const std::string why = "the device server ended twice while its modules were loaded: " + reason;
      end_session(ended->session, why, {"KernelTask.Fault", why});
    } else if (const auto* alone = std::get_if<ServerRecovery::Quarantine>(&action)) {
      quarantined.insert(alone->tenant);
    } else if (const auto* next = std::get_if<ServerRecovery::Restart>(&action)) {
      server.unsent.insert(server.unsent.begin(), again.begin(), again.end());
      for (const std::string& tenant : quarantined) move_to_own_server(tenant, server);
      restart_after(server, next->after);
    } else {
      const std::set<InstanceId> sessions = server.sessions;
      for (const InstanceId instance : sessions)
        end_session(instance, "the device server does not start: " + reason, {});
      servers_.erase(Place(server.place));
    }
  }
}

void DeviceServers::move_to_own_server(const std::string& tenant, Server& from) {
  quarantine_.add(tenant, monotonic_now());
  spdlog::warn("tenant {} ended the device server of all tenants on GPU {}: for {:.0f} s it has one of its own", tenant,
               from.place.gpu.value(), to_seconds(options_.quarantine));
  const std::set<InstanceId> sessions = from.sessions;
  for (const InstanceId instance : sessions) {
    Session& session = sessions_.at(instance);
    if (session.spec.tenant != tenant) continue;
    Server& own = server_for(session.spec);
    from.sessions.erase(instance);
    own.sessions.insert(instance);
    own.idle->cancel();
    session.server = &own;
    if (session.call) {
      Call& call = calls_.at(*session.call);
      call.server = &own;
      if (std::erase(from.unsent, call.invocation) > 0) own.unsent.push_back(call.invocation);
    }
    open_constants(session);
  }
  const auto own = servers_.find({from.place.gpu, tenant});
  if (own == servers_.end()) return;
  for (const InvocationId id : own->second.unsent) open_inputs(calls_.at(id), {});
}

void DeviceServers::restart_after(Server& server, Duration wait) {
  spdlog::warn("the device server of tenant {} on GPU {} starts again{}", server.place.domain, server.place.gpu.value(),
               wait == Duration(0) ? "" : fmt::format(" in {:.3g} s", to_seconds(wait)));
  if (wait == Duration(0)) return restart(server);
  server.restart = std::make_unique<boost::asio::steady_timer>(io_);
  server.restart->expires_after(wait);
  server.restart->async_wait(
      [this, place = server.place, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
        if (error || alive.expired()) return;
        const auto found = servers_.find(place);
        if (found != servers_.end()) restart(found->second);
      });
}

void DeviceServers::restart(Server& server) {
  server.restart.reset();
  if (server.sessions.empty()) {
    servers_.erase(Place(server.place));
    return;
  }
  server.by_content.clear();
  server.held.clear();
  start_process(server);
  for (const InstanceId instance : server.sessions) open_constants(sessions_.at(instance));
  for (const InvocationId id : server.unsent) open_inputs(calls_.at(id), {});  // objects have new numbers
}

// What it held is lost; outputs that nobody had fetched, for good.
void DeviceServers::forget_process(Server& server, const std::string& reason) {
  server.process.reset();
  server.ready = false;
  server.by_content.clear();
  server.held.clear();
  for (const auto& [name, output] : std::exchange(server.outputs, {})) {
    const auto known = objects_.look_up(name);
    if (!known || !known->on_device || known->created_ms != output.created_ms) continue;
    objects_.abandon(name, {Errc::kUnavailable, "object " + name.key + " was lost with its device server (" + reason +
                                                    "): run the task that makes it again"});
  }
  for (auto& [id, done] : std::exchange(server.fetches, {})) {
    done(fail(Errc::kUnavailable, "the device server has ended: {}", reason));
  }
}

void DeviceServers::retire_if_idle(Server& server) {
  if (!server.sessions.empty() || !server.sent.empty()) return;
  server.idle->expires_after(options_.idle_limit);
  server.idle->async_wait(
      [this, place = server.place, alive = std::weak_ptr<int>(alive_)](boost::system::error_code error) {
        if (error || alive.expired()) return;
        const auto found = servers_.find(place);
        if (found == servers_.end() || !found->second.sessions.empty()) return;
        for (const auto& [name, output] : found->second.outputs) {
          const auto known = objects_.look_up(name);
          if (known && known->on_device) return retire_if_idle(found->second);
        }
        if (found->second.process) found->second.process->kill();
      });
}

std::vector<DeviceServers::View> DeviceServers::views() const {
  std::vector<View> views;
  for (const auto& [place, server] : servers_) {
    views.push_back(server.view);
    views.back().sessions = server.sessions.size();
  }
  return views;
}

// ---- sessions

void DeviceServers::start(SessionSpec spec) {
  const InstanceId instance = spec.instance;
  Server& server = server_for(spec);
  Session& session = sessions_[instance];
  session.instance = instance;
  session.spec = std::move(spec);
  session.server = &server;
  server.sessions.insert(instance);
  server.idle->cancel();
  open_constants(session);
}

void DeviceServers::open_constants(Session& session) {
  const KernelTask& task = session.spec.task->task;
  session.state = SessionState::kOpening;
  session.on_trial = false;
  session.constants.clear();
  for (std::uint32_t b = 0; b < task.buffers.size(); ++b) {
    const BufferSpec& buffer = task.buffers[b];
    if (buffer.role != BufferRole::kConstant) continue;
    session.constants.push_back(
        std::make_shared<Bound>(b, ObjectKey{session.spec.tenant, buffer.constant}, "", 0, buffer.bytes));
  }
  session.opening = session.constants.size() + 1;
  const Instant deadline = monotonic_now() + options_.patience;
  const InstanceId instance = session.instance;
  const std::uint64_t generation = session.server->generation;
  const auto one_less = [this, instance, generation](const std::string& name, const Status& status) {
    const auto found = sessions_.find(instance);
    if (found == sessions_.end() || found->second.server->generation != generation) return;
    Session& current = found->second;
    if (!status) {
      const std::string why = fmt::format("constant {}: {}", name, status.error().message);
      return end_session(instance, why, {"KernelTask.ObjectNotFound", why});
    }
    if (--current.opening > 0) return;
    current.state = SessionState::kOpened;
    if (current.server->ready) register_session(current);
  };
  for (std::size_t i = 0; i < session.constants.size(); ++i) {
    const std::string name = task.buffers[session.constants[i]->buffer].name;
    open_bound(*session.server, session.constants[i], deadline,
               [one_less, name](const Status& status) { one_less(name, status); });
  }
  post([one_less] { one_less("", {}); });
}

void DeviceServers::register_session(Session& session) {
  Server& server = *session.server;
  const KernelTaskSpec& spec = *session.spec.task;
  session.state = SessionState::kRegistering;
  wire::RegisterSession frame{
      .session = session.instance.value(), .tenant = session.spec.tenant, .task = wire::encode(spec.task)};
  std::vector<int> descriptors;
  std::vector<UniqueFd> images;
  for (std::size_t m = 0; m < spec.module_files.size(); ++m) {
    wire::ModuleImage image{.sha256 = spec.task.modules[m].sha256};
    UniqueFd file(::open(spec.module_files[m].c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0) {
      const std::string why = errno_error(errno, "open " + spec.module_files[m]).message;
      return post([this, instance = session.instance, why] { end_session(instance, why, {}); });
    }
    image.bytes = static_cast<std::uint64_t>(info.st_size);
    image.descriptor = static_cast<std::int32_t>(descriptors.size());
    descriptors.push_back(file.get());
    images.push_back(std::move(file));
    frame.modules.push_back(std::move(image));
  }
  for (const BoundPtr& bound : session.constants) {
    frame.constants.push_back({.buffer = bound->buffer, .object = bound->object, .bytes = {}});
    if (!bound->memory) continue;
    frame.supplied.push_back({bound->object, static_cast<std::uint64_t>(bound->size.count()),
                              static_cast<std::int32_t>(descriptors.size())});
    descriptors.push_back(bound->memory.get());
  }
  server.process->send(frame, descriptors);
  for (const BoundPtr& bound : session.constants) bound->memory.reset();
}

void DeviceServers::on(Server& server, wire::SessionReady& frame) {
  const auto found = sessions_.find(InstanceId(frame.session));
  if (found == sessions_.end()) return;
  Session& session = found->second;
  if (!frame.error.empty()) {
    return end_session(session.instance, frame.error, {"KernelTask.InvalidTask", frame.error});
  }
  server.view.phases.kernel_init += Duration(frame.init_ns);
  session.kernel_init += Duration(frame.init_ns);
  session.state = SessionState::kReady;
  session.suspected = 0;
  tell_memory(session);
  send_calls(server);  // of a server that was replaced
  if (!std::exchange(session.announced, true)) events_.next(session.instance);
}

void DeviceServers::end_session(InstanceId instance, const std::string& reason, const Failure& failure) {
  const auto node = sessions_.extract(instance);
  if (node.empty()) return;
  trials_.forget(instance);
  Session& session = node.mapped();
  Server& server = *session.server;
  server.sessions.erase(instance);
  if (session.call) {
    Call& call = calls_.at(*session.call);
    call.given_up = true;
    abandon_outputs(call, "its task was ended: " + reason);
    if (!server.sent.contains(*session.call)) {
      std::erase(server.unsent, *session.call);
      calls_.erase(*session.call);
    }
  }
  if (server.ready && server.process && session.state >= SessionState::kRegistering) {
    server.process->send(wire::DropSession{instance.value()});
  }
  retire_if_idle(server);
  events_.gone(
      instance,
      ExitInfo{.exit_status = 1, .signal = {}, .reason = reason, .init_error_payload = {}, .init_failure = failure});
}

void DeviceServers::kill(InstanceId instance) {
  const auto found = sessions_.find(instance);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  // What runs past its deadline may never end; what was only given up is watched until then.
  if (session.call && session.server->sent.contains(*session.call)) arm_deadline(calls_.at(*session.call));
  post([this, instance] { end_session(instance, "stopped", {}); });
}

DeviceServers::Use DeviceServers::use(InstanceId instance) const {
  const auto found = sessions_.find(instance);
  return found == sessions_.end() ? Use{} : found->second.use;
}

// ---- what calls and sessions share

// Whether the server has its bytes, as far as we know: then `bound` has its number.
bool DeviceServers::known(Server& server, Bound& bound) {
  const auto object = objects_.look_up(bound.name);
  const auto output = server.outputs.find(bound.name);
  if (output != server.outputs.end()) {
    if (object && object->created_ms == output->second.created_ms) {
      bound.object = output->second.object;
      return true;
    }
    if (server.ready)
      server.process->send(wire::DropObject{output->second.object});  // deleted, or another of that name
    server.outputs.erase(output);
  }
  if (!object || object->content.empty()) return false;
  const auto same = server.by_content.find({bound.name.tenant, object->content});
  if (same == server.by_content.end() || !server.held.contains(same->second) || object->bytes != bound.size)
    return false;
  bound.object = same->second;
  return true;
}

void DeviceServers::opened(Server& server, Bound& bound, ObjectSource::Opened object) {
  std::uint64_t& number = server.by_content[{bound.name.tenant, object.content}];
  if (number == 0) number = ++last_object_;
  bound.object = number;
  bound.memory = std::move(object.memory);
  server.held.insert(number);
}

void DeviceServers::open_bound(Server& server, BoundPtr bound, Instant deadline, std::function<void(Status)> done) {
  if (known(server, *bound)) return post([done = std::move(done)] { done({}); });
  objects_.open(bound->name, deadline - monotonic_now(),
                [this, place = server.place, generation = server.generation, bound, done = std::move(done),
                 alive = std::weak_ptr<int>(alive_)](Result<ObjectSource::Opened> object) {
                  if (alive.expired()) return;
                  const auto found = servers_.find(place);
                  if (found == servers_.end() || found->second.generation != generation) return;  // opened once more
                  if (!object) return done(fail(object.error()));
                  if (object->bytes != bound->size) {
                    return done(fail(Errc::kInvalidArgument, "object {} has {} bytes, the buffer {}", bound->name.key,
                                     object->bytes.count(), bound->size.count()));
                  }
                  opened(found->second, *bound, *std::move(object));
                  done({});
                });
}

// Objects that their owners deleted: nothing tells, so it is looked at now and then.
void DeviceServers::drop_stale_outputs(Server& server) {
  constexpr Duration kPeriod = std::chrono::seconds(1);
  const Instant now = monotonic_now();
  if (now - server.swept < kPeriod) return;
  server.swept = now;
  std::erase_if(server.outputs, [&](const auto& entry) {
    const auto known = objects_.look_up(entry.first);
    if (known && known->created_ms == entry.second.created_ms) return false;
    server.process->send(wire::DropObject{entry.second.object});
    return true;
  });
}

}  // namespace fairlead
