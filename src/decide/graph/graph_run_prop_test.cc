// Random graphs under random orders of answers, failures, throttling, inputs and time: each node starts only when all it needs
// is done, ends exactly once, and every run comes to its end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "decide/graph/graph_run.h"

namespace fairlead {
namespace {

using State = GraphNodeState;
using NodeIndex = GraphRun::NodeIndex;

template <typename T>
T up_to(T most) {
  return *rc::gen::inRange<T>(0, most);
}

Graph random_graph() {
  Graph graph;
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 25);
  for (NodeIndex i = 0; i < count; ++i) {
    GraphNode node;
    node.name = fmt::format("n{}", i);
    node.writes = {fmt::format("k{}", i)};
    for (int left = up_to(4); left > 0 && i > 0; --left) node.reads.push_back(fmt::format("k{}", up_to(i)));
    if (up_to(5) == 0) node.reads.push_back(fmt::format("outside{}", up_to(3)));
    if (up_to(5) == 0 && i > 0) node.after.push_back(fmt::format("n{}", up_to(i)));
    node.retries = up_to(3U);
    graph.nodes.push_back(node);
  }
  graph.concurrency = *rc::gen::inRange(1U, 6U);
  graph.deadline = std::chrono::hours(24);  // longer than all pauses
  return graph;
}

// The world around a run, and what must hold of it after every step.
class World {
 public:
  World(const Graph& graph, const std::set<NodeIndex>& done)
      : graph_(graph), plan_(plan_graph(graph).value()), run_(graph, plan_, now_) {
    tell([&](auto& out) { run_.begin(now_, done, out); });
  }

  bool over() const { return run_ended_; }

  void step() {
    if (!tries_.empty() && up_to(4) != 0) return answer_one();
    switch (up_to(12)) {
      case 0: return lose_one();
      case 1: return tell([&](auto& out) { run_.input_there(now_, fmt::format("outside{}", up_to(3)), out); });
      case 2:
        if (up_to(6) == 0) tell([&](auto& out) { run_.cancel(now_, "cancelled", out); });
        return;
      default:
        if (pauses() || up_to(20) == 0) advance();
    }
  }

  // Without whims: every input comes, every node that runs is done. No run may wait for its deadline then.
  void finish() {
    for (int key = 0; key < 3; ++key) {
      tell([&](auto& out) { run_.input_there(now_, fmt::format("outside{}", key), out); });
    }
    for (int left = 1000; !over() && left > 0; --left) {
      if (tries_.empty()) {
        RC_ASSERT(pauses());
        advance();
      } else {
        const auto [node, tried] = *tries_.begin();
        tries_.erase(node);
        tell([&, node = node, tried = tried](auto& out) { run_.succeeded(now_, node, tried, out); });
      }
    }
    RC_ASSERT(over());
  }

  void check_end() {
    std::map<State, std::size_t> counts;
    for (NodeIndex i = 0; i < run_.size(); ++i) {
      ++counts[run_.view(i).state];
      RC_ASSERT(ends_[i] == 1);
      RC_ASSERT(run_.error_of(i).empty() == (run_.view(i).state == State::kDone));
    }
    RC_ASSERT(counts[State::kDone] + counts[State::kFailed] + counts[State::kSkipped] == run_.size());
    RC_ASSERT((run_.state() == GraphRunState::kDone) == (counts[State::kDone] == run_.size()));
    RC_ASSERT(!run_.next_wakeup());
  }

 private:
  void answer_one() {
    auto it = tries_.begin();
    std::advance(it, up_to(tries_.size()));
    const auto [node, tried] = *it;
    tries_.erase(it);
    const auto kind = up_to(8);
    tell([&, node = node, tried = tried](auto& out) {
      if (kind == 0) return run_.failed(now_, node, tried, "boom", out);
      if (kind == 1) return run_.throttled(now_, node, tried, "full", out);
      run_.succeeded(now_, node, tried, out);
      run_.failed(now_, node, tried, "too late", out);
    });
  }

  void lose_one() {
    if (up_to(4) == 0) tell([&](auto& out) { run_.input_lost(now_, fmt::format("outside{}", up_to(3)), "gone", out); });
  }

  bool pauses() const { return !over() && *run_.next_wakeup() < Instant{} + graph_.deadline; }

  void advance() {
    if (const auto wakeup = run_.next_wakeup()) now_ = std::max(now_, *wakeup);
    tell([&](auto& out) { run_.wake(now_, out); });
  }

  template <typename Call>
  void tell(Call call) {
    GraphRun::Actions actions;
    call(actions);
    for (const GraphRun::Action& action : actions) {
      RC_ASSERT(!run_ended_);
      std::visit([this](const auto& a) { note(a); }, action);
    }
    std::size_t running = 0;
    for (NodeIndex i = 0; i < run_.size(); ++i) running += run_.view(i).state == State::kRunning ? 1 : 0;
    RC_ASSERT(running <= graph_.concurrency);
  }
  void note(const GraphRun::StartNode& start) {
    for (const NodeIndex needed : plan_.needs[start.node]) RC_ASSERT(run_.view(needed).state == State::kDone);
    RC_ASSERT(ends_[start.node] == 0);
    RC_ASSERT(start.attempt <= graph_.nodes[start.node].retries + 1);
    tries_[start.node] = start.tried;
  }
  void note(const GraphRun::DropNode& drop) { tries_.erase(drop.node); }
  void note(const GraphRun::NodeEnded& end) { ++ends_[end.node]; }
  void note(const GraphRun::RunEnded&) { run_ended_ = true; }

  const Graph graph_;
  const GraphPlan plan_;
  Instant now_{};
  GraphRun run_;
  std::map<NodeIndex, GraphRun::Try> tries_;  // of invocations that are not answered yet
  std::map<NodeIndex, int> ends_;
  bool run_ended_ = false;
};

RC_GTEST_PROP(GraphRunProperty, EveryNodeEndsOnceAndStartsWhenWhatItNeedsIsDone, ()) {
  const Graph graph = random_graph();
  std::set<NodeIndex> done;
  for (NodeIndex i = 0; i < graph.nodes.size(); ++i) {
    if (up_to(8) == 0) done.insert(i);
  }
  World world(graph, done);
  for (int left = up_to(80); left > 0 && !world.over(); --left) world.step();
  world.finish();
  world.check_end();
}

}  // namespace
}  // namespace fairlead
