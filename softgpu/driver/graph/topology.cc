#include "softgpu/driver/graph/topology.h"

#include <algorithm>
#include <queue>
#include <set>

namespace softgpu::graph {
namespace {

using Links = std::vector<Topology::Link>;

auto find_link(const Links& links, NodeId node) {
  return std::find_if(links.begin(), links.end(), [&](const auto& link) { return link.node == node; });
}

void erase_link(Links& links, NodeId node) {
  links.erase(find_link(links, node));
}

}  // namespace

NodeId Topology::add_node() {
  nodes_.emplace(next_, Node{});
  return next_++;
}

void Topology::remove_node(NodeId node) {
  const Node& gone = nodes_.at(node);
  for (const Link& link : gone.before) erase_link(nodes_.at(link.node).after, node);
  for (const Link& link : gone.after) erase_link(nodes_.at(link.node).before, node);
  nodes_.erase(node);
}

// Looks through the shorter of the two lists: a node may have thousands of dependents.
bool Topology::connected(NodeId from, NodeId to) const {
  const Links& after = nodes_.at(from).after;
  const Links& before = nodes_.at(to).before;
  if (after.size() < before.size()) return find_link(after, to) != after.end();
  return find_link(before, from) != before.end();
}

bool Topology::add_edges(std::span<const Edge> edges) {
  std::set<std::pair<NodeId, NodeId>> named;
  for (const Edge& edge : edges) {
    if (!contains(edge.from) || !contains(edge.to) || edge.from == edge.to) return false;
    if (connected(edge.from, edge.to) || !named.emplace(edge.from, edge.to).second) return false;
  }
  for (const Edge& edge : edges) {
    nodes_.at(edge.from).after.push_back({edge.to, edge.data});
    nodes_.at(edge.to).before.push_back({edge.from, edge.data});
  }
  return true;
}

bool Topology::remove_edges(std::span<const Edge> edges) {
  std::set<std::pair<NodeId, NodeId>> named;
  for (const Edge& edge : edges) {
    if (!contains(edge.from) || !contains(edge.to) || !named.emplace(edge.from, edge.to).second) return false;
    const Links& before = nodes_.at(edge.to).before;
    const auto found = find_link(before, edge.from);
    if (found == before.end() || found->data != edge.data) return false;
  }
  for (const Edge& edge : edges) {
    erase_link(nodes_.at(edge.from).after, edge.to);
    erase_link(nodes_.at(edge.to).before, edge.from);
  }
  return true;
}

std::vector<NodeId> Topology::nodes() const {
  std::vector<NodeId> all;
  all.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) all.push_back(id);
  return all;
}

std::vector<NodeId> Topology::roots() const {
  std::vector<NodeId> found;
  for (const auto& [id, node] : nodes_) {
    if (node.before.empty()) found.push_back(id);
  }
  return found;
}

std::vector<Edge> Topology::edges() const {
  std::vector<Edge> all;
  for (const auto& [id, node] : nodes_) {
    for (const Link& link : node.after) all.push_back({id, link.node, link.data});
  }
  return all;
}

std::optional<std::vector<NodeId>> Topology::order(NodeId* in_cycle) const {
  std::map<NodeId, std::size_t> missing;  // dependencies that are not in the order yet
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (const auto& [id, node] : nodes_) {
    if (node.before.empty()) {
      ready.push(id);
    } else {
      missing[id] = node.before.size();
    }
  }
  std::vector<NodeId> ordered;
  ordered.reserve(nodes_.size());
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    ordered.push_back(id);
    for (const Link& link : nodes_.at(id).after) {
      const auto waiting = missing.find(link.node);
      if (--waiting->second != 0) continue;
      ready.push(link.node);
      missing.erase(waiting);
    }
  }
  if (missing.empty()) return ordered;
  if (in_cycle != nullptr) *in_cycle = missing.begin()->first;
  return std::nullopt;
}

std::vector<NodeId> Topology::ancestors(std::span<const NodeId> targets) const {
  std::set<NodeId> seen(targets.begin(), targets.end());
  std::vector<NodeId> open(targets.begin(), targets.end());
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (const Link& link : nodes_.at(id).before) {
      if (seen.insert(link.node).second) open.push_back(link.node);
    }
  }
  return {seen.begin(), seen.end()};
}

}  // namespace softgpu::graph
