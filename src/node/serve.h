// `fairlead serve`: builds a node, runs it until SIGTERM or SIGINT, ends it gracefully.
#pragma once

#include "node/serve_options.h"

namespace fairlead {

// Returns the process's exit status: 0 after a graceful stop, 1 when the node could not start. Logs to stderr; the line
// "listening on ADDRESS" appears once for every address, when it answers.
int serve(const ServeOptions& options);

}  // namespace fairlead
