// The node: a router between the core, which decides, and those who carry its decisions out with real processes, sockets and a
// real disk.
//
//   edge    ──invoke──> Invocations ──arrive──> Core ──Deliver──> Node ──> Runner ──> function
//   edge    <──reply─── Invocations <─Complete─ Core <─answered── Node <── Runner <── function
//
// Who does what: invocations.h and async_invocations.h (who waits for what), function_control.h (what can be called),
// task_requests.h (what was not deployed), program_runner.h and kernel_task_runner.h (how instances run), memory_desk.h and
// charges.h (what they hold and use), core_driver.h (the core's time and order).
//
// Threads: one thread runs everything here (the io_context's); SQLite, NVML and unpacking have threads of their own and
// answer by message.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edge/node_service.h"
#include "model/volume.h"
#include "node/async_invocations.h"
#include "node/charges.h"
#include "node/common_store.h"
#include "node/core_driver.h"
#include "node/failure_words.h"
#include "node/function_control.h"
#include "node/function_scaling.h"
#include "node/functions.h"
#include "node/gpu_monitor.h"
#include "node/gpu_sharing.h"
#include "node/graph_runs.h"
#include "node/instances.h"
#include "node/invocation_notes.h"
#include "node/invocations.h"
#include "node/kernel_task_runner.h"
#include "node/memory_desk.h"
#include "node/pipelines.h"
#include "node/program_runner.h"
#include "node/request_id.h"
#include "node/secrets.h"
#include "node/task_requests.h"
#include "node/tenants.h"
#include "node/worker.h"
#include "store/cluster_object_store.h"
#include "store/store.h"

namespace fairlead {

// What else is done with a store that other nodes have too.
struct CommonUse {
  std::function<void(SharedStore&)> opened = {};        // once, before the node is there; the node owns it
  std::function<void(SharedDocuments)> documents = {};  // as they are now, when they have changed
};

struct NodeOptions {
  std::string state_dir;
  PostgresOptions store = {};  // without a URL: SQLite in the state folder
  CoreOptions core;
  std::string policy;  // one of policy_names()
  PolicyOptions policy_options;
  std::vector<TenantEntry> tenants;  // heeded with PolicyOptions::by_tenant
  // What callers' bytes are counted in, wherever they lie: front door, events, kept replies, runs of graphs. Null:
  // each has a bound of its own.
  std::shared_ptr<ByteBudget> memory = {};
  EventQueueOptions events;
  InstanceHostOptions host;
  ObjectStoreOptions objects;
  GpuAccess gpu_access;
  bool runs_nothing = false;        // it claims no events of other nodes
  std::uint64_t history_bytes = 0;  // on disk, of invocations that are over; 0: none is kept
  DeviceServersOptions device_servers;
  ProgramLauncher pipeline_programs = {};  // starts what in a pipeline needs no GPU; empty: such pipelines do not start
  ImageStoreOptions images = {};           // but the state folder and who the node is, which the node knows
  FailureWords failure_words;
  std::optional<ShimHostOptions> shims;               // none: programs run without the shim; see ProgramRunnerOptions
  std::optional<ModelHostOptions> models;             // none: programs keep no models together
  Duration scale_to_zero = std::chrono::minutes(10);  // of functions that the node scales, without a call
  double start_ahead = 0;  // of the same: spares for as many times the usual rate; 0: nothing starts ahead of need
  RingBudget::Bounds pipeline_memory = {};
  SliceDriver slice_driver = {};                // cuts GPUs anew for pipelines; empty: nobody does
  ClaimTerms pipeline_claims = {};              // when pipelines give slices up for others
  std::vector<Volume> volumes;                  // that functions may ask for
  std::string in_place_obstacle;                // why no function may run its folder in place; "": it may
  SecretSource secrets;                         // none: no function may refer to one
  CommonUse common = {};                        // of a store that other nodes have too
  const RequestSinks* sinks = &kNoSinks;        // who outlives the node
  std::function<Status()> give_up_rights = {};  // of this process, once the spawner is forked; none: it keeps all
};

// What an operator may change while the node runs. D only where it is fixed.
struct NodeTuning {
  std::size_t queue_limit;
  std::size_t slots_per_gpu, slots_per_slice;
  std::vector<TenantEntry> tenants;  // where it is fair between tenants
};

class Node final : public NodeService {
 public:
  // Opens the store, forks the spawner, registers what the store holds. Construct before any other thread exists.
  // `gpus` must not be empty.
  static Result<std::unique_ptr<Node>> create(boost::asio::io_context& io, NodeOptions options);

  // The devices, and from then on their utilisation and health. REQUIRES: called once, before the first invocation.
  void use_gpus(std::unique_ptr<GpuMonitor> monitor, std::unique_ptr<GpuSharing> sharing);

