#include "edge/native/native_edge.h"

#include <utility>

#include "edge/error_document.h"
#include "edge/native/admin.h"
#include "edge/native/graphs.h"
#include "edge/native/kernel_tasks.h"
#include "edge/native/objects.h"

namespace fairlead {

Edge native_edge(NodeService& node, OutcomeResponse outcome_response) {
  Edge edge{.name = "native", .prefixes = {"/v1", "/fairlead/v1", "/healthz"}, .errors = document_errors()};
  add_object_routes(edge.routes, node.objects(), {});
  add_graph_routes(edge.routes, node);
  add_kernel_task_routes(edge.routes, node, std::move(outcome_response));
  add_admin_routes(edge.routes, node);
  return edge;
}

}  // namespace fairlead
