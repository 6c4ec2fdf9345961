#include "decide/graph/graph_run.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {

std::string_view graph_node_state_name(GraphNodeState state) {
  switch (state) {
    case GraphNodeState::kWaiting: return "waiting";
    case GraphNodeState::kRunning: return "running";
    case GraphNodeState::kDone: return "done";
    case GraphNodeState::kFailed: return "failed";
    case GraphNodeState::kSkipped: return "skipped";
  }
  return "unknown";
}

std::string_view graph_run_state_name(GraphRunState state) {
  switch (state) {
    case GraphRunState::kRunning: return "running";
    case GraphRunState::kDone: return "done";
    case GraphRunState::kFailed: return "failed";
    case GraphRunState::kCancelled: return "cancelled";
  }
  return "unknown";
}

GraphRun::GraphRun(const Graph& graph, GraphPlan plan, Instant now)
    : plan_(std::move(plan)),
      concurrency_(graph.concurrency),
      allowed_(graph.deadline),
      deadline_(now + graph.deadline),
      nodes_(graph.nodes.size()) {
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    nodes_[i].name = graph.nodes[i].name;
    nodes_[i].retries = graph.nodes[i].retries;
    nodes_[i].missing = plan_.needs[i].size();
  }
  for (const auto& [key, readers] : plan_.inputs) {
    absent_.insert(key);
    for (const NodeIndex reader : readers) ++nodes_[reader].missing;
  }
}

void GraphRun::begin(Instant now, const std::set<NodeIndex>& done, Actions& out) {
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].missing == 0 && !done.contains(i)) ready_.push_back(i);
  }
  for (const NodeIndex node : done) end(now, node, GraphNodeState::kDone, out);
  start_ready(now, out);
  note_end(out);
}

std::vector<std::string> GraphRun::awaited_inputs() const {
  std::vector<std::string> keys;
  for (const std::string& key : absent_) {
    const std::vector<NodeIndex>& readers = plan_.inputs.at(key);
    const bool is_awaited = std::any_of(readers.begin(), readers.end(), [this](NodeIndex reader) {
      return nodes_[reader].view.state == GraphNodeState::kWaiting;
    });
    if (is_awaited) keys.push_back(key);
  }
  return keys;
}

void GraphRun::input_there(Instant now, const std::string& key, Actions& out) {
  if (state_ != GraphRunState::kRunning || absent_.erase(key) == 0) return;
  for (const NodeIndex reader : plan_.inputs.at(key)) got(reader);
  start_ready(now, out);
}

void GraphRun::input_lost(Instant now, const std::string& key, const std::string& why, Actions& out) {
  if (state_ != GraphRunState::kRunning || !absent_.contains(key)) return;
  for (const NodeIndex reader : plan_.inputs.at(key)) {
    Node& node = nodes_[reader];
    if (node.view.state != GraphNodeState::kWaiting) continue;
    node.error = fmt::format("node {} was not run: its input '{}' failed: {}", node.name, key, why);
    end(now, reader, GraphNodeState::kSkipped, out);
  }
  note_end(out);
}

bool GraphRun::answers(NodeIndex node, Try tried) const {
  return nodes_[node].view.state == GraphNodeState::kRunning && nodes_[node].tried == tried && !nodes_[node].resumes;
}

void GraphRun::succeeded(Instant now, NodeIndex node, Try tried, Actions& out) {
  if (!answers(node, tried)) return;
  end(now, node, GraphNodeState::kDone, out);
  start_ready(now, out);
  note_end(out);
}

void GraphRun::failed(Instant now, NodeIndex index, Try tried, std::string why, Actions& out) {
  if (!answers(index, tried)) return;
  Node& node = nodes_[index];
  if (node.view.attempts <= node.retries) return pause(now, index, node.view.attempts);
  node.error = fmt::format("node {} failed: {}", node.name, why);
  if (node.view.attempts > 1) node.error += fmt::format(" ({} attempts)", node.view.attempts);
  end(now, index, GraphNodeState::kFailed, out);
  start_ready(now, out);
  note_end(out);
}

void GraphRun::throttled(Instant now, NodeIndex index, Try tried, std::string why, Actions& out) {
  if (!answers(index, tried)) return;
  Node& node = nodes_[index];
  --node.view.attempts;  // it did not run
  if (node.throttled < kThrottledTries) return pause(now, index, ++node.throttled);
  node.error = fmt::format("node {} failed: it was throttled {} times: {}", node.name, node.throttled + 1, why);
  end(now, index, GraphNodeState::kFailed, out);
  start_ready(now, out);
  note_end(out);
}

void GraphRun::cancel(Instant now, std::string why, Actions& out) {
  if (state_ == GraphRunState::kRunning) stop(now, GraphRunState::kCancelled, std::move(why), out);
}

