// POST /v1/ktasks: a kernel task and one call of it in one request, answered as Invoke answers a call of a deployed one.
#pragma once

#include "gateway/node_service.h"
#include "gateway/router.h"

namespace fairlead {

void add_kernel_task_routes(Router& router, NodeService& node);  // `node` must outlive the handlers

}  // namespace fairlead
