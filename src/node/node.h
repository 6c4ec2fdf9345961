// The node: the core's decisions carried out with real processes, sockets and a real disk. One thread runs everything
// here (the io_context's); SQLite, NVML and unpacking have threads of their own and answer by message.
//
//   gateway ──invoke──> Node ──arrive──> Core ──Deliver──> Node ──> InstanceHost ──> function
//   gateway <──reply─── Node <─Complete─ Core <─answered── Node <── InstanceHost <── function
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "gateway/node_service.h"
#include "node/event_queue.h"
#include "node/functions.h"
#include "node/gpu_access.h"
#include "node/gpu_monitor.h"
#include "node/gpu_sharing.h"
#include "node/graph_runs.h"
#include "node/history.h"
#include "node/instance_processes.h"
#include "node/kept_tasks.h"
#include "node/kernel_tasks.h"
#include "node/object_sockets.h"
#include "node/recent_replies.h"
#include "node/request_id.h"
#include "node/tenant_worker.h"
#include "node/tenants.h"
#include "node/work_after_answers.h"
#include "node/worker.h"
#include "runtime/device_servers/device_servers.h"
#include "runtime/instance_host.h"
#include "runtime/shim/shim_host.h"
#include "sharing/gpu_books.h"
#include "store/image_store.h"
#include "store/object_store.h"
#include "store/store.h"

namespace fairlead {

struct NodeOptions {
  std::string state_dir;
  CoreOptions core;
  std::string policy = "mqfq-sticky";
  PolicyOptions policy_options;
  std::vector<TenantEntry> tenants;  // with PolicyOptions::by_tenant
  EventQueueOptions events;
  InstanceHostOptions host;
  ObjectStoreOptions objects;
  GpuAccess gpu_access;
  std::uint64_t history_bytes = 0;  // on disk, of invocations that are over; 0: none is kept
  DeviceServersOptions device_servers;
  std::optional<ShimHostOptions>
      shims;  // none: programs run without the shim; socket_dir and background are the node's
};

class Node final : public NodeService {
 public:
  // Opens the store, forks the spawner, registers what the store holds. Construct before any other thread exists.
  // `gpus` must not be empty.
  static Result<std::unique_ptr<Node>> create(boost::asio::io_context& io, NodeOptions options);
  ~Node() override;

  // The devices, and from then on their utilisation and health. REQUIRES: called once, before the first invocation.
  void use_gpus(std::unique_ptr<GpuMonitor> monitor, std::unique_ptr<GpuSharing> sharing);

  // Graceful end: refuses new work, runs what was accepted, then calls `drained`. Events that wait stay on disk.
  void drain(std::function<void()> drained);
  bool busy() const { return !live_.empty(); }

  CancelHandle invoke(InvokeRequest request, Callback<InvokeReply> done) override;
  Status run_elsewhere(const std::string& tenant, Bytes bytes, Job job) override;
  CancelHandle run_task(TaskRun run, Callback<InvokeReply> done) override;
  void invoke_event(InvokeRequest request, Callback<std::string> accepted) override;
  Status check_invoke(const std::string& function) override;

