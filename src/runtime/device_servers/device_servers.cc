#include "runtime/device_servers/device_servers.h"

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
      pages_(options_.pace),
      trials_(io, {.program = options_.program,
                   .arguments = options_.arguments,
                   .launcher = options_.trial_launcher,
                   .patience = options_.trial_patience}),
      quarantine_(options_.quarantine),
      servers_(io, options_.recovery),
      opener_(io, objects) {}

DeviceServers::~DeviceServers() = default;

void DeviceServers::post(std::function<void()> call) {
  boost::asio::post(io_, life_.guarded([call = std::move(call)] { call(); }));
}

// ---- what a server's life decides

// What an action leads to may be the next event of the same server; the last one may be the last of the server, too.
void DeviceServers::carry_out(DeviceServer& server, const ServerLife::Actions& actions) {
  for (const ServerLife::Action& action : actions) {
    if (!act_on_process(server, action) && !act_on_session(server, action)) act_on_call(server, action);
  }
}

bool DeviceServers::act_on_process(DeviceServer& server, const ServerLife::Action& action) {
  if (std::holds_alternative<ServerLife::StartProcess>(action)) {
    start_process(server);
  } else if (std::holds_alternative<ServerLife::EndProcess>(action)) {
    if (server.process) server.process->kill();
  } else if (const auto* next = std::get_if<ServerLife::RestartAfter>(&action)) {
    restart_after(server, next->wait);
  } else if (std::holds_alternative<ServerLife::WatchIdle>(action)) {
    watch_idle(server);
  } else if (std::holds_alternative<ServerLife::Retire>(action)) {
    // Who heard that its session ended may have started another one.
    if (server.life.phase() == ServerPhase::kOver) servers_.erase(server.place);
  } else if (const auto* alone = std::get_if<ServerLife::Quarantine>(&action)) {
    move_to_own_server(alone->tenant, server);
  } else {
    return false;
  }
  return true;
}

bool DeviceServers::act_on_session(DeviceServer& server, const ServerLife::Action& action) {
  if (const auto* open = std::get_if<ServerLife::OpenConstants>(&action)) {
    open_constants(sessions_.at(open->session));
  } else if (const auto* opened = std::get_if<ServerLife::Register>(&action)) {
    register_session(sessions_.at(opened->session));
  } else if (const auto* ready = std::get_if<ServerLife::Announce>(&action)) {
    announce(sessions_.at(ready->session));
  } else if (const auto* dropped = std::get_if<ServerLife::DropSession>(&action)) {
    if (server.process) server.process->send(wire::DropSession{dropped->session.value()});
  } else if (const auto* ended = std::get_if<ServerLife::EndSession>(&action)) {
    const bool caused = ended->why == ServerLife::SessionEnd::kCausedEnd;
    const std::string why = (caused ? "the device server ended twice while its modules were loaded: "
                                    : "the device server does not start: ") +
                            server.ended;
    caused ? end_session(ended->session, why, {"KernelTask.Fault", why})
           : end_session(ended->session, why, {}, Fault::kNodes);
  } else {
    return false;
  }
  return true;
}

void DeviceServers::act_on_call(DeviceServer& server, const ServerLife::Action& action) {
  if (const auto* open = std::get_if<ServerLife::OpenInputs>(&action)) {
    open_inputs(calls_.at(open->call));
  } else if (const auto* run = std::get_if<ServerLife::Run>(&action)) {
    send(server, calls_.at(run->call));
  } else if (const auto* forgotten = std::get_if<ServerLife::Forget>(&action)) {
    calls_.erase(forgotten->call);
  } else {
    const auto& failed = std::get<ServerLife::Fail>(action);
    switch (failed.why) {
      case ServerLife::Failure::kCausedEnd:
        return fail_call(failed.call, "KernelTask.Fault",
                         "the device server ended while this call ran: " + server.ended);
      case ServerLife::Failure::kNoRoom:
        return fail_call(failed.call, "KernelTask.Failed",
                         fmt::format("its objects did not stay in the device server for {} attempts: the host tier is "
                                     "too small for what runs at once",
                                     ServerCalls::kMaxReopened),
                         Fault::kNodes);
      case ServerLife::Failure::kOutputsLost:
        return fail_call(failed.call, "KernelTask.Failed",
                         fmt::format("its outputs could not be kept: the device server ended before that, {} times",
                                     ServerCalls::kMaxReopened + 1),
                         Fault::kNodes);
    }
  }
}

// ---- servers

