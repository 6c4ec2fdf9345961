// AWS Lambda's provisioned concurrency: Put-, Get-, Delete- and ListProvisionedConcurrencyConfig(s). N instances are kept started: MIN of
// the tag gpu:replicas (model/warmth_tags.h), so what is set here is seen there, and the other way round.
//
// Where Lambda wants a version or an alias as Qualifier, $LATEST is taken: a node has no other.
#pragma once

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_provisioned_routes(Routes& routes, NodeService& node);

}  // namespace fairlead
