// cuGraphDebugDotPrint: the graph as text for graphviz.
#include <cstdio>
#include <fstream>

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/graph/graph.h"

using softgpu::KernelLaunch;
using softgpu::graph::ChildGraph;

namespace {

const char* name_of(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST: return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "WAIT_EVENT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "MEM_FREE";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "BATCH_MEM_OP";
    default: return "OTHER";
  }
}

std::string dot_name(CUgraphNode node) {
  return "\"graph_" + std::to_string(node->graph->key) + "_node_" + std::to_string(node->id) + "\"";
}

std::string details(CUgraphNode node, bool verbose) {
  std::string text;
  const auto* kernel = std::get_if<KernelLaunch>(&node->payload);
  if (kernel != nullptr && softgpu::Functions::valid(kernel->function)) {
    const CUlaunchConfig& s = kernel->shape;
    text += "\\n" + kernel->function->kernel->info().name;
    if (!verbose) return text;
    char shape[128];
    std::snprintf(shape, sizeof shape, "<<<(%u, %u, %u), (%u, %u, %u), %u>>>", s.gridDimX, s.gridDimY, s.gridDimZ,
                  s.blockDimX, s.blockDimY, s.blockDimZ, s.sharedMemBytes);
    text += shape;
  }
  return text;
}

void print(std::ostream& out, CUgraph graph, bool verbose) {
  out << "subgraph \"cluster_" << graph->key << "\" {\nlabel=\"graph_" << graph->key << "\"\n";
  for (const auto& [id, node] : graph->nodes) {
    out << dot_name(node) << " [label=\"" << id << "\\n"
        << name_of(softgpu::graph::type_of(node->payload)) << details(node, verbose) << "\"]\n";
    if (const auto* child = std::get_if<ChildGraph>(&node->payload)) print(out, child->graph, verbose);
  }
  for (const auto& edge : graph->topology.edges()) {
    out << dot_name(graph->node(edge.from)) << " -> " << dot_name(graph->node(edge.to)) << "\n";
  }
  out << "}\n";
}

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::graph::check_graph(graph));
  std::ofstream out(path);
  const unsigned verbose = CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS;
  out << "digraph dot {\n";
  print(out, graph, (flags & verbose) != 0);
  out << "}\n";
  out.close();
  return out ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
