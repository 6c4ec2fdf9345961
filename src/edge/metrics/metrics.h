// Prometheus' text format (version 0.0.4) of a node's status.
#pragma once

#include <functional>
#include <string>

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// GET /metrics. `node` must outlive the handler.
// `more` follows it, in the same format.
Edge metrics_edge(NodeService& node, std::function<std::string()> more = nullptr);

std::string render_metrics(const NodeStatus& status);

}  // namespace fairlead
