// The function that a path names as {function}.
#pragma once

#include <string>

#include "base/result.h"
#include "edge/edge.h"
#include "edge/node_service.h"
#include "model/version.h"

namespace fairlead {

// The function from the path (a name, a partial or a full ARN) and which of its versions, there or in ?Qualifier=. kInvalidArgument where both
// are there and differ.
Result<QualifiedName> qualified_from(const RouteCall& call);
// The bare name, for what is of functions and not of versions: a qualifier other than $LATEST is kInvalidArgument.
Result<std::string> function_from(const RouteCall& call);
// The same, as the node knows it, if the caller's to see.
Result<FunctionRecord> find_function(NodeService& node, const RouteCall& call);
// The version that is named, if the caller's to see.
Result<FunctionRecord> find_version(NodeService& node, const RouteCall& call);

// What the node says of a function that is not there; edges say it of another tenant's too.
Error no_such_function(const std::string& name);

// The same name, if the caller's to use: a key of one tenant is told that another tenant's functions are not there.
Status check_seen(NodeService& node, const Principal& who, const std::string& function);

}  // namespace fairlead
