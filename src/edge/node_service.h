// What edges ask of the node. Implemented by src/node, faked in their tests. HTTP stays on this side, scheduling on the other.
//
// Threads: calls and callbacks on the io_context's thread. A callback may run inside the call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "decide/core/core.h"
#include "edge/event_service.h"
#include "edge/graph_service.h"
#include "edge/request_service.h"
#include "edge/scaling_service.h"
#include "edge/version_service.h"
#include "model/answer_stream.h"
#include "model/call_signature.h"
#include "model/device.h"
#include "model/function.h"
#include "model/invocation.h"
#include "model/kernel_task.h"
#include "model/kernel_task_request.h"
#include "store/object_store.h"
#include "store/store.h"

namespace fairlead {

struct InvokeRequest {
  Invocation invocation;
  std::string sdk_invocation_id;  // amz-sdk-invocation-id; a repeat attaches to the running invocation
  bool want_log_tail = false;
  std::string qualifier = {};  // a version, an alias, "$LATEST" or "", which is the same: VersionService::choose
  std::shared_ptr<AnswerStream> stream = {};  // where its answer may go as it is made; null: whole, in the outcome
};

// A one-off request of a kernel task.
struct TaskRun {
  std::string tenant;
  KernelTaskRequest request;
  std::string sdk_invocation_id;  // as above
  std::string trace_id;
  std::optional<std::int64_t> deadline_ms = std::nullopt;  // as Invocation has it
};

struct FunctionStats {
  std::uint64_t invocations = 0, errors = 0, timeouts = 0, crashes = 0;
  std::uint64_t device_warm_starts = 0, host_warm_starts = 0, cold_starts = 0;  // one of them per invocation
  Duration service{0};                                                          // GPU time charged
  std::uint64_t launches = 0, gate_waits = 0;                // of kernels; those that found the shim's gate closed
  Duration gpu_time_not_reported{0};                         // charged because the device said more than its instances
  std::uint64_t passed_through = 0, unhooked_functions = 0;  // what the shim left to the driver, being in doubt
  Duration queue_time{0};                                    // summed
  std::vector<std::uint64_t> duration_histogram;             // counts per kDurationBucketsSeconds, the last one +Inf
  // Of answers that were streamed, from arrival to their first byte; counts per kDurationBucketsSeconds. Empty: none was.
  std::vector<std::uint64_t> first_byte_histogram;
  Duration first_byte{0};  // summed
};
inline constexpr double kDurationBucketsSeconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,    1,     2.5,    5,     10,   30,    60,   300};

// What instances of a function had of their share lately, as the pacer of their devices saw it.
struct ShareDelivery {
  Duration window{0};              // over so much time
  double delivered_percent = 0;    // of it; the least of the instances that had work
  double last_minute_percent = 0;  // of the last minute, of the same instance
  Duration credit{0};              // of it: promised and not had yet
};

// What a function's instances waited at the node's gate for places on their devices, since the node began.
struct GateWaits {
  std::vector<std::uint64_t> histogram;  // counts per kGateWaitBucketsSeconds, the last one +Inf; empty: nobody waited
  Duration total{0};
};
// Powers of four of a microsecond, as the pacers count them.
inline constexpr double kGateWaitBucketsSeconds[] = {1e-6,     4e-6,      16e-6,     64e-6,      256e-6,  1.024e-3,
                                                     4.096e-3, 16.384e-3, 65.536e-3, 262.144e-3, 1.048576};

// Instances of a function that computed outside of their turns, by the device's account, since the node began.
struct TurnsEvaded {
  std::uint64_t named = 0, stopped = 0;
  std::string last;  // which, and what it did; "": none
};

// A function's share of devices.
struct ShareStatus {
  std::vector<GpuId> seats;                              // where its instances are kept
  std::string lacking;                                   // why some are kept nowhere; "": none is missing
  std::optional<ShareDelivery> delivery = std::nullopt;  // empty: nobody measures it, or nothing ran
  GateWaits waits = {};
  TurnsEvaded evaded = {};
};

struct FunctionStatus {
  std::string name;
  FlowView flow;
  FunctionStats stats;
  std::size_t instances_idle = 0, instances_busy = 0, instances_starting = 0;
  MemoryUse memory;          // device memory, summed over its instances that report
  Bytes memory_expected{0};  // of one instance; 0: not known
  GpuSettings settings;
  ShareStatus share;
  std::map<std::string, OnSlices> on_slices;  // by profile; empty: it ran on whole GPUs alone
  std::string start_failure;  // why its last instance did not get ready; "": it did, or none has started
};

