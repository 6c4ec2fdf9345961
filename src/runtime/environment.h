// The environment of a function, made from nothing: what Lambda promises, then what the author and the platform set.
#pragma once

#include <string>
#include <vector>

#include "runtime/instance_host.h"

namespace fairlead {

// "NAME=value", sorted by name. The reserved names (_HANDLER, LAMBDA_*, AWS_LAMBDA_*, FAIRLEAD_SHIM_* and the Runtime
// API's addresses) cannot be overridden, the others (PATH, LANG, TZ, HOME, LD_LIBRARY_PATH, AWS_REGION, credentials) can.
// LD_PRELOAD is the shim, then what the author set.
std::vector<std::string> sandbox_environment(const InstanceSpec& spec);

}  // namespace fairlead
