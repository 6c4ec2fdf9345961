#include "edge/native/native_edge.h"

#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/native/admin.h"
#include "edge/native/dead_letters.h"
#include "edge/native/function_stream.h"
#include "edge/native/graphs.h"
#include "edge/native/kernel_tasks.h"
#include "edge/native/objects.h"
#include "edge/native/requests.h"
#include "edge/native/scaling.h"
#include "edge/native/status_events.h"

namespace fairlead {

Edge native_edge(boost::asio::io_context& io, NodeService& node, OutcomeResponse outcome_response) {
  Edge edge{.name = "native", .prefixes = {"/v1", "/fairlead/v1", "/healthz"}, .errors = document_errors()};
  add_object_routes(edge.routes, node.objects(), {});
  add_graph_routes(edge.routes, node);
  add_function_stream_routes(edge.routes, node, outcome_response);
  add_kernel_task_routes(edge.routes, node, std::move(outcome_response));
  add_admin_routes(edge.routes, node);
  add_dead_letter_routes(edge.routes, node);
  add_request_routes(edge.routes, node);
  add_scaling_routes(edge.routes, node);
  const auto events = std::make_shared<StatusEvents>(io, node);  // shared by the handler and its copies
  edge.routes.add(
      "GET", "/fairlead/v1/events", [events](RouteCall call) { events->open(std::move(call)); }, Permission::kReadNode);
  return edge;
}

}  // namespace fairlead