// How a tenant of a node stands in its cluster.
struct TenantOverCluster {
  double factor = 1;  // by which the node multiplies its weight
  double lead_s = 0;  // GPU seconds over weight, before the median of those that wait here
};

struct TenantStatus {
  std::string name;
  TenantShare share;
  std::size_t functions = 0, queued = 0, in_flight = 0;
  Duration service{0};                                           // GPU time charged to its functions
  std::optional<TenantOverCluster> over_cluster = std::nullopt;  // empty: the node is alone
};

struct GpuStatus {
  GpuView view;
  Device device;
  Bytes memory_used{0};
  double utilisation = 0;  // 0-1, last monitor period
  std::string state;       // "serving", "draining", "repairing"
  std::string reason;      // why it does not serve
  unsigned mps_restarts = 0;
};

// How fast device memory moved so far; bytes are in CoreCounters.
struct MoveTimes {
  Duration in{0}, out{0};
};

// One-off requests of kernel tasks.
struct TaskRequestsStatus {
  std::size_t kept = 0;  // different tasks
  std::size_t queued = 0, in_flight = 0;
  FunctionStats stats;  // of all since the node started
};

// What the node was told to do, for those who want to do the same elsewhere (a simulator).
struct NodeSettings {
  CoreOptions core;
  PolicyOptions policy;
  Duration over_run = std::chrono::seconds(10);  // T of the policy
};

// The process that runs a tenant's kernel tasks on one GPU.
struct DeviceServerStatus {
  GpuId gpu;
  std::string tenant;
  std::int64_t pid = 0;
  std::size_t sessions = 0;
  std::uint64_t restarts = 0, calls = 0;
  TaskPhases phases;  // of all calls
  // Of the present process: objects that calls needed, found on the device, in its host memory, or in neither.
  std::uint64_t hits = 0, host_hits = 0, misses = 0, evictions = 0;
  Bytes device_used{0}, host_used{0};
  std::uint64_t modules = 0;  // loaded
};

// A function that is a pipeline, and where its stages are.
struct PipelineStatus {
  struct Stage {
    GpuId gpu;
    std::string slice;                    // "2g.20gb"
    std::vector<std::string> components;  // in the order in which they run
    std::int64_t pid = 0;
    bool is_ready = false;
    std::size_t ring_used = 0, ring_depth = 0;  // slots for what it hands on
    Bytes ring_bytes{0};
    std::uint64_t requests = 0, restarts = 0;
    Duration gpu_time{0};
  };
  std::string function;
  std::string
      state;  // "no slices", "waits for its slices", "starts", "runs", "moves", "backs off", "broken", "warm", "cold", "waits for its turn"
  std::string why;  // of the plan, or what is lacking
  std::vector<Stage> stages;
  std::size_t in_flight = 0, waiting = 0,
              draining = 0;  // requests in it; for it; pipelines that run what they still have
  std::uint64_t moves = 0, rebuilt = 0;
};

// GPUs cut anew for pipelines that fit on no slice (--mig-reslice).
struct SliceCutStatus {
  bool is_on = false;
  std::string state;  // "idle", "reads", "empties", "cuts", "settles"
  std::uint64_t cuts = 0, failed = 0;
  std::string last;  // what was cut, or why it was not; "": nothing yet
};

// Models that programs share on one GPU (docs/how-to/models.md).
struct ModelStatus {
  GpuId gpu;
  std::int64_t pid = 0;  // of the model server; 0: none runs
  std::uint64_t restarts = 0;
  Bytes memory{0};     // that models may take
  Bytes used{0};       // on the device; of it:
  Bytes unused{0};     //   sealed, and held by nobody
  Bytes lingering{0};  //   dropped, and perhaps still mapped by a living instance
  Bytes saved{0};      // what private copies would take on top
  std::size_t tensors = 0, holders = 0;
  std::uint64_t stored = 0, shared = 0, by_content = 0, evicted = 0;  // as ModelStoreUse
  std::map<std::string, Bytes> by_tenant;                             // used, by whose budget
};

