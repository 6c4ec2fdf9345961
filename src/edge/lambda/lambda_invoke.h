// AWS Lambda's Invoke: the way of every invocation. The payload is opaque; nothing here reads it.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// POST /2015-03-31/functions/{name}/invocations: RequestResponse, Event and DryRun.
void add_invoke_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
