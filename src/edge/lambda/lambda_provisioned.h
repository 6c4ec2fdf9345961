// AWS Lambda's provisioned concurrency: Put-, Get-, Delete- and ListProvisionedConcurrencyConfig(s). N instances are kept started: of a
// version or an alias by the tag gpu:provisioned (model/provisioned_tag.h), of $LATEST, which Lambda refuses, by MIN of the tag gpu:replicas
// (model/warmth_tags.h). So what is set here is seen there, and the other way round.
#pragma once

#include <functional>
#include <string>

#include "edge/edge.h"
#include "edge/node_service.h"

namespace fairlead {

void add_provisioned_routes(Routes& routes, NodeService& node);

// None are kept of it any more, if any were: a version or an alias that is deleted. `done` is called once, perhaps within the call.
void end_provisioned(NodeService& node, const std::string& function, const std::string& qualifier,
                     std::function<void(Status)> done);

}  // namespace fairlead