void GraphRun::wake(Instant now, Actions& out) {
  if (state_ != GraphRunState::kRunning) return;
  if (now >= deadline_) {
    return stop(now, GraphRunState::kFailed, fmt::format("the run's deadline of {} s is over", to_seconds(allowed_)),
                out);
  }
  while (!pauses_.empty() && pauses_.begin()->first <= now) {
    const NodeIndex node = pauses_.begin()->second;
    stop_pause(nodes_[node], node);
    start(node, out);
  }
}

std::optional<Instant> GraphRun::next_wakeup() const {
  if (state_ != GraphRunState::kRunning) return std::nullopt;
  return pauses_.empty() ? deadline_ : std::min(deadline_, pauses_.begin()->first);
}

std::string GraphRun::error_of(NodeIndex index) const {
  const Node& node = nodes_[index];
  if (!node.because) return node.error;
  return fmt::format("node {} was not run: {}", node.name, nodes_[*node.because].error);
}

void GraphRun::got(NodeIndex index) {
  Node& node = nodes_[index];
  FL_CHECK(node.missing > 0, "node {} misses nothing", node.name);
  if (--node.missing == 0 && node.view.state == GraphNodeState::kWaiting) ready_.push_back(index);
}

void GraphRun::start_ready(Instant now, Actions& out) {
  while (running_ < concurrency_ && !ready_.empty()) {
    const NodeIndex node = ready_.front();
    ready_.pop_front();
    // Skipped meanwhile, for an input that was lost.
    if (nodes_[node].view.state != GraphNodeState::kWaiting) continue;
    nodes_[node].view.state = GraphNodeState::kRunning;
    nodes_[node].view.started = now;
    ++running_;
    start(node, out);
  }
}

void GraphRun::start(NodeIndex index, Actions& out) {
  Node& node = nodes_[index];
  node.tried = ++last_try_;
  ++node.view.attempts;
  out.push_back(StartNode{index, node.tried, node.view.attempts});
}

void GraphRun::pause(Instant now, NodeIndex node, unsigned times) {
  const Duration pause = std::min(kLongestPause, kFirstPause * (1 << std::min(times - 1, 16U)));
  nodes_[node].resumes = now + pause;
  pauses_.emplace(now + pause, node);
}

void GraphRun::stop_pause(Node& node, NodeIndex index) {
  if (!node.resumes) return;
  pauses_.erase({*node.resumes, index});
  node.resumes.reset();
}

void GraphRun::end(Instant now, NodeIndex index, GraphNodeState state, Actions& out) {
  Node& node = nodes_[index];
  FL_CHECK(!node.view.ended, "node {} ends twice", node.name);
  if (node.view.state == GraphNodeState::kRunning) --running_;
  node.view.state = state;
  node.view.ended = now;
  ++ended_;
  out.push_back(NodeEnded{index});
  if (state == GraphNodeState::kDone) {
    for (const NodeIndex next : plan_.feeds[index]) got(next);
    return;
  }
  all_done_ = false;
  skip_dependants(now, index, out);
}

// All that need it, however far away; a list instead of recursion, since a chain may have thousands of nodes. Nodes that an
// earlier run has done stay done.
void GraphRun::skip_dependants(Instant now, NodeIndex index, Actions& out) {
  std::deque<NodeIndex> from{index};
  for (; !from.empty(); from.pop_front()) {
    for (const NodeIndex next : plan_.feeds[from.front()]) {
      Node& node = nodes_[next];
      if (node.view.state != GraphNodeState::kWaiting) continue;
      node.because = index;
      node.view.state = GraphNodeState::kSkipped;
      node.view.ended = now;
      ++ended_;
      out.push_back(NodeEnded{next});
      from.push_back(next);
    }
  }
}

void GraphRun::stop(Instant now, GraphRunState state, std::string why, Actions& out) {
  error_ = std::move(why);
  for (NodeIndex i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.view.ended) continue;
    const bool was_running = node.view.state == GraphNodeState::kRunning;
    if (was_running) {
      out.push_back(DropNode{i});
      --running_;
      stop_pause(node, i);
    }
    node.error = fmt::format("node {} was {}: {}", node.name, was_running ? "given up" : "not run", error_);
    node.view.state = was_running ? GraphNodeState::kFailed : GraphNodeState::kSkipped;
    node.view.ended = now;
    ++ended_;
    out.push_back(NodeEnded{i});
  }
  ready_.clear();
  state_ = state;
  out.push_back(RunEnded{});
}

void GraphRun::note_end(Actions& out) {
  if (ended_ < nodes_.size() || state_ != GraphRunState::kRunning) return;
  state_ = all_done_ ? GraphRunState::kDone : GraphRunState::kFailed;
  out.push_back(RunEnded{});
}

}  // namespace fairlead
