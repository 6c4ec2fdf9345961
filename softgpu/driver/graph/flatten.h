// A graph with the graphs inside it as one list of steps, dependencies first. Instantiation and update compare and execute
// such lists; nothing after this sees a hierarchy.
//
// A child graph becomes two empty steps, its entry and its exit, with the child's own steps between: the child's roots
// come after the entry, the exit after its leaves.
#pragma once

#include <map>

#include "softgpu/driver/graph/graph.h"

namespace softgpu::graph {

struct Step {
  CUgraphNode node = nullptr;  // of the graph it was made from; for comparison and reports, may be stale
  std::uint64_t key = 0;       // of that node; 0 for an exit
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Payload payload;                 // Empty for a child graph
  std::vector<std::size_t> after;  // earlier steps
  std::function<void()> run;       // set by prepare_steps()
  bool enabled = true;
};

// False when there is a cycle; `in_cycle` is then one of its nodes.
bool flatten(CUgraph graph, std::vector<Step>& steps, CUgraphNode& in_cycle);

// Makes every step executable. The error of the first that cannot be, which is `failed`.
CUresult prepare_steps(std::vector<Step>& steps, CUgraphNode& failed);

// The steps as a graph again, without hierarchy.
CUgraph graph_of(const std::vector<Step>& steps);

}  // namespace softgpu::graph
