// The node's end of the device servers: an instance of a kernel task is a session in the server of its GPU and isolation
// domain: its tenant, or, where servers fence addresses, all tenants.
// Starts a server with its first session, replaces it when it ends, hands calls over with the objects they need, and tells
// the data layer of outputs that stay on the device. No decisions of scheduling here.
//
// When a server ends, its sessions are registered with the next one and calls that had shown no output run again, once
// each and one at a time: so a call that ends servers is found out and fails alone, and the others never notice. A call
// that runs past its deadline is killed with its server, in the same way. What follows an end is decided by
// server_recovery.h. Who ended a server for all tenants has one of its own for a while; and what such a server answers is
// in the data layer before its caller hears of it, so that no neighbour can end what was answered.
//
//   start ─> constants opened, server there ─> RegisterSession (─> ModuleTrial ─> TrialEnded) ─> SessionReady ─> next
//   deliver ─> call checked, keys reserved, inputs opened ─> RunCall ─> CallDone ─> outputs promised ─> answered, next
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/kernel_task.h"
#include "runtime/device_servers/module_trials.h"
#include "runtime/device_servers/object_source.h"
#include "runtime/device_servers/quarantine.h"
#include "runtime/device_servers/server_process.h"
#include "runtime/device_servers/server_recovery.h"
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
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;              // of every server: library, sizes, eviction, isolation
  bool one_for_all = false;                        // tenants, on each GPU: REQUIRES servers that fence addresses
  Duration patience = std::chrono::seconds(10);    // for the constants of a session
  Duration idle_limit = std::chrono::seconds(60);  // a server without sessions ends, unless it holds outputs
  ServerRecovery::Options recovery;
  Duration quarantine = std::chrono::minutes(10);      // a server of one's own for who ended one of all tenants
  Duration trial_patience = std::chrono::seconds(30);  // for a module, where servers ask for trials
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
  bool has(InstanceId instance) const { return sessions_.contains(instance); }
  Use use(InstanceId instance) const;
  std::vector<View> views() const;

 private:
  struct Place {
    GpuId gpu;
    std::string domain;  // a tenant, or kAllTenants
    auto operator<=>(const Place&) const = default;
  };
  struct OutputOnDevice {
    std::uint64_t object = 0;
    std::int64_t created_ms = 0;
  };
  struct Server {
    Place place;
    std::map<std::string, std::string> environment;
    std::unique_ptr<ServerProcess> process;
    bool ready = false;
    ServerRecovery recovery;
    std::uint64_t generation = 0;                        // of its process; no two processes have one number
    std::unique_ptr<boost::asio::steady_timer> restart;  // there while the next process waits to be started
    std::uint64_t number = 0;                            // of the server, for SessionMemory; never reused
    Bytes memory{0};                                     // of the process, for objects
    View view;
    std::set<InstanceId> sessions;
    // By tenant and content, key, digest: equal bytes of two tenants are two.
    std::map<ObjectKey, std::uint64_t> by_content;
    std::map<ObjectKey, OutputOnDevice> outputs;
    std::set<std::uint64_t> held;  // objects whose bytes the process has, as far as we know
    std::deque<InvocationId> unsent;
    std::set<InvocationId> sent;
    std::optional<wire::ServerFault> fault;
    std::map<std::uint64_t, std::function<void(Status)>> fetches;
    std::unique_ptr<boost::asio::steady_timer> idle;
    Instant swept;  // stale outputs
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
  enum class SessionState { kOpening, kOpened, kRegistering, kReady };
  struct Session {
    InstanceId instance;
    SessionSpec spec;
    Server* server = nullptr;
    SessionState state = SessionState::kOpening;
    bool announced = false;   // `next` was called
    bool on_trial = false;    // the server waits for the node, so it does nothing for the session
    int suspected = 0;        // so many servers ended while it was registered
    Duration kernel_init{0};  // of the last registration; the next answer's
    std::vector<BoundPtr> constants;
    std::size_t opening = 0;
    std::optional<InvocationId> call;
    Use use;
  };
  struct Call {
    InvocationId invocation;
    InstanceId instance;
    Server* server = nullptr;
    std::string tenant;
    std::string request_id;
    bool binary = false;
    std::shared_ptr<const KernelTaskSpec> spec;
    std::vector<BoundPtr> inputs;
    std::vector<BoundPtr> outputs;
    std::size_t opening = 0;
    std::uint64_t openings = 0;  // of its inputs, begun so far
    Instant begun;
    Duration data_layer{0};
    Instant deadline;
    int suspected = 0;        // so many servers ended while it ran
    int reopened = 0;         // inputs or constants were missing, or outputs were lost before they were kept
    std::size_t keeping = 0;  // outputs whose bytes are on their way to the data layer
    bool given_up = false;    // nobody waits for its answer
  };

  Server& server_for(const SessionSpec& spec);
  void start_process(Server& server);
  void on_frame(Server& server, wire::FrameToNode frame);
  void on(Server& server, wire::ServerReady& frame);
  void on(Server& server, wire::SessionReady& frame);
  void on(Server& server, wire::CallDone& frame);
  void on(Server& server, wire::ObjectFetched& frame);
  void on(Server& server, wire::ServerFault& frame);
  void on(Server& server, wire::ConstantsMissing& frame);
  void tell_memory(const Session& session);
  void on(Server& server, wire::ModuleTrial& frame);
  void on(Server& server, wire::VariablesPlaced& frame);
  template <typename TrialFrame>
  void on(Server& server, TrialFrame& frame);
  void on_gone(Server& server, const std::string& reason);
  void forget_process(Server& server, const std::string& reason);
  ServerRecovery::End describe_end(const Server& server, bool was_ready) const;
  void recover(Server& server, const ServerRecovery::End& end, const std::string& reason);
  void move_to_own_server(const std::string& tenant, Server& from);
  void restart_after(Server& server, Duration wait);
  void restart(Server& server);
  void retire_if_idle(Server& server);
  void drop_stale_outputs(Server& server);

  void open_constants(Session& session);
  void register_session(Session& session);
  void end_session(InstanceId instance, const std::string& reason, const Failure& failure);

  Result<Call> read_call(const Session& session, const DeliverRequest& request);
  Status reserve_outputs(Call& call);
  void abandon_outputs(const Call& call, const std::string& why);
  void open_inputs(Call& call, const std::vector<BoundPtr>& constants);
  void open_bound(Server& server, BoundPtr bound, Instant deadline, std::function<void(Status)> done);
  bool known(Server& server, Bound& bound);
  void opened(Server& server, Bound& bound, ObjectSource::Opened object);
  void send_calls(Server& server);
  void send(Server& server, Call& call);
  void reopen_missing(Server& server, Call& call, const std::vector<std::uint64_t>& missing);
  Result<KernelTaskAnswer> promise_outputs(Server& server, Call& call, wire::CallDone& done);
  void fetch(const Place& place, std::uint64_t object, UniqueFd destination, std::function<void(Status)> done);
  void fail_call(InvocationId invocation, std::string_view type, const std::string& message);
  void answer(InvocationId invocation, Answer answer);
  void keep_outputs(Call& call, Answer reply);
  void rerun_lost(Call& call, const Error& why);
  void answer_done(Server& server, InvocationId invocation, wire::CallDone& done);
  void arm_deadline(Call& call);
  void post(std::function<void()> call);

  boost::asio::io_context& io_;
  const DeviceServersOptions options_;
  ObjectSource& objects_;
  const InstanceEvents events_;
  ModuleTrials trials_;
  Quarantine quarantine_;
  std::map<Place, Server> servers_;
  std::map<InstanceId, Session> sessions_;
  std::unordered_map<InvocationId, Call> calls_;
  std::uint64_t last_object_ = 0;
  std::uint64_t last_server_ = 0;
  std::uint64_t last_fetch_ = 0;
  std::uint64_t last_generation_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fairlead
