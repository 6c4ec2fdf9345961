// Graphs of functions over HTTP: docs/how-to/graphs.md.
//
//   POST   /v1/graphs[?wait=SECONDS]                  body: a graph; 202, or 200 when it has ended
//   POST   /v1/graphs?check                           what it would do
//   GET    /v1/graphs/RUN[?wait=SECONDS[&ended=N]]    the run
//   GET    /v1/graphs                                 a list
//   DELETE /v1/graphs/RUN                             cancels it
//
// Whose: the header X-Fairlead-Tenant, "default" without it.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_graph_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