  // kInvalidArgument: D, or D and a GPU's seats, are more than the node has instances for; nothing was changed then. REQUIRES: use_gpus() was called.
  Status retune(const NodeTuning& tuning);

  // Graceful end: refuses new work, runs what was accepted, then calls `drained`. Events that wait stay on disk.
  void drain(std::function<void()> drained);
  bool busy() const { return invocations_.live() > 0; }

  CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) override;
  Status run_elsewhere(const std::string& tenant, Bytes bytes, Job job) override;
  CancelHandle run_task(TaskRun run, Callback<Outcome> done) override;
  void invoke_event(InvokeRequest request, Callback<std::string> accepted) override;
  Status check_invoke(const std::string& function) override;

  void create_function(std::string name, FunctionConfig config, CodeSource code,
                       Callback<FunctionRecord> done) override;
  Result<FunctionRecord> get_function(const std::string& name) override;
  std::vector<FunctionRecord> list_functions() override;
  std::optional<CallSignature> call_signature(const std::string& name) override;
  void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) override;
  void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) override;
  void delete_function(std::string name, std::function<void(Status)> done) override;
  void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) override;

  ClusterObjectStore& objects() override { return *objects_; }
  GraphService& graphs() override { return *graphs_; }
  EventService& event_service() override { return *events_; }
  ScalingService& scaling() override { return *scaling_; }
  VersionService& versions() override { return control_->versions(); }
  RecentRequests& requests() override { return invocations_.requests(); }
  NodeStatus status() override;
  bool drains() const override { return life_.is_ending; }
  Result<std::string> log(const std::string& function, std::size_t tail_bytes) override;
  Result<TimedLog> timed_log(const std::string& function, std::size_t tail_bytes) override;
  void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) override;
  void history(std::uint64_t from, Callback<HistoryPage> done) override;

 private:
  friend class NodeWarmth;   // node_warmth.h
  friend class NodePlaces;   // node_places.h
  friend class NodeTenants;  // node_tenants.h
  Node(boost::asio::io_context& io, NodeOptions options, std::unique_ptr<FlowQueue> policy);

  Status open();
  Status recover();
  InstanceEvents instance_events();

  // Events of the runners.
  void on_next(InstanceId instance);
  void on_answered(InstanceId instance, Answer answer);
  void on_gone(InstanceId instance, const ExitInfo& exit);

  // Actions of the core.
  void act(const StartInstance& action);
  void act(const StopInstance& action);
  void act(const Deliver& action);
  void act(const Complete& action) { invocations_.act(action); }
  template <typename MemoryAction>
  void act(const MemoryAction& action) {
    memory_.act(action);
  }
  void act(const Charge& action);
  void act(const DeviceChange& action);
  void act(const SeatChange& action);
  void forget_flow(const RegisteredFunction& flow);  // of a function, or of a version of one
  void forget_models(const std::string& scope);      // of a version of a function that is not there any more
  void note_drained();

  void observe(const GpuObservation& observation);
  void compare_devices(const GpuObservation& observation);
  void take_in(const Device& device);
  void add_seats_on(const Device& device);
  void forget_device(GpuId gpu);
  GpuSharing::Events daemon_events();
  const GpuSample* sample(GpuId gpu) const;  // null: no monitor yet

  boost::asio::io_context& io_;
  NodeOptions options_;  // as retuned
  struct Life {
    Instant began;
    bool is_ending = false;
    std::function<void()> drained;  // empty: it was called, or the node does not end
  } life_;
  Tenants tenants_;
  Functions functions_;
  RequestIds request_ids_;
  CoreDriver driver_;
  Instances instances_;
  MemoryDesk memory_;
  InvocationNotes notes_;
  Charges charges_;
  Invocations invocations_;

  std::unique_ptr<GpuSharing> sharing_;  // goes after the instances, which are clients of its daemons

  std::unique_ptr<ClusterObjectStore> objects_;  // goes after the sockets that sandboxes have to it

  // Last, so that they go first: their callbacks use everything above.
  std::unique_ptr<ProgramRunner> programs_;
  struct Kept {
    std::unique_ptr<Store> store;
    SharedStore* shared = nullptr;        // the same, where other nodes have it too
    std::unique_ptr<CommonStore> common;  // then
    std::vector<FunctionChange> late;     // until that starts
  } kept_;
  std::unique_ptr<AsyncInvocations> events_;
  std::unique_ptr<GraphRuns> graphs_;
  std::unique_ptr<Worker> worker_;  // for blocking work of this machine's own: unpacking, files of constants
  std::unique_ptr<KernelTaskRunner> kernel_tasks_;
  std::unique_ptr<Pipelines> pipelines_;
  std::unique_ptr<TaskRequests> task_requests_;
  std::unique_ptr<FunctionControl> control_;
  std::unique_ptr<FunctionScaling> scaling_;
  std::unique_ptr<GpuMonitor> gpus_;
};

}  // namespace fairlead
