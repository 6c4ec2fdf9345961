// AWS Lambda's control API: functions, their code, configuration, tags and concurrency.
#pragma once

#include "gateway/gateway.h"
#include "gateway/router.h"

namespace fairlead {

void add_function_routes(Router& router, NodeService& node, GatewayOptions options);

}  // namespace fairlead
