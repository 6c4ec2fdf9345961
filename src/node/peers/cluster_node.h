// A node among others, as edges see it: calls go to the function's home, changes of functions to all nodes, everything else to the
// node itself.
//
//   edge ──invoke──> ClusterNode ── home is here ──> Node
//                         └─────── home is B ─────> B's peers edge ──> B's Node
//
// A call crosses the network at most once, and once more after a 421 (decide/cluster/one_hop.h). It is given to another node only
// where the first one
// cannot have read it: what a node may have begun is never begun elsewhere, its caller is told which node it was.
//
// Without GPUs of its own (`runs_nothing`) it is a pure gateway: it runs nothing, whatever comes.
//
// Threads: the io_context's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "edge/node_service.h"
#include "net/http_server.h"
#include "node/peers/cluster_tenants.h"
#include "node/peers/function_sync.h"
#include "node/peers/load_count.h"
#include "node/peers/peer_objects.h"
#include "node/peers/peers.h"
#include "node/traces/tracer.h"

namespace fairlead {

struct ClusterOptions {
  std::string state_dir;
  bool runs_nothing = false;
  bool has_common_store = false;  // then functions come by that
  PeersOptions peers;
  TenantPorts tenants = {};               // a gateway's are not asked
  ClusterObjectStore* objects = nullptr;  // the node's, which outlives it; null: objects stay where they are made
  Tracer* tracer = nullptr;               // outlives the node; null: no traces
};

class ClusterNode final : public NodeService {
 public:
  // `node` outlives it. Starts nothing yet.
  static Result<std::unique_ptr<ClusterNode>> create(boost::asio::io_context& io, NodeService& node,
                                                     ClusterOptions options);
  ~ClusterNode() override;

  void start() { peers_->start(); }
  void drain();     // for good: it ends
  void give_way();  // its operator says so: calls go to others, as long as there are some, until resume()
  Status resume();  // kConflict: it ends
  bool busy() const { return forwards_.under_way > 0; }  // calls that wait for another node
  // When no call waits for another node, and others have heard of a drain: at the earliest kLinger after it.
  static constexpr Duration kLinger = std::chrono::milliseconds(400);
  void when_idle(std::function<void()> callback);

  Peers& peers() { return *peers_; }
  // What is brought from node to node.
  struct Brought {
    std::unique_ptr<FunctionSync> functions;
    std::unique_ptr<PeerObjects> objects;  // null: they stay where they are made
    std::unique_ptr<ClusterTenants> tenants;
  };
  const Brought& brought() const { return brought_; }
  const std::string& name() const { return peers_->name(); }
  bool runs_nothing() const { return runs_nothing_; }
  bool is_draining() const { return drain_number_.has_value(); }

  // A call that another node sent here. `head` is sealed by a node of the cluster.
  void serve(net::HttpExchange exchange, std::string_view head, std::string payload);

  // Where a function's next call would go, and why.
  std::optional<HomeChoice> home_of(const FunctionRecord& record);

  struct Counters {
    std::uint64_t local = 0, forwarded = 0, received = 0, misdirected = 0, retried = 0, lost = 0, unplaced = 0;
  };
  const Counters& counters() const { return counters_; }

  CancelHandle invoke(InvokeRequest request, Callback<Outcome> done) override;
  void invoke_event(InvokeRequest request, Callback<std::string> accepted) override;
  Status check_invoke(const std::string& function) override { return node_.check_invoke(function); }
  Status run_elsewhere(const std::string& tenant, Bytes bytes, Job job) override;
  CancelHandle run_task(TaskRun run, Callback<Outcome> done) override;

  void create_function(std::string name, FunctionConfig config, CodeSource code,
                       Callback<FunctionRecord> done) override;
  Result<FunctionRecord> get_function(const std::string& name) override { return node_.get_function(name); }
  std::vector<FunctionRecord> list_functions() override { return node_.list_functions(); }
  std::optional<CallSignature> call_signature(const std::string& name) override { return node_.call_signature(name); }
  void update_code(std::string name, CodeSource code, Callback<FunctionRecord> done) override;
  void update_config(std::string name, FunctionConfig config, Callback<FunctionRecord> done) override;
  void delete_function(std::string name, std::function<void(Status)> done) override;
  void set_reserved_concurrency(std::string name, std::optional<int> limit, Callback<FunctionRecord> done) override;

  ObjectStore& objects() override { return node_.objects(); }
  GraphService& graphs() override { return *graphs_; }
  EventService& event_service() override { return node_.event_service(); }
  ScalingService& scaling() override { return node_.scaling(); }
  VersionService& versions() override { return *absent_.versions; }
  RequestService& requests() override { return node_.requests(); }
  NodeStatus status() override;
  bool drains() const override { return is_draining() || node_.drains(); }
  Result<std::string> log(const std::string& function, std::size_t tail_bytes) override {
    return node_.log(function, tail_bytes);
  }
  Result<TimedLog> timed_log(const std::string& function, std::size_t tail_bytes) override {
    return node_.timed_log(function, tail_bytes);
  }
  void dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) override {
    node_.dead_letters(std::move(function), limit, std::move(done));
  }
  void history(std::uint64_t from, Callback<HistoryPage> done) override { node_.history(from, std::move(done)); }

 private:
  struct Forward;
  ClusterNode(boost::asio::io_context& io, NodeService& node, bool runs_nothing);
  void tell_if_idle();

  OwnLoad own_load(std::uint64_t incarnation);
  OwnLoad count_load();
  void place(const std::shared_ptr<Forward>& call);
  void run_here(const std::shared_ptr<Forward>& call);
  void send_to(const std::shared_ptr<Forward>& call, NodeId node);
  void answered(const std::shared_ptr<Forward>& call, NodeId node, Result<net::ClientResponse> answer);
  void finish(const std::shared_ptr<Forward>& call, Result<Outcome> outcome);
  void say_that_it_drains();
  void leave(const std::shared_ptr<Forward>& call);
  void cut(const std::shared_ptr<Forward>& call, const Error& error);
  double expected_seconds(std::uint64_t function) const;
  void learn(std::uint64_t function, const Outcome& outcome);
  Callback<FunctionRecord> told(std::string name, std::string zip, Callback<FunctionRecord> done);

  NodeService& node_;
  const bool runs_nothing_;
  std::optional<std::uint64_t> drain_number_;  // it drains, and said so with the word of this number
  // What is not there: graphs of a gateway, versions of all.
  struct Absent {
    std::unique_ptr<GraphService> graphs;
    std::unique_ptr<VersionService> versions;
  } absent_;
  GraphService* graphs_;
  LoadCount load_count_;
  Brought brought_;
  std::unique_ptr<Peers> peers_;
  std::unordered_map<std::uint64_t, double> seconds_;  // GPU time of a call, by function: a moving mean
  struct {
    std::size_t under_way = 0;
    Tracer* tracer = nullptr;  // null: they leave no traces
  } forwards_;
  std::function<void()> idle_;
  bool lingers_ = false;  // it said that it drains: what is on its way here is still answered
  net::Ticker linger_;
  Counters counters_;
};

}  // namespace fairlead