DeviceServer& DeviceServers::server_for(const SessionSpec& spec) {
  const bool is_shared = options_.one_for_all && !quarantine_.has(spec.tenant, monotonic_now());
  return servers_.at({spec.gpu, is_shared ? kAllTenants : spec.tenant}, spec.environment);
}

void DeviceServers::start_process(DeviceServer& server) {
  server.objects.clear();  // what was opened while no process was there
  servers_.renew(server);
  const ServerTable::Handle handle = servers_.handle_of(server);
  ServerProcess::Events events{
      .frame =
          [this, handle](wire::FrameToNode frame) {
            DeviceServer* const it = handle.find();
            if (it != nullptr) std::visit([&](auto& alternative) { on(*it, alternative); }, frame);
          },
      .gone =
          [this, handle](std::string reason) {
            // Posted: the process object must not go inside its own callback.
            post([this, handle, reason = std::move(reason)] {
              if (DeviceServer* it = handle.find()) on_gone(*it, reason);
            });
          },
  };
  auto process = ServerProcess::start(io_,
                                      {.program = options_.program,
                                       .arguments = options_.arguments,
                                       .environment = server.environment,
                                       .launcher = options_.launcher},
                                      std::move(events));
  if (process) {
    server.process = *std::move(process);
    server.view.pid = server.process->pid();
  } else {
    post([this, handle, reason = process.error().message] {
      if (DeviceServer* it = handle.find()) on_gone(*it, reason);
    });
  }
}

void DeviceServers::on(DeviceServer& server, wire::ServerReady& frame) {
  server.view.device = frame.device;
  server.memory = Bytes(static_cast<std::int64_t>(frame.memory));
  spdlog::info("device server {} of tenant {} on GPU {}: {}, {:.0f} MiB for objects", server.process->pid(),
               server.place.domain, server.place.gpu.value(), frame.device,
               Bytes(static_cast<std::int64_t>(frame.memory)).mib());
  happens(server, &ServerLife::process_ready);
}

void DeviceServers::on(DeviceServer& server, wire::ServerFault& frame) {
  spdlog::warn("device server {} of tenant {}: {}", server.process->pid(), server.place.domain, frame.error);
  server.fault = std::move(frame.error);
  std::set<InvocationId> named;
  for (const std::uint64_t call : frame.calls) named.insert(InvocationId(call));
  server.life.process_faulted(std::move(named));
}

