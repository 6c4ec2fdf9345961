// AWS Lambda's control API: functions, their code, configuration, tags and concurrency.
#pragma once

#include "gateway/edge.h"
#include "gateway/gateway.h"

namespace fairlead {

void add_function_routes(Routes& routes, NodeService& node, GatewayOptions options);

}  // namespace fairlead
