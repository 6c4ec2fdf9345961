#include "softgpu/driver/graph/flatten.h"

namespace softgpu::graph {
namespace {

class Flattener {
 public:
  Flattener(std::vector<Step>& steps, CUgraphNode& in_cycle) : steps_(steps), in_cycle_(in_cycle) {}

  // Appends the graph's steps, its roots after `entry`; `leaves` are those that nothing in it waits for.
  bool append(CUgraph graph, const std::vector<std::size_t>& entry, std::vector<std::size_t>& leaves) {
    NodeId culprit = 0;
    const auto order = graph->topology.order(&culprit);
    if (!order) {
      in_cycle_ = graph->node(culprit);
      return false;
    }
    std::map<NodeId, std::size_t> end_of;
    for (const NodeId id : *order) {
      std::vector<std::size_t> after;
      for (const auto& link : graph->topology.dependencies(id)) after.push_back(end_of.at(link.node));
      if (after.empty()) after = entry;
      if (!append_node(graph->node(id), std::move(after))) return false;
      end_of[id] = steps_.size() - 1;
      if (graph->topology.dependents(id).empty()) leaves.push_back(end_of[id]);
    }
    return true;
  }

 private:
  bool append_node(CUgraphNode node, std::vector<std::size_t> after) {
    const auto* child = std::get_if<ChildGraph>(&node->payload);
    const CUgraphNodeType type = type_of(node->payload);
    steps_.push_back({node, node->key, type, child != nullptr ? Payload() : node->payload, std::move(after), {}, true});
    if (child == nullptr) return true;
    const std::size_t entry = steps_.size() - 1;
    std::vector<std::size_t> leaves;
    if (!append(child->graph, {entry}, leaves)) return false;
    if (leaves.empty()) leaves.push_back(entry);
    steps_.push_back({node, 0, type, Payload(), std::move(leaves), {}, true});
    return true;
  }

  std::vector<Step>& steps_;
  CUgraphNode& in_cycle_;
};

}  // namespace

bool flatten(CUgraph graph, std::vector<Step>& steps, CUgraphNode& in_cycle) {
  std::vector<std::size_t> leaves;
  return Flattener(steps, in_cycle).append(graph, {}, leaves);
}

CUresult prepare_steps(std::vector<Step>& steps, CUgraphNode& failed) {
  for (Step& step : steps) {
    failed = step.node;
    SOFTGPU_TRY(prepare(step.payload, step.run));
  }
  failed = nullptr;
  return CUDA_SUCCESS;
}

CUgraph graph_of(const std::vector<Step>& steps) {
  CUgraph graph = make_graph();
  std::vector<NodeId> ids;
  for (const Step& step : steps) {
    std::vector<Topology::Link> links;
    for (const std::size_t before : step.after) links.push_back({ids[before], {}});
    CUgraphNode node = nullptr;
    add_node(graph, links, step.enabled ? step.payload : Payload(), node);
    ids.push_back(node->id);
  }
  return graph;
}

}  // namespace softgpu::graph
