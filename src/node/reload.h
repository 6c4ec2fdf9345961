// What a node takes over of settings that were read again while it runs, and what has to wait for a restart. Pure: settings in,
// settings and words out.
//
// Example: the file now says log-level = "debug" and pool = 16. The node logs more from now on; its pool stays as it is, and the
// log says that --pool is another after a restart.
#pragma once

#include <string>
#include <vector>

#include "node/serve_options.h"

namespace fairlead {

struct Reload {
  ServeOptions options;                // what the node runs with from now on
  std::vector<std::string> changed;    // a sentence for each setting that takes effect
  std::vector<std::string> unchanged;  // and for each that does not before a restart
};

// `running` is what the node runs with, not what it was started with.
Reload plan_reload(const ServeOptions& running, const ServeOptions& wanted);

}  // namespace fairlead
