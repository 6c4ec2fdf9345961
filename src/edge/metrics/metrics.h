// Prometheus' text format (version 0.0.4) of a node's status, and OpenMetrics for scrapers that ask for it.
#pragma once

#include <functional>
#include <string>

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// GET /metrics. `node` must outlive the handler.
// `more` follows it, in Prometheus' format; with exemplars only where OpenMetrics is made of it.
using MoreMetrics = std::function<std::string(bool with_exemplars)>;
Edge metrics_edge(NodeService& node, MoreMetrics more = nullptr);

std::string render_metrics(const NodeStatus& status);

}  // namespace fairlead
