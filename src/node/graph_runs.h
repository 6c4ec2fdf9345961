// Runs of graphs of functions: GraphRun's decisions carried out by invoking functions and by asking the data layer what is there.
// Everything that a run writes is reserved when it is accepted, so that others may wait for it; what a node that failed has
// written is removed, and until it has ended no run takes its objects for there.
//
// Runs live in memory and go with the node; the objects that they sealed stay, and a graph that is sent again continues
// (Graph::resume).
//
// Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_budget.h"
#include "base/fair_memory.h"
#include "decide/graph/graph_run.h"
#include "edge/graph_service.h"
#include "edge/node_service.h"
#include "node/request_id.h"
#include "store/object_store.h"

namespace fairlead {

class GraphRuns final : public GraphService {
 public:
  static constexpr std::size_t kMaxActive = 256;                 // of which a tenant may have as many as are left free
  static constexpr std::size_t kMaxEnded = 1000;                 // kept for those who ask (base/fair_memory.h)
  static constexpr std::size_t kMaxRunResultBytes = 4 << 20;     // of one run
  static constexpr std::size_t kMaxEndedResultBytes = 64 << 20;  // of all that have ended

  // Whether a function that exists is a kernel task.
  using IsKernelTask = std::function<bool(const std::string& function)>;

  // Why an invocation failed, for people; empty: nobody said.
  using FailureText = std::function<std::string(const Outcome&)>;

  // All must outlive it, though `node` need not be complete yet.
  GraphRuns(boost::asio::io_context& io, NodeService& node, ObjectStore& objects, IsKernelTask is_kernel_task,
            FailureText failure_text);
  ~GraphRuns() override;

  Result<GraphCheck> check(const std::string& tenant, Graph graph) override;
  Result<std::string> submit(const std::string& tenant, Graph graph) override;
  void wait(const std::string& tenant, const std::string& run, std::optional<std::size_t> ended, Duration patience,
            Callback<GraphRunStatus> done) override;
  std::vector<GraphRunStatus> list(const std::string& tenant) override;
  Result<GraphRunStatus> cancel(const std::string& tenant, const std::string& run) override;
  GraphCounters counters() const override;

  // Results of runs, and of those that have ended, count in `memory` too, by tenant: one beyond its part is not kept. REQUIRES:
  // before the first run.
  void count_in(std::shared_ptr<ByteBudget> memory) { results_.memory = std::move(memory); }

  // Takes no more, cancels what goes on.
  void drain();

 private:
  using NodeIndex = GraphRun::NodeIndex;
  using Serial = std::uint64_t;                         // of a run; tells it from a later one of the same id
  using RunName = std::pair<std::string, std::string>;  // tenant, id

  struct Run;
  // A graph that may run, with all that was found out about it.
  struct Prepared {
    Graph graph;
    GraphPlan plan;
    std::set<NodeIndex> done;            // their objects are all there
    std::vector<std::string> leftovers;  // objects of nodes that run again
  };

  Result<Prepared> prepare(const std::string& tenant, Graph graph);
  Status look_up_functions(const std::string& tenant, Graph& graph);
  Status look_up_objects(const std::string& tenant, Prepared& prepared) const;
  bool is_there(const ObjectName& name) const;

  Run* find(Serial serial);
  Run* find(const RunName& name);
  void watch_inputs(Run& run);
  void on_input(Serial serial, const std::string& key, const Status& status);
  void on_answer(Serial serial, NodeIndex node, GraphRun::Try tried, Result<Outcome> outcome);
  Status check_written(const Run& run, NodeIndex node) const;
  void keep_result(Run& run, NodeIndex node, std::string payload);

  // Takes the actions of `call(machine, now, actions)` and carries them out; the run may be over and gone afterwards.
  template <typename Call>
  void tell(Run& run, Call call);
  void act(Run& run, const GraphRun::StartNode& action);
  void act(Run& run, const GraphRun::DropNode& action);
  void act(Run& run, const GraphRun::NodeEnded& action);
  void act(Run& run, const GraphRun::RunEnded& action);
  void tell_readers(const ObjectName& name, const Status& status);
  void clear_outputs(const Run& run, NodeIndex node);
  void release_outputs(const Run& run, NodeIndex node);
  void arm_timer(Run& run);

  bool may_keep(Run& run, std::size_t bytes);
  void answer_waiters(Run& run);
  void end(Run& run);
  Status take_place(const std::string& tenant) const;
  void forget(Serial serial);
  GraphRunStatus status_of(const Run& run, bool with_nodes) const;

  boost::asio::io_context& io_;
  NodeService& node_;
  ObjectStore& objects_;
  const IsKernelTask is_kernel_task_;
  const FailureText failure_text_;
  struct {  // before the runs, which have leases of it
    std::shared_ptr<ByteBudget> memory = std::make_shared<ByteBudget>(std::numeric_limits<std::size_t>::max());
    FairMemory of_ended{{.items = kMaxEnded, .bytes = kMaxEndedResultBytes}};
  } results_;
  RequestIds ids_;
  Serial last_serial_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::map<Serial, std::unique_ptr<Run>> active_;
  std::map<RunName, Serial> by_name_;     // of active ones
  std::map<ObjectName, Serial> writing_;  // by nodes of active runs that have not ended
  // Inputs that are there, but whose writer may yet fail: the runs that wait for its end.
  std::map<ObjectName, std::vector<Serial>> unfinished_;
  struct Ended {
    Serial serial = 0;
    GraphRunStatus status;
    ByteBudget::Lease results;
  };
  std::map<RunName, Ended> ended_;
  std::map<Serial, RunName> ended_order_;
  GraphCounters counters_;
  bool draining_ = false;
};

}  // namespace fairlead
