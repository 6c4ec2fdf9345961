// The function that a path names as {function}.
#pragma once

#include <string>

#include "base/result.h"
#include "edge/edge.h"

namespace fairlead {

// The bare function name from the path (a name, a partial or a full ARN) and ?Qualifier=. A qualifier other than $LATEST
// is kNotFound: there are no versions.
Result<std::string> function_from(const RouteCall& call);

}  // namespace fairlead
