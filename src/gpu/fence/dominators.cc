// The worked example of two ways that meet:
//
//   a -> b -> c -> e        e is reached through c or d. Its semidominator is b, the earliest node from which a way leads to e
//        b -> d -> e        over later nodes only; here that is its immediate dominator, too.
//
// Where a way enters from the side the two differ, and then the dominator is that of the node on the path above whose
// semidominator is earliest. Bit vectors would be simpler and take blocks * blocks / 8 bytes: 200 MB for 40,000 blocks, which
// a module of 300 KB may have.
#include "gpu/fence/dominators.h"

#include <algorithm>

namespace fairlead::fence {
namespace {

// Nodes go by their number in a depth-first search here, so that "earlier" is "less".
class Search {
 public:
  explicit Search(const Edges& next) : next_(next), number_(next.size(), kUnreached) {}

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> result(next_.size(), kUnreached);
    if (next_.empty()) return result;
    number_nodes();
    find_predecessors();
    find_semidominators();
    for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
      if (dominator_[i] != semidominator_[i]) dominator_[i] = dominator_[dominator_[i]];
    }
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) result[nodes_[i]] = nodes_[dominator_[i]];
    return result;
  }

 private:
  void visit(std::uint32_t node, std::uint32_t parent) {
    number_[node] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
    parents_.push_back(parent);
  }

  // With a stack of its own: a function is as long as a stranger likes.
  void number_nodes() {
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // a node, and which of its edges is next
    visit(0, 0);
    path.emplace_back(0, 0);
    while (!path.empty()) {
      auto& [node, edge] = path.back();
      if (edge == next_[node].size()) {
        path.pop_back();
        continue;
      }
      const std::uint32_t to = next_[node][edge++];
      if (number_[to] != kUnreached) continue;
      visit(to, number_[node]);
      path.emplace_back(to, 0);
    }
  }

  void find_predecessors() {
    previous_.resize(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      for (const std::uint32_t to : next_[nodes_[i]]) previous_[number_[to]].push_back(i);
    }
  }

  // A node's semidominator is the earliest node from which a way leads to it over later nodes only.
  void find_semidominators() {
    const std::size_t count = nodes_.size();
    semidominator_.resize(count);
    best_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) semidominator_[i] = best_[i] = i;
    ancestor_.assign(count, kUnreached);
    dominator_.assign(count, 0);
    Edges waiting(count);  // by semidominator
    for (std::uint32_t i = static_cast<std::uint32_t>(count); i-- > 1;) {
      for (const std::uint32_t from : previous_[i]) {
        semidominator_[i] = std::min(semidominator_[i], semidominator_[best_above(from)]);
      }
      waiting[semidominator_[i]].push_back(i);
      // The node joins the forest, and those that waited for its parent can be decided: their paths are complete.
      const std::uint32_t parent = parents_[i];
      ancestor_[i] = parent;
      for (const std::uint32_t node : waiting[parent]) {
        const std::uint32_t best = best_above(node);
        dominator_[node] = semidominator_[best] < semidominator_[node] ? best : parent;
      }
      waiting[parent].clear();
    }
  }

  // Of the nodes between the root of the forest of ancestors and `node`, the one whose semidominator is earliest.
  std::uint32_t best_above(std::uint32_t node) {
    if (ancestor_[node] == kUnreached) return node;
    // Path compression: each node on the way remembers the best of all above it, and points past them.
    path_.clear();
    for (std::uint32_t at = node; ancestor_[ancestor_[at]] != kUnreached; at = ancestor_[at]) path_.push_back(at);
    for (; !path_.empty(); path_.pop_back()) {
      const std::uint32_t at = path_.back(), above = ancestor_[at];
      if (semidominator_[best_[above]] < semidominator_[best_[at]]) best_[at] = best_[above];
      ancestor_[at] = ancestor_[above];
    }
    return best_[node];
  }

  const Edges& next_;
  std::vector<std::uint32_t> number_;           // by node
  std::vector<std::uint32_t> nodes_, parents_;  // by number, as all that follows
  Edges previous_;
  std::vector<std::uint32_t> semidominator_, best_, ancestor_, dominator_;
  std::vector<std::uint32_t> path_;
};

}  // namespace

std::vector<std::uint32_t> immediate_dominators(const Edges& next) {
  return Search(next).run();
}

}  // namespace fairlead::fence
