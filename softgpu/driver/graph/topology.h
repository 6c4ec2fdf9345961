// The structure of a graph: nodes and the dependencies between them, nothing of what the nodes do.
//
// A node is a number that is never used again. Nodes and edges keep the order in which they were added; everything that
// lists or sorts them keeps to it, so the same calls give the same lists and the same order of execution.
//
// Example: add A, B, C and the edges A->C, B->C. Roots are A and B, the order is A B C. The edge C->A makes a cycle: the
// structure allows it, as the driver's does, and order() says which node cannot be ordered.
//
// Not thread-safe. Knows nothing of the driver.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace softgpu::graph {

using NodeId = std::uint32_t;

// What an edge says beside "after": ports and type as in CUgraphEdgeData. All zero: complete before.
struct EdgeData {
  std::uint8_t from_port = 0;
  std::uint8_t to_port = 0;
  std::uint8_t type = 0;
  bool operator==(const EdgeData&) const = default;
};

struct Edge {
  NodeId from = 0;
  NodeId to = 0;
  EdgeData data;
  bool operator==(const Edge&) const = default;
};

class Topology {
 public:
  // One end of an edge, seen from the other.
  struct Link {
    NodeId node = 0;
    EdgeData data;
    bool operator==(const Link&) const = default;
  };

  NodeId add_node();
  // Removes the node and its edges. REQUIRES: contains(node).
  void remove_node(NodeId node);
  bool contains(NodeId node) const { return nodes_.contains(node); }
  std::size_t size() const { return nodes_.size(); }

  // Adds all edges or none. False when an end is absent, an edge leads to its own start, or a pair is connected already
  // or named twice.
  bool add_edges(std::span<const Edge> edges);
  // Removes all edges or none; false when one of them is absent (with exactly that data).
  bool remove_edges(std::span<const Edge> edges);

  std::vector<NodeId> nodes() const;
  std::vector<NodeId> roots() const;
  std::vector<Edge> edges() const;
  // REQUIRES: contains(node).
  const std::vector<Link>& dependencies(NodeId node) const { return nodes_.at(node).before; }
  const std::vector<Link>& dependents(NodeId node) const { return nodes_.at(node).after; }

  // Every node after all its dependencies; among those that are ready, the oldest first. Null, and `in_cycle` is set,
  // when there is no such order.
  std::optional<std::vector<NodeId>> order(NodeId* in_cycle = nullptr) const;

  // The nodes from which one of `targets` can be reached, `targets` included.
  std::vector<NodeId> ancestors(std::span<const NodeId> targets) const;

 private:
  struct Node {
    std::vector<Link> before;
    std::vector<Link> after;
  };
  bool connected(NodeId from, NodeId to) const;

  std::map<NodeId, Node> nodes_;  // by number, so in the order of addition
  NodeId next_ = 0;
};

}  // namespace softgpu::graph
