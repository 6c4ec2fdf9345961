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
#include "runtime/device_servers/module_trials.h"
#include "runtime/device_servers/object_source.h"
#include "runtime/device_servers/quarantine.h"
#include "runtime/device_servers/server_life.h"
#include "runtime/device_servers/server_objects.h"
#include "runtime/device_servers/server_process.h"
#include "runtime/device_servers/session_pages.h"
#include "runtime/instance_host.h"

namespace fairlead {

// A kernel task as its bundle has it.
struct KernelTaskSpec {
  KernelTask task;
  std::vector<std::string> module_files;  // of task.modules, on this machine
};
struct SessionSpec {
  InstanceId instance;
  GpuId gpu;
  std::string tenant = "default";
  std::shared_ptr<const KernelTaskSpec> task;
  std::map<std::string, std::string> environment;  // of the server, when this is its first session
};

struct DeviceServersOptions {
  // Words before `program`, for a process with that environment: what runs it in a jail. Empty: it runs by itself.
  using Launcher = ServerProcess::Launcher;
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
  struct Use {
    Bytes device{0};  // of the session's objects and temporaries, at its last call
    Duration gpu_time{0};
  };
  static constexpr const char* kAllTenants = "*";  // no tenant's name
  // For people.
  struct View {
    GpuId gpu;
    std::string tenant;  // kAllTenants: of a server for all
    std::int64_t pid = 0;
    std::string device;
    std::size_t sessions = 0;
    std::uint64_t restarts = 0, calls = 0;
    TaskPhases phases;              // of all calls
    wire::ServerCounters counters;  // of the present process
  };

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
  struct Place {
    GpuId gpu;
    std::string domain;  // a tenant, or kAllTenants
    auto operator<=>(const Place&) const = default;
  };
  struct Server {
    Server(boost::asio::io_context& io, const Place& at, std::map<std::string, std::string> variables,
           const ServerRecovery::Options& recovery)
        : place(at),
          environment(std::move(variables)),
          life(recovery, at.domain == kAllTenants),
          restart(io),
          idle(io),
          view{.gpu = at.gpu, .tenant = at.domain} {}

    const Place place;
    const std::map<std::string, std::string> environment;
    ServerLife life;
    boost::asio::steady_timer restart;  // until the next process is started
    boost::asio::steady_timer idle;
    std::unique_ptr<ServerProcess> process;
    std::uint64_t generation = 0;  // of its process, or of the wait for one; no two have one number
    std::uint64_t number = 0;      // of the server, for SessionMemory; never reused
    Bytes memory{0};               // of the process, for objects
    View view;
    ServerObjects objects;
    std::string fault;  // why its process is about to end; "": nobody has said
    std::string ended;  // why the last one ended
    std::map<std::uint64_t, std::function<void(Status)>> fetches;
  };
  // A server's process, as callbacks know it that may come when that, its server or all servers are gone.
  class Handle {
   public:
    Handle(DeviceServers& servers, const Server& server)
        : servers_(&servers), life_(servers.life_.watch()), place_(server.place), generation_(server.generation) {}
    bool outlives_all() const { return life_.ended(); }
    Server* find() const;  // null: it is not there any more

   private:
    DeviceServers* servers_;
    Lifetime::Watch life_;
    Place place_;
    std::uint64_t generation_;
  };
  struct Bound {  // an object of a session or a call
    std::uint32_t buffer = 0;
    ObjectKey name;     // where it comes from
    std::string bytes;  // or they are inline
    std::uint64_t object = 0;
    Bytes size{0};
    UniqueFd memory;  // when the server does not have it
  };
  using BoundPtr = std::shared_ptr<Bound>;  // shared with the opening of it, which may outlive the call
  struct Session {
    InstanceId instance;
    SessionSpec spec;
    Server* server = nullptr;
    bool announced = false;   // `next` was called
    Duration kernel_init{0};  // of the last registration; the next answer's
    std::vector<BoundPtr> constants;
    std::size_t opening = 0;
    std::optional<InvocationId> call;
    Use use;
  };
  struct Call {
    InvocationId invocation;
    InstanceId instance;
    std::string tenant;
    std::string request_id;
    bool binary = false;
    std::shared_ptr<const KernelTaskSpec> spec;
    std::vector<BoundPtr> inputs;
    std::vector<BoundPtr> outputs;
    std::vector<BoundPtr> lost_constants;  // to be opened with its inputs
    std::size_t opening = 0;
    std::uint64_t openings = 0;  // of its inputs, begun so far
    Instant begun;
    Duration data_layer{0};
    Instant deadline;
    std::size_t keeping = 0;  // outputs whose bytes are on their way to the data layer
  };

