// POST /v1/ktasks: a kernel task and one call of it in one request, answered as Invoke answers a call of a deployed one.
#pragma once

#include "edge/native/native_edge.h"

namespace fairlead {

// `node` must outlive the handlers.
void add_kernel_task_routes(Routes& routes, NodeService& node, OutcomeResponse answer);

}  // namespace fairlead
