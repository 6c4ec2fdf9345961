// POST /v1/ktasks: a kernel task and one call of it in one request, answered as Invoke answers a call of a deployed one.
#pragma once

#include "gateway/edge.h"
#include "gateway/node_service.h"

namespace fairlead {

void add_kernel_task_routes(Routes& routes, NodeService& node);  // `node` must outlive the handlers

}  // namespace fairlead