  // ---- what a server's life decides
  // Tells it what happened, and carries out what follows.
  template <typename... Parameters, typename... Arguments>
  void happens(Server& server, void (ServerLife::*event)(Parameters...), Arguments&&... arguments) {
    ServerLife::Actions actions;
    (server.life.*event)(std::forward<Arguments>(arguments)..., actions);
    carry_out(server, actions);
  }
  void carry_out(Server& server, const ServerLife::Actions& actions);
  bool act_on_process(Server& server, const ServerLife::Action& action);
  bool act_on_session(Server& server, const ServerLife::Action& action);
  void act_on_call(Server& server, const ServerLife::Action& action);

  // ---- servers
  Server& server_for(const SessionSpec& spec);
  void start_process(Server& server);
  void on_frame(Server& server, wire::FrameToNode frame);
  void on(Server& server, wire::ServerReady& frame);
  void on(Server& server, wire::SessionReady& frame);
  void on(Server& server, wire::CallDone& frame);
  void on(Server& server, wire::ObjectFetched& frame);
  void on(Server& server, wire::ServerFault& frame);
  void on(Server& server, wire::ConstantsMissing& frame);
  void on(Server& server, wire::CallLoaded& frame);
  void on(Server& server, wire::ModuleTrial& frame);
  void on(Server& server, wire::VariablesPlaced& frame);
  template <typename TrialFrame>
  void on(Server& server, TrialFrame& frame);
  void on_gone(Server& server, const std::string& reason);
  void forget_process(Server& server);
  void move_to_own_server(const std::string& tenant, Server& from);
  void restart_after(Server& server, Duration wait);
  void watch_idle(Server& server);

  // ---- sessions
  void open_constants(Session& session);
  void register_session(Session& session);
  void announce(Session& session);
  enum class Fault { kTasks, kNodes };
  void end_session(InstanceId instance, const std::string& reason, const Failure& failure, Fault fault = Fault::kTasks);

  // ---- calls
  Result<Call> read_call(const Session& session, const DeliverRequest& request);
  Status reserve_outputs(Call& call);
  void abandon_outputs(const Call& call, const std::string& why);
  void open_inputs(Call& call);
  void open_bound(Server& server, BoundPtr bound, Instant deadline, std::function<void(Status)> done);
  bool known(Server& server, Bound& bound);
  void send(Server& server, Call& call);
  void reopen_missing(Server& server, Call& call, const std::vector<std::uint64_t>& missing);
  Result<KernelTaskAnswer> promise_outputs(Server& server, Call& call, wire::CallDone& done);
  void fetch(Server* server, std::uint64_t object, UniqueFd destination, std::function<void(Status)> done);
  void fail_call(InvocationId invocation, std::string_view type, const std::string& message,
                 Fault fault = Fault::kTasks);
  void answer(InvocationId invocation, Answer answer);
  void keep_outputs(Server& server, Call& call, Answer reply);
  void rerun_lost(Call& call, const Error& why);
  void answer_done(Server& server, InvocationId invocation, wire::CallDone& done);
  void arm_deadline(const Server& server, const Call& call);
  void post(std::function<void()> call);

  boost::asio::io_context& io_;
  const DeviceServersOptions options_;
  ObjectSource& objects_;
  const InstanceEvents events_;
  SessionPages pages_;
  ModuleTrials trials_;
  Quarantine quarantine_;
  std::map<Place, Server> servers_;
  std::map<InstanceId, Session> sessions_;
  std::unordered_map<InvocationId, Call> calls_;
  struct Numbers {  // that were given last
    std::uint64_t object = 0, server = 0, fetch = 0, generation = 0;
  } last_;
  Lifetime life_;
};

}  // namespace fairlead
