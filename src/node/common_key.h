// Keys that all nodes of a cluster with a common store have, of which the store knows none: under them lies what is theirs together.
#pragma once

#include <string>

#include "base/result.h"
#include "node/serve_options.h"

namespace fairlead {

inline constexpr const char* kForApiKeys = "api keys";
inline constexpr const char* kForSecrets = "secrets";

// 32 bytes, for one purpose, of --cluster-key. Empty: without --store, or without --cluster-key, nodes have no such things together; and
// with --open whoever is on the machine would change those of all nodes.
// kInvalidArgument: as read_cluster_key().
Result<std::string> common_key(const ServeOptions& options, const char* purpose);

}  // namespace fairlead
