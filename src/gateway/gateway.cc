#include "gateway/gateway.h"

#include <utility>

#include "base/check.h"
#include "gateway/admin.h"
#include "gateway/graphs.h"
#include "gateway/kernel_tasks.h"
#include "gateway/lambda_error.h"
#include "gateway/lambda_functions.h"
#include "gateway/lambda_invoke.h"
#include "gateway/metrics.h"
#include "gateway/objects.h"
#include "gateway/router.h"

namespace fairlead {

namespace {

// Base64 is 4 bytes for 3; the rest of a CreateFunction body is small.
constexpr std::size_t kMaxRequestBytes = kMaxZippedCodeBytes / 3 * 4 + (1 << 20);

Edge lambda_edge(NodeService& node, const GatewayOptions& options) {
  Edge edge{.name = "lambda",
            .prefixes = {"/2015-03-31", "/2016-08-19", "/2017-03-31", "/2017-10-31", "/2019-09-30"},
            .errors = document_errors()};
  add_invoke_routes(edge.routes, node);
  add_function_routes(edge.routes, node, options);
  return edge;
}

Edge native_edge(NodeService& node) {
  Edge edge{.name = "native", .prefixes = {"/v1", "/fairlead/v1", "/healthz"}, .errors = document_errors()};
  add_object_routes(edge.routes, node.objects(), {});
  add_graph_routes(edge.routes, node.graphs());
  add_kernel_task_routes(edge.routes, node);
  add_admin_routes(edge.routes, node);
  return edge;
}

Edge metrics_edge(NodeService& node) {
  Edge edge{.name = "metrics", .prefixes = {"/metrics"}, .errors = document_errors()};
  add_metrics_routes(edge.routes, node);
  return edge;
}

}  // namespace

class Gateway::Impl {
 public:
  void add(Edge edge) {
    const Status added = router.add(std::move(edge));
    FL_CHECK(added, "{}", added.error().message);
  }

  Router router{document_errors()};
};

Gateway::Gateway(NodeService& node, GatewayOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->add(lambda_edge(node, options));
  impl_->add(native_edge(node));
  impl_->add(metrics_edge(node));
}

Gateway::~Gateway() = default;

void Gateway::handle(net::HttpExchange exchange) const {
  impl_->router.dispatch(std::move(exchange));
}

net::HttpLimits Gateway::http_limits() {
  return {.body_bytes = kMaxRequestBytes};
}

}  // namespace fairlead
