#include "gpu/fence/call_graph.h"

#include <algorithm>

namespace fairlead::fence {

std::size_t CallGraph::add(std::uint64_t frame_bytes) {
  nodes_.push_back({.bytes = frame_bytes, .callees = {}});
  return nodes_.size() - 1;
}

void CallGraph::add_call(std::size_t caller, std::size_t callee) {
  nodes_[caller].callees.push_back(callee);
}

// Tarjan's search for strongly connected components (SIAM J. Comput. 1, 1972), with a stack of its own: a chain of calls
// is as long as a stranger likes. A component is complete after all that its functions call, so its depth is known then.
class CallGraph::Search {
 public:
  explicit Search(const std::vector<Node>& nodes) : nodes_(nodes), states_(nodes.size()) {}

  Depth run() {
    for (std::size_t node = 0; node < nodes_.size() && !result_.unbounded; ++node) {
      if (states_[node].index == 0) visit_from(node);
    }
    return result_;
  }

 private:
  // Of a node during the search. A node is open from its first visit until its component is complete.
  struct State {
    std::size_t index = 0;  // in the order of visits, from 1; 0: not visited
    std::size_t low = 0;    // the least index that is reached from here and still open
    bool is_open = false;
    bool calls_itself = false;
    std::uint64_t below = 0;  // the deepest chain that is called from here, of complete components
  };
  struct Step {
    std::size_t node = 0;
    std::size_t next = 0;  // of its callees
  };

  void visit_from(std::size_t start) {
    open(start);
    while (!path_.empty() && !result_.unbounded) {
      Step& step = path_.back();
      if (step.next < nodes_[step.node].callees.size()) {
        call(step.node, nodes_[step.node].callees[step.next++]);
      } else {
        leave(step.node);
      }
    }
  }

  void open(std::size_t node) {
    states_[node].index = states_[node].low = ++visits_;
    states_[node].is_open = true;
    open_.push_back(node);
    path_.push_back({.node = node});
  }

  // A callee that is open calls back to here, in a circle; one that is complete has its depth.
  void call(std::size_t caller, std::size_t callee) {
    State& from = states_[caller];
    const State& to = states_[callee];
    if (to.index == 0) return open(callee);
    from.calls_itself |= caller == callee;
    if (to.is_open) {
      from.low = std::min(from.low, to.index);
    } else {
      from.below = std::max(from.below, to.below);
    }
  }

  void leave(std::size_t node) {
    path_.pop_back();
    const State state = states_[node];
    if (state.low == state.index) close_component(node);
    if (path_.empty()) return;
    State& caller = states_[path_.back().node];
    caller.low = std::min(caller.low, state.low);
    if (!states_[node].is_open) caller.below = std::max(caller.below, states_[node].below);
  }

  // What was opened since `first` calls each other, in a circle, or is one function.
  void close_component(std::size_t first) {
    const auto begin = std::find(open_.rbegin(), open_.rend(), first).base() - 1;
    const bool is_circle = open_.end() - begin > 1 || states_[first].calls_itself;
    std::uint64_t below = 0, bytes = 0;
    for (auto member = begin; member != open_.end(); ++member) {
      below = std::max(below, states_[*member].below);
      bytes = std::max(bytes, nodes_[*member].bytes);
      if (is_circle && nodes_[*member].bytes > 0) result_.unbounded = *member;
    }
    for (auto member = begin; member != open_.end(); ++member) {
      states_[*member].is_open = false;
      states_[*member].below = below + bytes;
    }
    open_.erase(begin, open_.end());
    result_.bytes = std::max(result_.bytes, below + bytes);
  }

  const std::vector<Node>& nodes_;
  std::vector<State> states_;
  std::vector<std::size_t> open_;  // visited, and their component is not complete
  std::vector<Step> path_;
  std::size_t visits_ = 0;
  Depth result_;
};

CallGraph::Depth CallGraph::depth() const {
  return Search(nodes_).run();
}

}  // namespace fairlead::fence
