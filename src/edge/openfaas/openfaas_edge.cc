#include "edge/openfaas/openfaas_edge.h"

#include <memory>
#include <utility>

#include "edge/openfaas/callback_sender.h"
#include "edge/openfaas/openfaas_error.h"
#include "edge/openfaas/rollouts.h"
#include "edge/openfaas/system_functions.h"
#include "edge/openfaas/system_logs.h"
#include "edge/openfaas/system_secrets.h"

namespace fairlead {

Edge openfaas_edge(boost::asio::io_context& io, NodeService& node, identity::SecretVault& secrets,
                   OpenfaasOptions options) {
  using namespace openfaas;
  Edge edge{.name = "openfaas", .prefixes = {"/system", "/function", "/async-function"}, .errors = errors()};
  add_function_routes(edge.routes, node, std::make_shared<Rollouts>(io));
  add_secret_routes(edge.routes, std::move(options.elsewhere), secrets, std::move(options.wall_clock_ms));
  const auto logs = std::make_shared<LogStreams>(io, node);
  edge.routes.add(
      "GET", "/system/logs", [logs](RouteCall call) { logs->open(std::move(call)); }, Permission::kRead);
  auto callbacks = std::make_shared<Callbacks>(io, callback_sender(io, options.calls.callbacks));
  add_call_routes(edge.routes, node, std::move(callbacks), std::move(options.calls));
  return edge;
}

}  // namespace fairlead
