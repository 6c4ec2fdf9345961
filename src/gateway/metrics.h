// Prometheus' text format (version 0.0.4) of a node's status.
#pragma once

#include <string>

#include "gateway/node_service.h"
#include "gateway/router.h"

namespace fairlead {

// GET /metrics
void add_metrics_routes(Router& router, NodeService& node);

std::string render_metrics(const NodeStatus& status);

}  // namespace fairlead
