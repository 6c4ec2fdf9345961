// Graphs: structure and its queries.
#include <algorithm>

#include "softgpu/driver/graph/graph.h"

using softgpu::graph::check_graph;
using softgpu::graph::check_node;
using softgpu::graph::Edge;
using softgpu::graph::EdgeData;
using softgpu::graph::NodeId;
using softgpu::graph::Nodes;
using softgpu::graph::Topology;
using softgpu::graph::write_edge;

namespace {

// The driver's way to return lists: without an array only their length; an array that is too long is filled up with
// nulls; `count` becomes the number written.
void write_nodes(CUgraph graph, const std::vector<NodeId>& ids, CUgraphNode* nodes, size_t* count) {
  if (nodes == nullptr) {
    *count = ids.size();
    return;
  }
  const std::size_t written = std::min(*count, ids.size());
  for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < written ? graph->node(ids[i]) : nullptr;
  *count = written;
}

bool loses_data(const EdgeData& data, const CUgraphEdgeData* array) {
  return array == nullptr && data != EdgeData{};
}

CUresult write_links(CUgraph graph, const std::vector<Topology::Link>& links, CUgraphNode* nodes, CUgraphEdgeData* data,
                     size_t* count) {
  if (count == nullptr || (data != nullptr && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<NodeId> ids;
  for (const auto& link : links) {
    if (nodes != nullptr && loses_data(link.data, data)) return CUDA_ERROR_LOSSY_QUERY;
    ids.push_back(link.node);
  }
  write_nodes(graph, ids, nodes, count);
  for (std::size_t i = 0; data != nullptr && i < *count; ++i) data[i] = write_edge(links[i].data);
  return CUDA_SUCCESS;
}

CUresult read_edges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* data,
                    size_t count, std::vector<Edge>& edges) {
  std::vector<Topology::Link> first;
  std::vector<Topology::Link> second;
  SOFTGPU_TRY(check_graph(graph));
  SOFTGPU_TRY(softgpu::graph::read_links(graph, from, data, count, first));
  SOFTGPU_TRY(softgpu::graph::read_links(graph, to, nullptr, count, second));
  for (std::size_t i = 0; i < count; ++i) edges.push_back({first[i].node, second[i].node, first[i].data});
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *graph = softgpu::graph::make_graph();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  SOFTGPU_TRY(check_graph(graph));
  if (graph->child || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  softgpu::graph::destroy_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(graph));
  if (graph->owns_memory()) return CUDA_ERROR_NOT_SUPPORTED;
  *clone = softgpu::graph::clone_graph(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_node(original));
  SOFTGPU_TRY(check_graph(clone));
  if (clone->original != original->graph->key) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [id, candidate] : clone->nodes) {
    if (candidate->original != original->key) continue;
    *node = candidate;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_node(node));
  *type = softgpu::graph::type_of(node->payload);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(graph));
  write_nodes(graph, graph->topology.nodes(), nodes, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(graph));
  write_nodes(graph, graph->topology.roots(), nodes, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
  if (count == nullptr || (from == nullptr) != (to == nullptr) || (data != nullptr && from == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(check_graph(graph));
  std::vector<NodeId> starts;
  std::vector<NodeId> ends;
  const std::vector<Edge> edges = graph->topology.edges();
  for (const Edge& edge : edges) {
    if (from != nullptr && loses_data(edge.data, data)) return CUDA_ERROR_LOSSY_QUERY;
    starts.push_back(edge.from);
    ends.push_back(edge.to);
  }
  size_t written = *count;
  write_nodes(graph, starts, from, &written);
  write_nodes(graph, ends, to, count);
  for (std::size_t i = 0; data != nullptr && i < *count; ++i) data[i] = write_edge(edges[i].data);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  SOFTGPU_TRY(check_node(node));
  return write_links(node->graph, node->graph->topology.dependencies(node->id), nodes, data, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  SOFTGPU_TRY(check_node(node));
  return write_links(node->graph, node->graph->topology.dependents(node->id), nodes, data, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  std::vector<Edge> edges;
  SOFTGPU_TRY(read_edges(graph, from, to, data, count, edges));
  return graph->topology.add_edges(edges) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* data, size_t count) {
  std::vector<Edge> edges;
  SOFTGPU_TRY(read_edges(graph, from, to, data, count, edges));
  if (graph->owns_memory()) return CUDA_ERROR_INVALID_VALUE;
  return graph->topology.remove_edges(edges) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphDestroyNode(CUgraphNode node) {
  SOFTGPU_TRY(check_node(node));
  if (node->graph->owns_memory() || node->graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  softgpu::graph::destroy_node(node);
  return CUDA_SUCCESS;
}
