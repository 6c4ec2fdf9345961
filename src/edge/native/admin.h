// What operators and the command line ask a node: health, status, logs, history.
#pragma once

#include <nlohmann/json.hpp>

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

// GET /healthz, /fairlead/v1/status, /fairlead/v1/functions/{name}/log?tail=N, /fairlead/v1/history?from=
void add_admin_routes(Routes& routes, NodeService& node);

nlohmann::json status_json(const NodeStatus& status);

}  // namespace fairlead
