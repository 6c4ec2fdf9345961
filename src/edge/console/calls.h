// GET /fairlead/v1/recent[?function=NAME][&limit=N]: the last calls that are over, the newest first, each with where its time went. A tenant's key
// sees its own tenant's.
#pragma once

#include "edge/edge.h"
#include "edge/recent_calls.h"

namespace fairlead {

// `calls` outlives the handlers.
void add_recent_call_routes(Routes& routes, const RecentCalls& calls);

}  // namespace fairlead
