// One run of a graph: which node may start, what becomes of those that need one that failed, when the run is over. Decides
// only; invoking functions and looking for objects is the driver's.
//
//             all it needs is done, a turn is free         answered
//   waiting ───────────────────────────────────> running ───────────> done
//      │ something it needs failed                  │ failed, retries used up
//      └──────────> skipped                         └───────────────> failed
//
// Example, two at a time: a and b start; a fails, so c, which needs it, is skipped with a's error; d, which needs b, starts
// when b is done. Nodes start in the order in which they became ready.
//
// A function that is throttled is tried again kThrottledTries times, a failed one as often as its node's `retries`, each time
// after twice the pause. A node that pauses keeps its turn: a full queue is no reason to press others into it.
//
// Time: every entry point takes `now`. Determinism: ties break by the node's index. Threads: not thread-safe.
// Invariant: each node ends exactly once; after RunEnded nothing more is said.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "decide/graph/graph_plan.h"

namespace fairlead {

enum class GraphNodeState { kWaiting, kRunning, kDone, kFailed, kSkipped };
enum class GraphRunState { kRunning, kDone, kFailed, kCancelled };
std::string_view graph_node_state_name(GraphNodeState state);  // "waiting", ...
std::string_view graph_run_state_name(GraphRunState state);    // "running", "done", "failed", "cancelled"

inline constexpr unsigned kThrottledTries = 10;
inline constexpr Duration kFirstPause = std::chrono::milliseconds(100);
inline constexpr Duration kLongestPause = std::chrono::seconds(5);

class GraphRun {
 public:
  using NodeIndex = std::uint32_t;
  using Try = std::uint64_t;  // tells an answer from one to an earlier try

  struct StartNode {
    NodeIndex node = 0;
    Try tried = 0;
    unsigned attempt = 1;  // above 1: an earlier one failed
    bool operator==(const StartNode&) const = default;
  };
  struct DropNode {  // nobody waits for its answer any more
    NodeIndex node = 0;
    bool operator==(const DropNode&) const = default;
  };
  struct NodeEnded {
    NodeIndex node = 0;
    bool operator==(const NodeEnded&) const = default;
  };
  struct RunEnded {
    bool operator==(const RunEnded&) const = default;
  };
  using Action = std::variant<StartNode, DropNode, NodeEnded, RunEnded>;
  using Actions = std::vector<Action>;

  // REQUIRES: `plan` is plan_graph(graph).
  GraphRun(const Graph& graph, GraphPlan plan, Instant now);

  // Once, first. `done`: nodes that an earlier run has done.
  void begin(Instant now, const std::set<NodeIndex>& done, Actions& out);
  // Outside inputs that somebody still waits for.
  std::vector<std::string> awaited_inputs() const;

  void input_there(Instant now, const std::string& key, Actions& out);
  void input_lost(Instant now, const std::string& key, const std::string& why, Actions& out);
  // Answers to StartNode; of an earlier try they are ignored.
  void succeeded(Instant now, NodeIndex node, Try tried, Actions& out);
  void failed(Instant now, NodeIndex node, Try tried, std::string why, Actions& out);
  void throttled(Instant now, NodeIndex node, Try tried, std::string why, Actions& out);
  void cancel(Instant now, std::string why, Actions& out);
  void wake(Instant now, Actions& out);

  std::optional<Instant> next_wakeup() const;  // empty: it is over
  GraphRunState state() const { return state_; }
  const std::string& error() const { return error_; }  // why the run as a whole was stopped
  std::size_t ended() const { return ended_; }

  struct NodeView {
    GraphNodeState state = GraphNodeState::kWaiting;
    unsigned attempts = 0;
    std::optional<Instant> started, ended;
  };
  std::size_t size() const { return nodes_.size(); }
  const NodeView& view(NodeIndex node) const { return nodes_[node].view; }
  std::string error_of(NodeIndex node) const;  // "" unless it failed or was skipped

 private:
  struct Node {
    std::string name;
    unsigned retries = 0;
    NodeView view;
    std::size_t missing = 0;  // nodes and outside inputs
    unsigned throttled = 0;
    Try tried = 0;
    std::optional<Instant> resumes;    // in pauses_
    std::string error;                 // of its own; or
    std::optional<NodeIndex> because;  // the node that failed first
  };

  bool answers(NodeIndex node, Try tried) const;
  void got(NodeIndex node);  // one of what it misses
  void start(NodeIndex node, Actions& out);
  void start_ready(Instant now, Actions& out);
  void pause(Instant now, NodeIndex node, unsigned times);
  void stop_pause(Node& node, NodeIndex index);
  void end(Instant now, NodeIndex node, GraphNodeState state, Actions& out);
  void skip_dependants(Instant now, NodeIndex node, Actions& out);
  void stop(Instant now, GraphRunState state, std::string why, Actions& out);
  void note_end(Actions& out);

  const GraphPlan plan_;
  const std::size_t concurrency_;
  const Duration allowed_;
  const Instant deadline_;
  std::vector<Node> nodes_;
  std::set<std::string> absent_;  // outside inputs
  std::deque<NodeIndex> ready_;
  std::set<std::pair<Instant, NodeIndex>> pauses_;
  std::size_t running_ = 0, ended_ = 0;
  bool all_done_ = true;
  Try last_try_ = 0;
  GraphRunState state_ = GraphRunState::kRunning;
  std::string error_;
};

}  // namespace fairlead
