#include "softgpu/driver/graph/graph.h"

#include "softgpu/driver/process.h"

namespace softgpu::graph {
namespace {

std::atomic<std::uint64_t> g_next_key{1};

CUgraphNode make_node(CUgraph graph, NodeId id, Payload payload) {
  CUgraphNode node = Nodes::take();
  node->graph = graph;
  node->id = id;
  node->key = g_next_key.fetch_add(1);
  node->original = 0;
  node->payload = std::move(payload);
  node->parameter_pointers.clear();
  graph->nodes[id] = node;
  return node;
}

void release_node(CUgraphNode node) {
  if (const auto* child = std::get_if<ChildGraph>(&node->payload)) destroy_graph(child->graph);
  node->payload = Empty{};
  node->graph = nullptr;
  Nodes::give_back(node);
}

bool uses_memory(const Payload& payload) {
  if (const auto* child = std::get_if<ChildGraph>(&payload)) return child->graph->owns_memory();
  return std::holds_alternative<Allocate>(payload) || std::holds_alternative<Free>(payload);
}

Payload copy_of(const Payload& payload) {
  const auto* child = std::get_if<ChildGraph>(&payload);
  if (child == nullptr) return payload;
  CUgraph copy = clone_graph(child->graph);
  copy->child = true;
  return ChildGraph{copy};
}

}  // namespace

CUresult check_graph(CUgraph graph) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Graphs::valid(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_node(CUgraphNode node) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Nodes::valid(node) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUgraph make_graph() {
  CUgraph graph = Graphs::take();
  graph->key = g_next_key.fetch_add(1);
  graph->original = 0;
  graph->child = false;
  graph->capturing = false;
  graph->topology = {};
  graph->nodes.clear();
  graph->executables = std::make_shared<std::atomic<int>>(0);
  return graph;
}

void destroy_graph(CUgraph graph) {
  for (const auto& [id, node] : graph->nodes) release_node(node);
  graph->nodes.clear();
  graph->topology = {};
  UserReferences references;
  references.swap(graph->references);
  Graphs::give_back(graph);  // before the destructors of user objects run, which may look at nothing of it
}

void destroy_node(CUgraphNode node) {
  CUgraph graph = node->graph;
  graph->topology.remove_node(node->id);
  graph->nodes.erase(node->id);
  release_node(node);
}

CUgraph clone_graph(CUgraph graph) {
  CUgraph clone = make_graph();
  clone->original = graph->key;
  std::map<NodeId, NodeId> to_clone;
  for (const auto& [id, node] : graph->nodes) {
    const NodeId copy = clone->topology.add_node();
    to_clone[id] = copy;
    make_node(clone, copy, copy_of(node->payload))->original = node->key;
  }
  for (const auto& [id, node] : graph->nodes) {
    for (const auto& link : graph->topology.dependencies(id)) {
      const Edge edge = {to_clone.at(link.node), to_clone.at(id), link.data};
      clone->topology.add_edges({&edge, 1});
    }
  }
  clone->references = graph->references;
  return clone;
}

CUresult read_links(CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                    std::vector<Topology::Link>& links) {
  if (count != 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  links.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!Nodes::valid(nodes[i]) || nodes[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    if (data != nullptr && data[i].type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) return CUDA_ERROR_INVALID_VALUE;
    links.push_back({nodes[i]->id, data != nullptr ? read_edge(data[i]) : EdgeData{}});
  }
  return CUDA_SUCCESS;
}

CUresult add_node(CUgraph graph, const std::vector<Topology::Link>& links, Payload payload, CUgraphNode& node) {
  const NodeId id = graph->topology.add_node();
  std::vector<Edge> edges;
  edges.reserve(links.size());
  for (const auto& link : links) edges.push_back({link.node, id, link.data});
  if (!graph->topology.add_edges(edges)) {
    graph->topology.remove_node(id);
    return CUDA_ERROR_INVALID_VALUE;
  }
  node = make_node(graph, id, std::move(payload));
  return CUDA_SUCCESS;
}

EdgeData read_edge(const CUgraphEdgeData& data) {
  return {data.from_port, data.to_port, data.type};
}

CUgraphEdgeData write_edge(const EdgeData& data) {
  return {data.from_port, data.to_port, data.type, {}};
}

}  // namespace softgpu::graph

bool CUgraph_st::owns_memory() const {
  for (const auto& [id, node] : nodes) {
    if (softgpu::graph::uses_memory(node->payload)) return true;
  }
  return false;
}
