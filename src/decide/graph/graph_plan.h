// What follows from a graph before anything runs: which node needs which, what comes from outside, and whether it can run at
// all.
//
// A key has at most one writer among the nodes; who reads it needs that writer. A key without one is an outside input. With
// `after` these are the edges, and they must have no cycle: of the nodes left over when those that need nobody are taken away
// again and again, each needs another one that is left over, so following any of them runs into a cycle, which is named.
//
// Determinism: the same graph gives the same plan and the same refusal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decide/graph/graph.h"

namespace fairlead {

struct GraphPlan {
  std::vector<std::vector<std::uint32_t>> needs;             // of each node: nodes that must be done first, ascending
  std::vector<std::vector<std::uint32_t>> feeds;             // the reverse
  std::map<std::string, std::vector<std::uint32_t>> inputs;  // outside inputs: who reads them
  std::map<std::string, std::uint32_t> writers;
};

// kInvalidArgument names node, field, value and bound: "nodes.total.reads[3] ...".
Result<GraphPlan> plan_graph(const Graph& graph);

}  // namespace fairlead
