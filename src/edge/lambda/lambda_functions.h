// AWS Lambda's control API: functions, their code, configuration, tags and concurrency.
#pragma once

#include "edge/edge.h"
#include "edge/lambda/lambda_edge.h"

namespace fairlead {

void add_function_routes(Routes& routes, NodeService& node, LambdaOptions options);

}  // namespace fairlead
