#include "edge/lambda/lambda_edge.h"

#include "edge/error_document.h"
#include "edge/lambda/lambda_events.h"
#include "edge/lambda/lambda_functions.h"
#include "edge/lambda/lambda_invoke.h"
#include "edge/lambda/lambda_provisioned.h"
#include "edge/lambda/lambda_versions.h"

namespace fairlead {

// The API's paths begin with the date of the version that brought them.
Edge lambda_edge(NodeService& node, const LambdaOptions& options) {
  Edge edge{.name = "lambda",
            .prefixes = {"/2015-03-31", "/2016-08-19", "/2017-03-31", "/2017-10-31", "/2019-09-25", "/2019-09-30",
                         "/2021-11-15"},
            .errors = document_errors()};
  add_invoke_routes(edge.routes, node);
  add_function_routes(edge.routes, node, options);
  add_event_routes(edge.routes, node);
  add_provisioned_routes(edge.routes, node);
  add_version_routes(edge.routes, node);
  return edge;
}

}  // namespace fairlead
