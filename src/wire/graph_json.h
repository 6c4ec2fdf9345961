// A graph of functions as JSON (docs/how-to/graphs.md). Only what JSON alone can get wrong is refused here; what the graph means is
// plan_graph()'s.
//
//   {"nodes": {"add": {"function": "add", "payload": {"inputs": {"x": {"key": "{run}/x"}}}, "after": ["make"]}},
//    "concurrency": 8, "deadline_seconds": 60}
//
// Threads: free functions, any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "decide/graph/graph.h"

namespace fairlead::wire {

// kInvalidArgument with the path of the value: "nodes.add.retries is 6, ...". Nodes come out in the order of their names.
Result<Graph> graph_from_json(std::string_view json);

}  // namespace fairlead::wire
