// What operators and the command line ask a node: health, status, logs, dead letters.
#pragma once

#include <nlohmann/json.hpp>

#include "gateway/node_service.h"
#include "gateway/router.h"

namespace fairlead {

// GET /healthz, /fairlead/v1/status, /fairlead/v1/functions/{name}/log?tail=N, /fairlead/v1/dead-letters?function=&limit=,
// /fairlead/v1/history?from=
void add_admin_routes(Router& router, NodeService& node);

nlohmann::json status_json(const NodeStatus& status);

}  // namespace fairlead