void DeviceServers::on(DeviceServer&, wire::ConstantsMissing& frame) {
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

void DeviceServers::on(DeviceServer&, wire::CallLoaded& frame) {
  if (events_.loaded) events_.loaded(InvocationId(frame.call));
}

void DeviceServers::on(DeviceServer& server, wire::ModuleTrial& frame) {
  const InstanceId instance(frame.session);
  const auto session = sessions_.find(instance);
  if (session == sessions_.end()) return;
  server.life.session_on_trial(instance, true);
  trials_.start({.instance = instance,
                 .gpu = server.place.gpu,
                 .tenant = session->second.spec.tenant,
                 .environment = server.environment,
                 .trial = std::move(frame)},
                [instance, handle = servers_.handle_of(server)](const wire::FrameToServer& said) {
                  DeviceServer* const waits = handle.find();
                  if (waits == nullptr) return;
                  if (std::holds_alternative<wire::TrialEnded>(said)) waits->life.session_on_trial(instance, false);
                  if (waits->process) waits->process->send(said);
                });
}

void DeviceServers::on(DeviceServer&, wire::VariablesPlaced& frame) {
  const InstanceId instance(frame.session);
  if (sessions_.contains(instance)) trials_.place(instance, std::move(frame));
}

// What a process that tries modules says.
template <typename TrialFrame>
void DeviceServers::on(DeviceServer& server, TrialFrame&) {
  spdlog::error("device server {}: it says how a trial went, which is another process's to say", server.process->pid());
  server.process->kill();
}

void DeviceServers::on(DeviceServer& server, wire::ObjectFetched& frame) {
  server.fetches.fetched(frame.fetch,
                         frame.error.empty() ? Status() : Status(fail(Errc::kUnavailable, "{}", frame.error)));
}

namespace {

// What it held is lost; outputs that nobody had fetched, for good.
void lose_outputs(ObjectSource& objects, DeviceServer& server) {
  for (const auto& [name, output] : server.objects.outputs()) {
    const auto known = objects.look_up(name);
    if (!known || !known->on_device || known->created_ms != output.created_ms) continue;
    objects.abandon(name, {Errc::kUnavailable, "object " + name.key + " was lost with its device server (" +
                                                   server.ended + "): run the task that makes it again"});
  }
  server.objects.clear();
}

}  // namespace

void DeviceServers::on_gone(DeviceServer& server, const std::string& reason) {
  const std::string fault = std::exchange(server.fault, "");
  server.ended = fault.empty() ? reason : fault;
  const Status lost = fail(Errc::kUnavailable, "the device server has ended: {}", server.ended);
  const auto fetches = server.fetches.take_all();
  server.process.reset();
  servers_.renew(server);
  for (const InstanceId instance : server.life.sessions()) {
    pages_.over(instance);
    trials_.forget(instance);
  }
  lose_outputs(objects_, server);
  happens(server, &ServerLife::process_gone, monotonic_now());
  for (const auto& [id, done] : fetches) done(lost);  // who runs again for it does so in the next process
}

void DeviceServers::move_to_own_server(const std::string& tenant, DeviceServer& from) {
  quarantine_.add(tenant, monotonic_now());
  spdlog::warn("tenant {} ended the device server of all tenants on GPU {}: for {:.0f} s it has one of its own", tenant,
               from.place.gpu.value(), to_seconds(options_.quarantine));
  DeviceServer* own = nullptr;
  for (const InstanceId instance : from.life.sessions()) {
    DeviceSession& session = sessions_.at(instance);
    if (session.spec.tenant == tenant) session.server = own = &server_for(session.spec);
  }
  if (own == nullptr) return;
  ServerLife::Actions actions;
  from.life.move_tenant(monotonic_now(), tenant, own->life, actions);
  carry_out(*own, actions);
}

void DeviceServers::restart_after(DeviceServer& server, Duration wait) {
  ++server.view.restarts;
  spdlog::warn("the device server of tenant {} on GPU {} starts again{}", server.place.domain, server.place.gpu.value(),
               wait == Duration(0) ? "" : fmt::format(" in {:.3g} s", to_seconds(wait)));
  if (wait == Duration(0)) return happens(server, &ServerLife::restart, monotonic_now());
  server.restart.expires_after(wait);
  server.restart.async_wait([this, handle = servers_.handle_of(server)](boost::system::error_code error) {
    DeviceServer* const waits = error ? nullptr : handle.find();
    if (waits != nullptr) happens(*waits, &ServerLife::restart, monotonic_now());
  });
}

namespace {

bool holds_outputs(ObjectSource& source, const ServerObjects& objects) {
  const auto& outputs = objects.outputs();
  return std::any_of(outputs.begin(), outputs.end(), [&](const auto& output) {
    const auto known = source.look_up(output.first);
    return known && known->on_device;
  });
}

}  // namespace

// One that holds the only copy of an output stays.
void DeviceServers::watch_idle(DeviceServer& server) {
  server.idle.expires_after(options_.idle_limit);
  server.idle.async_wait([this, handle = servers_.handle_of(server)](boost::system::error_code error) {
    DeviceServer* const idles = error ? nullptr : handle.find();
    if (idles == nullptr || !idles->life.is_idle()) return;
    if (holds_outputs(objects_, idles->objects)) return watch_idle(*idles);
    happens(*idles, &ServerLife::idle_over);
  });
}

void DeviceServers::end_idle(GpuId gpu) {
  for (const ServerPlace& place : servers_.on(gpu)) {  // what happens to one may remove it
    DeviceServer* const server = servers_.find(place);
    if (server == nullptr || !server->life.is_idle() || holds_outputs(objects_, server->objects)) continue;
    happens(*server, &ServerLife::idle_over);
  }
}

std::vector<DeviceServers::View> DeviceServers::views() const {
  return servers_.views();
}

// ---- sessions

void DeviceServers::start(SessionSpec spec) {
  const InstanceId instance = spec.instance;
  DeviceServer& server = server_for(spec);
  DeviceSession& session = sessions_[instance];
  session.instance = instance;
  session.spec = std::move(spec);
  session.server = &server;
  happens(server, &ServerLife::add_session, monotonic_now(), instance, session.spec.tenant);
}

void DeviceServers::open_constants(DeviceSession& session) {
  const KernelTask& task = session.spec.task->task;
  session.constants = bind_constants(session.spec);
  session.opening = session.constants.size() + 1;
  const Instant deadline = monotonic_now() + options_.patience;
  const InstanceId instance = session.instance;
  const auto one_less = [this, instance, handle = servers_.handle_of(*session.server)](const std::string& name,
                                                                                       const Status& status) {
    const auto found = sessions_.find(instance);
    if (found == sessions_.end() || found->second.server != handle.find()) return;  // or it is opened once more
    DeviceSession& current = found->second;
    if (!status) {
      const std::string why = fmt::format("constant {}: {}", name, status.error().message);
      return end_session(instance, why, {"KernelTask.ObjectNotFound", why});
    }
    if (--current.opening == 0) happens(*current.server, &ServerLife::constants_opened, instance);
  };
  for (std::size_t i = 0; i < session.constants.size(); ++i) {
    const std::string name = task.buffers[session.constants[i]->buffer].name;
    opener_.open(*session.server, servers_.handle_of(*session.server), session.constants[i], deadline - monotonic_now(),
                 [one_less, name](const Status& status) { one_less(name, status); });
  }
  post([one_less] { one_less("", {}); });
}

void DeviceServers::register_session(DeviceSession& session) {
  const auto registration = registration_of(session);
  if (!registration) {
    const std::string why = registration.error().message;
    return post([this, instance = session.instance, why] { end_session(instance, why, {}); });
  }
  session.server->process->send(registration->frame, registration->descriptors);
  pages_.registered(session.instance, *session.server->process, session.spec.whole_kernels);
}

void DeviceServers::on(DeviceServer& server, wire::SessionReady& frame) {
  const auto found = sessions_.find(InstanceId(frame.session));
  if (found == sessions_.end()) return;
  DeviceSession& session = found->second;
  if (session.server != &server) return;  // what a server says of others' sessions is not heard
  if (!frame.error.empty()) {
    return end_session(session.instance, frame.error, {"KernelTask.InvalidTask", frame.error});
  }
  const int width_percent = frame.width_percent == 0 ? 100 : static_cast<int>(std::min(frame.width_percent, 100U));
  if (width_percent > session.spec.most_width_percent) {
    const std::string kept = session.spec.whole_kernels ? "gpu:cut-kernels is false" : frame.why_not_narrower;
    const std::string why = fmt::format(
        "gpu:compute-percent is {}, and its kernels may be on {} % of the SMs at once: say {} or more, or leave it "
        "out{}",
        session.spec.most_width_percent, width_percent, width_percent,
        kept.empty() ? "" : fmt::format(" (they are not kept to fewer: {})", kept));
    return end_session(session.instance, why, {"KernelTask.InvalidTask", why});
  }
  server.view.phases.kernel_init += Duration(frame.init_ns);
  session.kernel_init += Duration(frame.init_ns);
  pages_.sized(session.instance, server.number, width_percent);
  happens(server, &ServerLife::session_ready, session.instance);
}

// What its calls need; then that it may have calls, once.
void DeviceServers::announce(DeviceSession& session) {
  if (events_.session_memory) events_.session_memory(session.instance, memory_of(session));
  if (!std::exchange(session.announced, true)) events_.next(session.instance);
}

void DeviceServers::end_session(InstanceId instance, const std::string& reason, const Failure& failure, Fault fault) {
  const auto node = sessions_.extract(instance);
  if (node.empty()) return;
  trials_.forget(instance);
  const DeviceSession& session = node.mapped();
  pages_.over(instance);
  if (session.call) abandon_outputs(objects_, calls_.at(*session.call), "its task was ended: " + reason);
  happens(*session.server, &ServerLife::remove_session, instance);
  // One that was refused is no call of the server's.
  if (session.call && !session.server->life.calls().on_device(*session.call)) calls_.erase(*session.call);
  events_.gone(instance, ExitInfo{.exit_status = 1,
                                  .signal = {},
                                  .reason = reason,
                                  .init_error_payload = {},
                                  .init_failure = failure,
                                  .is_nodes_fault = fault == Fault::kNodes});
}

void DeviceServers::kill(InstanceId instance) {
  const auto found = sessions_.find(instance);
  if (found == sessions_.end()) return;
  const DeviceSession& session = found->second;
  // What runs past its deadline may never end; what was only given up is watched until then.
  if (session.call && session.server->life.calls().on_device(*session.call)) {
    arm_deadline(*session.server, calls_.at(*session.call));
  }
  post([this, instance] { end_session(instance, "stopped", {}); });
}

std::optional<DeviceServers::Use> DeviceServers::use(InstanceId instance) const {
  const auto found = sessions_.find(instance);
  return found == sessions_.end() ? std::nullopt : std::optional(found->second.use);
}

}  // namespace fairlead
