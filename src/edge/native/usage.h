// GET /fairlead/v1/usage: what tenants used, a row for each hour and function, as JSON or CSV. A tenant's key sees its tenant's alone.
#pragma once

#include "edge/edge.h"
#include "edge/usage_service.h"

namespace fairlead {

// `service` must outlive the handlers.
Edge usage_edge(UsageService& service);

}  // namespace fairlead
