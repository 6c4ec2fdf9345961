// The node's end of the device servers: an instance of a kernel task is a session in the server of its GPU and isolation
// domain: its tenant, or, where servers fence addresses, all tenants.
// Starts a server with its first session, replaces it when it ends, hands calls over with the objects they need, and tells
// the data layer of outputs that stay on the device. No decisions of scheduling here.
//
// What is next is decided by server_life.h: this class tells it what happened and carries out what follows. When a server
// ends, its sessions are registered with the next one and calls that had shown no output run again, once each and one at a
// time: so a call that ends servers is found out and fails alone, and the others never notice. A call that runs past its
// deadline is killed with its server, in the same way. Who ended a server for all tenants has one of its own for a while;
// and what such a server answers is in the data layer before its caller hears of it, so that no neighbour can end what was
// answered.
//
//   start ─> constants opened, server there ─> RegisterSession (─> ModuleTrial ─> TrialEnded) ─> SessionReady ─> next
//   deliver ─> call checked, keys reserved, inputs opened ─> RunCall ─> CallDone ─> outputs promised ─> answered, next
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lifetime.h"
#include "model/kernel_task.h"
#include "runtime/device_servers/bound_object.h"
#include "runtime/device_servers/device_call.h"
#include "runtime/device_servers/device_session.h"
#include "runtime/device_servers/module_trials.h"
#include "runtime/device_servers/object_source.h"
#include "runtime/device_servers/quarantine.h"
#include "runtime/device_servers/server_life.h"
#include "runtime/device_servers/server_process.h"
#include "runtime/device_servers/server_table.h"
#include "runtime/device_servers/session_pages.h"
#include "runtime/instance_host.h"

namespace fairlead {

struct DeviceServersOptions {
  // Words before `program`, for a process with that environment: what runs it in a jail. Empty: it runs by itself.
  Launcher launcher = {}, trial_launcher = {};
  std::string program = "/proc/self/exe";          // where there is a launcher, as that has it
  std::vector<std::string> arguments;              // of every server: library, sizes, eviction, isolation
  std::vector<std::string> own_arguments;          // of one that a tenant has for itself, for the stage of a pipeline
  bool one_for_all = false;                        // tenants, on each GPU: REQUIRES servers that fence addresses
  Duration patience = std::chrono::seconds(10);    // for the constants of a session
  Duration idle_limit = std::chrono::seconds(60);  // a server without sessions ends, unless it holds outputs
  ServerRecovery::Options recovery;
  Duration quarantine = std::chrono::minutes(10);      // a server of one's own for who ended one of all tenants
  Duration trial_patience = std::chrono::seconds(30);  // for a module, where servers ask for trials
  PaceCalls pace = {};                                 // none: calls begin when they come
};

// As InstanceHost (runtime/instance_host.h), with sessions for sandboxes.
class DeviceServers {
 public:
  using Use = SessionUse;
  static constexpr const char* kAllTenants = ServerPlace::kAllTenants;
  using View = DeviceServerView;

  DeviceServers(boost::asio::io_context& io, DeviceServersOptions options, ObjectSource& objects,
                InstanceEvents events);
  ~DeviceServers();

  void start(SessionSpec spec);
  void deliver(InstanceId instance, DeliverRequest request);
  void kill(InstanceId instance);
  // Servers there that have no session end now, unless they hold the only copy of an output.
  void end_idle(GpuId gpu);
  std::optional<Use> use(InstanceId instance) const;  // empty: it is not there
  std::vector<View> views() const;

 private:
  // ---- what a server's life decides
  // Tells it what happened, and carries out what follows.
  template <typename... Parameters, typename... Arguments>
  void happens(DeviceServer& server, void (ServerLife::*event)(Parameters...), Arguments&&... arguments) {
    ServerLife::Actions actions;
    (server.life.*event)(std::forward<Arguments>(arguments)..., actions);
    carry_out(server, actions);
  }
  void carry_out(DeviceServer& server, const ServerLife::Actions& actions);
  bool act_on_process(DeviceServer& server, const ServerLife::Action& action);
  bool act_on_session(DeviceServer& server, const ServerLife::Action& action);
  void act_on_call(DeviceServer& server, const ServerLife::Action& action);

  // ---- servers
  DeviceServer& server_for(const SessionSpec& spec);
  void start_process(DeviceServer& server);
  void on(DeviceServer& server, wire::ServerReady& frame);
  void on(DeviceServer& server, wire::SessionReady& frame);
  void on(DeviceServer& server, wire::CallDone& frame);
  void on(DeviceServer& server, wire::ObjectFetched& frame);
  void on(DeviceServer& server, wire::ServerFault& frame);
  void on(DeviceServer& server, wire::ConstantsMissing& frame);
  void on(DeviceServer& server, wire::CallLoaded& frame);
  void on(DeviceServer& server, wire::ModuleTrial& frame);
  void on(DeviceServer& server, wire::VariablesPlaced& frame);
  template <typename TrialFrame>
  void on(DeviceServer& server, TrialFrame& frame);
  void on_gone(DeviceServer& server, const std::string& reason);
  void move_to_own_server(const std::string& tenant, DeviceServer& from);
  void restart_after(DeviceServer& server, Duration wait);
  void watch_idle(DeviceServer& server);

  // ---- sessions
  void open_constants(DeviceSession& session);
  void register_session(DeviceSession& session);
  void announce(DeviceSession& session);
  enum class Fault { kTasks, kNodes };
  void end_session(InstanceId instance, const std::string& reason, const Failure& failure, Fault fault = Fault::kTasks);

  // ---- calls
  void open_inputs(DeviceCall& call);
  void send(DeviceServer& server, DeviceCall& call);
  void reopen_missing(DeviceServer& server, DeviceCall& call, const std::vector<std::uint64_t>& missing);
  Result<KernelTaskAnswer> promise_outputs(DeviceServer& server, DeviceCall& call, wire::CallDone& done);
  void fail_call(InvocationId invocation, std::string_view type, const std::string& message,
                 Fault fault = Fault::kTasks);
  void answer(InvocationId invocation, Answer answer);
  void keep_outputs(DeviceServer& server, DeviceCall& call, Answer reply);
  void rerun_lost(DeviceCall& call, const Error& why);
  void answer_done(DeviceServer& server, InvocationId invocation, wire::CallDone& done);
  void arm_deadline(const DeviceServer& server, const DeviceCall& call);
  void post(std::function<void()> call);

  boost::asio::io_context& io_;
  const DeviceServersOptions options_;
  ObjectSource& objects_;
  const InstanceEvents events_;
  SessionPages pages_;
  ModuleTrials trials_;
  Quarantine quarantine_;
  ServerTable servers_;
  ObjectOpener opener_;
  std::map<InstanceId, DeviceSession> sessions_;
  std::unordered_map<InvocationId, DeviceCall> calls_;
  Lifetime life_;
};

}  // namespace fairlead
