// What was measured of functions, experiments that measure them, and how the node scales them, by HTTP.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// POST starts an experiment whose trials send the body; GET, PUT (import), DELETE (stop) below /fairlead/v1/functions/{function}/profile; GET
// /fairlead/v1/functions/{function}/scaling and /fairlead/v1/scaling.
void add_scaling_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
