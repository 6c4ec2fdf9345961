// `fairlead serve`: builds a node, runs it until SIGTERM or SIGINT, ends it gracefully. SIGHUP, which a terminal sends when
// it closes and other daemons take as a wish to read their settings again, is logged and changes nothing.
#pragma once

#include "base/result.h"
#include "node/serve_options.h"

namespace fairlead {

// Returns after a graceful stop. Logs to stderr; the line "listening on ADDRESS" appears once for every address, when it
// answers. Error, logged too: why the node could not start; kInvalidArgument where an option is at fault.
Status serve(const ServeOptions& options);

}  // namespace fairlead
