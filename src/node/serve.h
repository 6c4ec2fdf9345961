// `fairlead serve`: builds a node, runs it until SIGTERM or SIGINT, ends it gracefully. SIGHUP reads the settings again: what can
// change in a running node does, what cannot is named in the log, and what is wrong changes nothing. A node that has no file
// of settings logs the signal, which a terminal sends when it closes, and runs on.
#pragma once

#include "base/result.h"
#include "node/serve_options.h"

namespace fairlead {

// Returns after a graceful stop. Logs to stderr; the line "listening on ADDRESS" appears once for every address, when it
// answers. Error, logged too: why the node could not start; kInvalidArgument where an option is at fault. REQUIRES: every option
// is one that the table of settings takes (serve_settings.h).
Status serve(const ServeOptions& options, const RereadSettings& reread);

}  // namespace fairlead