  void create_function(std::string name, FunctionConfig config, CodeSource code,
                       Callback<FunctionRecord> done) override;
  Result<FunctionRecord> get_function(const std::string& name) override;
  std::vector<FunctionRecord> list_functions() override;
  void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) override;
  void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) override;
  void delete_function(std::string name, std::function<void(Status)> done) override;
  void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) override;

  ObjectStore& objects() override { return *objects_; }
  GraphService& graphs() override { return *graphs_; }
  NodeStatus status() override;
  Result<std::string> log(const std::string& function, std::size_t tail_bytes) override;
  void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) override;
  void history(std::uint64_t from, Callback<HistoryPage> done) override;

 private:
  struct Waiter {
    Callback<InvokeReply> done;
    bool want_log_tail = false;
    std::uint64_t ticket = 0;  // for cancelling
  };

  // An invocation between acceptance and Complete.
  struct Live {
    FlowId flow;
    Invocation invocation;
    std::string repeat_key;  // "" when the client gave no id
    std::vector<Waiter> waiters;
    std::optional<QueuedEvent> event;
    Instant arrived;
    // From delivery on:
    Instant delivered;
    InstanceId instance;
    GpuId gpu;
    Duration timeout{0};
    std::optional<Answer> answer;
    std::string failure;  // why its instance ended
    std::string log_tail;
  };

  static bool wants_log_tail(const Live& live);

  struct LiveInstance {
    FlowId flow;
    GpuId gpu;
    bool ready = false;    // has asked for its first invocation
    MemoryUse reported{};  // to the core, last
    ShimCalls counted{};   // in the function's statistics already
  };

  Node(boost::asio::io_context& io, NodeOptions options, std::unique_ptr<QueuePolicy> policy);

  Status recover();
  InstanceEvents instance_events();

  // Events of the host.
  void on_next(InstanceId instance);
  void on_answered(InstanceId instance, Answer answer);
  void on_gone(InstanceId instance, const ExitInfo& exit);

  // Actions of the core, in order, also when carrying one out causes more.
  void carry_out(Actions actions);
  void act(const StartInstance& action);
  void act(const StopInstance& action);
  void act(const Deliver& action);
  void act(const Complete& action);
  void act(const SwapOutMemory& action);
  void act(const SwapInMemory& action);
  void act(const GrantRoom& action);
  void act(const Charge& charge);
  void arm_timer();
  void note_drained();

  // Invocations.
  CancelHandle invoke(const RegisteredFunction& function, InvokeRequest request, Callback<InvokeReply> done);
  Result<InvocationId> admit(Live live);
  void cancel_waiter(InvocationId invocation, std::uint64_t ticket);
  InvokeReply reply_for(Live& live, const Complete& complete) const;
  void finish_event(Live& live, const Complete& complete, const InvokeReply& reply);
  void finish_unrun_event(Live& live, const Complete& complete);
  void submit_events();
  void arm_event_timer();
  void note(const Live& live, const Complete& complete);
  void note_refused(FlowId flow);

  // Device memory: node_memory.cc.
  void make_shims();
  std::optional<ShimAccess> shim_access(const StartInstance& action, const RegisteredFunction& function);
  void on_swapped(InstanceId instance, const SwapOutcome& outcome);
  std::optional<ShimUse> measure(InstanceId instance);  // of programs by their shim, of kernel tasks by their server
  std::optional<ShimUse> report_memory(InstanceId instance, Actions& out);
  void report_grown(Actions& out);
  void count_calls(LiveInstance& instance, const ShimCalls& calls);
  Duration gpu_time_of(InstanceId instance);
  void watch_memory();
  // What is charged: node_charges.cc.
  void make_charges();
  void begin_charge(InstanceId instance);
  bool believes_reports(GpuId gpu) const;
  bool goes_on(InstanceId instance, const std::optional<ShimUse>& use) const;
  std::optional<Duration> used_since_delivery(InstanceId instance, const std::optional<ShimUse>& use);
  void on_work_ended(InstanceId instance);
  void compare_with_devices(const std::vector<ProcessSample>& samples);
  void correct(InstanceId instance, const GpuBooks::Finding& finding);
  // Kernel tasks: node_kernel_tasks.cc.
  void make_device_servers();
  void start_kernel_task(const StartInstance& action, const RegisteredFunction& function);
  void put_constants(std::shared_ptr<const BundledTask> task, const std::string& tenant, std::size_t from,
                     std::function<void(Status)> done);

  // One-off requests: node_requests.cc. A task that is being read has those who wait for it.
  struct RequestWaiter {
    InvokeRequest request;
    Callback<InvokeReply> done;
    bool gone = false;
    CancelHandle cancel;  // of its invocation, once there is one
  };
  using RequestWaiters = std::vector<std::shared_ptr<RequestWaiter>>;  // shared with the handles that cancel them
  void queue_requested(const std::string& name, std::shared_ptr<RequestWaiter> waiter);
  void run_named(const std::string& name, TaskRun run, std::shared_ptr<RequestWaiter> waiter);
  void add_requested(const std::string& name, TaskRun run, Result<BundledTask> task);
  Status make_room_for(const TaskRun& run);
  TaskRequestsStatus requests_status() const;

  // GPUs.
  void observe(const GpuObservation& observation);
  GpuSharing::Control gpu_control();

  // Functions.
  struct PreparedCode {
    CodeBundle bundle;
    std::shared_ptr<const BundledTask> kernel_task;
  };
  void prepare_code(CodeSource code, std::function<void(Result<PreparedCode>)> done);
  void save(FunctionRecord record, std::shared_ptr<const BundledTask> kernel_task, Callback<FunctionRecord> done);
  InstanceSpec instance_spec(const StartInstance& action, const RegisteredFunction& function) const;

  boost::asio::io_context& io_;
  const NodeOptions options_;
  const Instant started_;
  const Duration epoch_;  // of started_'s clock, since the epoch
  Tenants tenants_;
  Functions functions_;
  RecentReplies recent_;
  EventQueue events_;
  RequestIds request_ids_;
  Core core_;
  GpuBooks books_;
  InstanceProcesses processes_;
  std::unique_ptr<WorkAfterAnswers> after_answers_;

  KeptTasks kept_tasks_;
  std::map<std::string, RequestWaiters> tasks_being_read_;
  FunctionStats request_stats_;  // of all one-off requests, of tasks that are not kept any more too

  std::unordered_map<InvocationId, Live> live_;
  std::unordered_map<std::string, InvocationId> live_by_repeat_key_;
  std::unordered_map<InstanceId, LiveInstance> instances_;
  std::uint64_t last_invocation_ = 0;
  std::uint64_t last_ticket_ = 0;

  std::deque<Action> pending_;
  bool carrying_out_ = false;

  boost::asio::steady_timer timer_;
  Instant armed_at_ = Instant::max();
  boost::asio::steady_timer event_timer_;
  boost::asio::steady_timer memory_timer_;
  bool watching_memory_ = false;
  Instant looked_at_memory_{};  // of all instances
  MoveTimes moves_;
  bool draining_ = false;
  std::function<void()> drained_;

  std::unique_ptr<GpuSharing> sharing_;  // goes after the instances, which are clients of its daemons

  // Last, so that they go first: their callbacks use everything above.
  std::unique_ptr<Worker> staging_worker_;
  std::map<GpuId, std::unique_ptr<Worker>> movers_;  // of whole processes; one move at a time on each GPU
  std::unique_ptr<ShimHost> shims_;
  std::unique_ptr<InstanceHost> host_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<History> history_;  // none: it is not kept
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<ObjectSockets> object_sockets_;
  std::unique_ptr<GraphRuns> graphs_;
  std::unique_ptr<StoredObjects> stored_objects_;
  std::unique_ptr<DeviceServers> device_servers_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<TenantWorker> tenant_worker_;  // for what strangers sent
  std::unique_ptr<ImageStore> images_;
  std::unique_ptr<Worker> image_worker_;  // apart, since fetching an image takes minutes
  std::unique_ptr<GpuMonitor> gpus_;
};

}  // namespace fairlead
