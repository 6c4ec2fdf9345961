// Event invocations that failed for good: listed, and tried again.
//
// GET /fairlead/v1/dead-letters?function=&limit=, POST /fairlead/v1/dead-letters/redrive,
// POST /fairlead/v1/functions/{name}/dead-letters/redrive
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_dead_letter_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
