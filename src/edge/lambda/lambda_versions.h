// Versions and aliases over Lambda's API: PublishVersion, ListVersionsByFunction; Create-, Update-, Get-, DeleteAlias, ListAliases. A version is
// deleted as a function is, with its number as the qualifier (lambda_functions.h).
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_version_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