struct NodeStatus {
  std::string version;
  std::string policy;
  std::string sharing;  // "none", "mps", "mig"
  std::string memory_policy;
  Duration uptime{0};
  Duration global_virtual_time{0};
  bool draining = false;
  bool is_gateway = false;  // it runs nothing, and gives every call to other nodes
  std::size_t queued = 0;
  CoreCounters counters;
  std::vector<FunctionStatus> functions;  // by name
  std::vector<TenantStatus> tenants;      // by name; empty where the policy has no tenants
  std::vector<GpuStatus> gpus;
  std::vector<InstanceView> instances;
  Bytes resident{0};
  MoveTimes moves;
  NodeSettings settings;
  ObjectStore::Usage objects;
  TaskRequestsStatus task_requests;
  GraphCounters graphs;
  EventCounters events;
  StateDamage damage;            // what the start found
  std::string spawner_obstacle;  // why no program can start now; "": one can
  std::uint64_t spawner_restarts = 0;
  std::vector<DeviceServerStatus> device_servers;  // by GPU and tenant
  std::vector<PipelineStatus> pipelines;           // by function
  SliceCutStatus slice_cuts;
  std::vector<ModelStatus> models;  // by GPU; those where a program has run
};

// Lines of core/invocation_record.h, one for each invocation that is over.
struct HistoryPage {
  std::string lines;       // empty: there is nothing more
  std::uint64_t next = 0;  // where the next page begins
};

// The end of a function's log, and when parts of it were written.
struct TimedLog {
  struct Mark {
    std::size_t at = 0;           // what stands in `text` from here on, to the next mark,
    std::int64_t written_ms = 0;  // was written then or within a second of it, since 1970
  };
  std::string text;
  std::vector<Mark> marks;  // in order; of what stands before the first nothing is known
};

struct CodeSource {       // one of the three
  std::string zip;        // raw bytes of a zip file
  std::string folder;     // absolute path on the node's machine; operators on loopback or the unix socket only
  bool in_place = false;  // the folder itself is what runs, no copy of it
  std::optional<std::uint32_t> reader = {};  // the user with whose rights folder or layout is read; empty: the node's
  std::string image;  // reference of an OCI image; a layout on the node's machine only for the same clients
};

class NodeService {
 public:
  template <typename T>
  using Callback = std::function<void(Result<T>)>;

  virtual ~NodeService() = default;

  // Invocation. The returned handle cancels what is still queued (the client went away).
  using CancelHandle = std::function<void()>;
  virtual CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) = 0;
  // Runs `job` on another thread, tenants in turns, and what it returns on this one: reading what is large must not keep
  // others waiting. `bytes` are what the job holds. kResourceExhausted: too much is being read already.
  using Job = std::function<std::function<void()>()>;
  virtual Status run_elsewhere(const std::string& tenant, Bytes bytes, Job job) = 0;
  // The same of a task that was not deployed. kInvalidArgument: what deploying or calling it would refuse; nothing has run.
  virtual CancelHandle run_task(TaskRun run, Callback<Outcome> done) = 0;
  virtual void invoke_event(InvokeRequest request, Callback<std::string> accepted) = 0;  // request id, once durable
  virtual Status check_invoke(const std::string& function) = 0;                          // DryRun

  // Functions; without a qualifier, these are about $LATEST.
  virtual void create_function(std::string name, FunctionConfig config, CodeSource code,
                               Callback<FunctionRecord> done) = 0;
  virtual Result<FunctionRecord> get_function(const std::string& name) = 0;
  virtual std::vector<FunctionRecord> list_functions() = 0;  // by name
  // What a call of it takes and gives; nothing: it does not say, or there is no such function.
  virtual std::optional<CallSignature> call_signature(const std::string& name) = 0;
  virtual void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) = 0;
  virtual void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) = 0;
  virtual void delete_function(std::string name, std::function<void(Status)> done) = 0;
  virtual void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) = 0;

  virtual ObjectStore& objects() = 0;
  virtual GraphService& graphs() = 0;
  virtual EventService& event_service() = 0;
  virtual ScalingService& scaling() = 0;
  virtual VersionService& versions() = 0;
  virtual RequestService& requests() = 0;

  // Operations.
  virtual NodeStatus status() = 0;
  virtual bool drains() const = 0;  // NodeStatus::draining, at no cost: health checks of anybody ask it
  virtual Result<std::string> log(const std::string& function, std::size_t tail_bytes) = 0;
  virtual Result<TimedLog> timed_log(const std::string& function, std::size_t tail_bytes) = 0;
  virtual void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) = 0;
  // From 0, or where the page before said. kNotFound when the node keeps no history.
  virtual void history(std::uint64_t from, Callback<HistoryPage> done) = 0;
};

}  // namespace fairlead
