// AWS Lambda's API for how often and how long asynchronous invocations of a function are tried: Put-, Update-, Get-, Delete- and
// ListFunctionEventInvokeConfigs.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_event_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
