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
#include "node/recent_replies.h"
#include "node/request_id.h"
#include "node/worker.h"
#include "runtime/instance_host.h"
#include "store/store.h"

namespace fairlead {

struct NodeOptions {
  std::string state_dir;
  CoreOptions core;
  std::string policy = "mqfq-sticky";
  PolicyOptions policy_options;
  EventQueueOptions events;
  InstanceHostOptions host;
  GpuAccess gpu_access;
};

class Node final : public NodeService {
 public:
  // Opens the store, forks the spawner, registers what the store holds. Construct before any other thread exists.
  // `gpus` must not be empty.
  static Result<std::unique_ptr<Node>> create(boost::asio::io_context& io, NodeOptions options);
  ~Node() override;

  // The devices, and from then on their utilisation. REQUIRES: called once, before the first invocation.
  void use_gpus(std::unique_ptr<GpuMonitor> monitor);

  // Graceful end: refuses new work, runs what was accepted, then calls `drained`. Events that wait stay on disk.
  void drain(std::function<void()> drained);
  bool busy() const { return !live_.empty(); }

  CancelHandle invoke(InvokeRequest request, Callback<InvokeReply> done) override;
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

  NodeStatus status() override;
  Result<std::string> log(const std::string& function, std::size_t tail_bytes) override;
  void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) override;

 private:
  struct Waiter {
    Callback<InvokeReply> done;
    bool want_log_tail = false;
    std::uint64_t ticket = 0;  // for cancelling
  };

  // An invocation between acceptance and Complete.
  struct Live {
    FlowId flow;
    std::string request_id;
    std::string payload;
    std::string client_context;
    std::string trace_id;
    std::string repeat_key;  // "" when the client gave no id
    std::vector<Waiter> waiters;
    std::optional<QueuedEvent> event;
    // From delivery on:
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
    bool ready = false;  // has asked for its first invocation
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
  void arm_timer();
  void note_drained();

  // Invocations.
  Result<InvocationId> admit(Live live);
  void cancel_waiter(InvocationId invocation, std::uint64_t ticket);
  InvokeReply reply_for(Live& live, const Complete& complete) const;
  void finish_event(Live& live, const Complete& complete, const InvokeReply& reply);
  void finish_unrun_event(Live& live, const Complete& complete);
  void submit_events();
  void arm_event_timer();

  // Functions.
  void prepare_code(CodeSource code, std::function<void(Result<CodeBundle>)> done);
  void save(FunctionRecord record, Callback<FunctionRecord> done);
  InstanceSpec instance_spec(const StartInstance& action, const RegisteredFunction& function) const;

  boost::asio::io_context& io_;
  const NodeOptions options_;
  const Instant started_;
  Functions functions_;
  RecentReplies recent_;
  EventQueue events_;
  RequestIds request_ids_;
  Core core_;

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
  bool draining_ = false;
  std::function<void()> drained_;

  // Last, so that they go first: their callbacks use everything above.
  std::unique_ptr<InstanceHost> host_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<GpuMonitor> gpus_;
};

}  // namespace fairlead
