// Graphs as the driver keeps them: the structure (topology.h) and, for each of its nodes, a handle with a description of
// what it does (payload.h).
//
// A graph and its nodes are not internally synchronised, as CUDA has it; captures, which may add nodes from several
// threads, hold their own lock. Handles are shells that are reused and never freed: a stale handle is an error.
#pragma once

#include <map>

#include "softgpu/driver/graph/payload.h"
#include "softgpu/driver/graph/topology.h"
#include "softgpu/driver/graph/user_object.h"
#include "softgpu/driver/handle.h"

struct CUgraphNode_st {
  static constexpr std::uint32_t kMagic = 0x676E6F64;  // "gnod"
  std::atomic<std::uint32_t> magic{0};
  CUgraph graph = nullptr;
  softgpu::graph::NodeId id = 0;
  std::uint64_t key = 0;       // differs for every node ever made
  std::uint64_t original = 0;  // key of the node that this one was cloned from; 0: none
  softgpu::graph::Payload payload;
  std::vector<void*> parameter_pointers;  // what the getter of kernel parameters returned last
};

struct CUgraph_st {
  static constexpr std::uint32_t kMagic = 0x67726166;  // "graf"
  std::atomic<std::uint32_t> magic{0};
  std::uint64_t key = 0;
  std::uint64_t original = 0;  // key of the graph this was cloned from; 0: none
  bool child = false;          // belongs to a node, which destroys it
  bool capturing = false;      // a capture adds nodes
  softgpu::graph::Topology topology;
  std::map<softgpu::graph::NodeId, CUgraphNode> nodes;
  softgpu::graph::UserReferences references;
  std::shared_ptr<std::atomic<int>> executables;  // how many exist; of importance for graphs that own memory

  CUgraphNode node(softgpu::graph::NodeId id) const { return nodes.at(id); }
  // Whether a node allocates or frees memory, which forbids changing and cloning the graph.
  bool owns_memory() const;
};

namespace softgpu::graph {

using Graphs = HandlePool<CUgraph_st>;
using Nodes = HandlePool<CUgraphNode_st>;

// INVALID_VALUE for a handle that is none, NOT_INITIALIZED before cuInit.
CUresult check_graph(CUgraph graph);
CUresult check_node(CUgraphNode node);
// The node's description when it is of that type, else INVALID_VALUE.
template <typename Wanted>
CUresult payload_of(CUgraphNode node, Wanted*& payload) {
  SOFTGPU_TRY(check_node(node));
  payload = std::get_if<Wanted>(&node->payload);
  return payload != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUgraph make_graph();
// Ends the graph, its nodes and the graphs inside it.
void destroy_graph(CUgraph graph);
void destroy_node(CUgraphNode node);

// A deep copy with nodes in the same order. REQUIRES: the graph owns no memory.
CUgraph clone_graph(CUgraph graph);

// Edges to a node that is about to be made. INVALID_VALUE: an end is no node of the graph.
CUresult read_links(CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count,
                    std::vector<Topology::Link>& links);

// Adds a node after those of `links`. INVALID_VALUE when one is named twice. Does not check the payload.
CUresult add_node(CUgraph graph, const std::vector<Topology::Link>& links, Payload payload, CUgraphNode& node);

EdgeData read_edge(const CUgraphEdgeData& data);
CUgraphEdgeData write_edge(const EdgeData& data);

}  // namespace softgpu::graph
