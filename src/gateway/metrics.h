// Prometheus' text format (version 0.0.4) of a node's status.
#pragma once

#include <string>

#include "gateway/edge.h"
#include "gateway/node_service.h"

namespace fairlead {

// GET /metrics
void add_metrics_routes(Routes& routes, NodeService& node);

std::string render_metrics(const NodeStatus& status);

}  // namespace fairlead
