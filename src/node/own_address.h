// Where others reach this node, as far as that can be told from where it listens.
//
// Example: "0.0.0.0:9001, 10.0.0.7:9001" with a certificate  ──>  "https://10.0.0.7:9001"
//
// Threads: free functions, any thread.
#pragma once

#include <string>

#include "node/serve_options.h"

namespace fairlead {

// The first that is neither an address that stands for all, nor a port that is yet to be chosen. "": there is none.
std::string own_address(const ServeOptions& options);

}  // namespace fairlead
