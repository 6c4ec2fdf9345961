#include "gateway/gateway.h"

#include <utility>

#include "gateway/admin.h"
#include "gateway/graphs.h"
#include "gateway/kernel_tasks.h"
#include "gateway/lambda_functions.h"
#include "gateway/lambda_invoke.h"
#include "gateway/metrics.h"
#include "gateway/objects.h"
#include "gateway/router.h"

namespace fairlead {

namespace {

// Base64 is 4 bytes for 3; the rest of a CreateFunction body is small.
constexpr std::size_t kMaxRequestBytes = kMaxZippedCodeBytes / 3 * 4 + (1 << 20);

}  // namespace

class Gateway::Impl {
 public:
  Router router;
};

Gateway::Gateway(NodeService& node, GatewayOptions options) : impl_(std::make_unique<Impl>()) {
  add_invoke_routes(impl_->router, node);
  add_function_routes(impl_->router, node, options);
  add_object_routes(impl_->router, node.objects(), {});
  add_graph_routes(impl_->router, node.graphs());
  add_kernel_task_routes(impl_->router, node);
  add_admin_routes(impl_->router, node);
  add_metrics_routes(impl_->router, node);
}

Gateway::~Gateway() = default;

void Gateway::handle(net::HttpExchange exchange) const {
  impl_->router.dispatch(std::move(exchange));
}

net::HttpLimits Gateway::http_limits() {
  return {.body_bytes = kMaxRequestBytes};
}

}  // namespace fairlead
