// GET /fairlead/v1/requests/{id}: where the time of a request that is over went, and who was ahead of it. A tenant's key sees its own
// requests; of others it is told how many ran, and not whose they are.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_request_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
