#include "edge/console/console_edge.h"

#include <memory>
#include <utility>

#include "edge/console/calls.h"
#include "edge/console/sign_in.h"
#include "edge/console/site.h"
#include "edge/console/watch.h"
#include "edge/error_document.h"

namespace fairlead {
namespace {

// Keys have names that nobody else has; who came in without one, over the operator's socket or to a node that is open, would come in again.
std::function<bool(const Principal&)> still_known(const ConsolePorts& ports) {
  return [&keyring = ports.keyring, clock = ports.wall_clock_ms](const Principal& who) {
    if (!identity::is_key_id(who.name)) return true;
    const identity::ApiKey* key = keyring.find(who.name);
    return key != nullptr && (!key->expires_ms || *key->expires_ms > clock());
  };
}

}  // namespace

Edge console_edge(boost::asio::io_context& io, NodeService& node, ConsolePorts ports) {
  Edge edge{.name = "console",
            .prefixes = {"/console", "/fairlead/v1/watch", "/fairlead/v1/recent"},
            .errors = document_errors()};
  add_site_routes(edge.routes, site_files(), missing_site_parts());
  add_recent_call_routes(edge.routes, ports.calls);
  // Shared by the handler and its copies.
  const auto watch = std::make_shared<Watch>(
      io, node, WatchOptions{.is_known = still_known(ports), .run = std::to_string(ports.wall_clock_ms())});
  edge.routes.add(
      "GET", "/fairlead/v1/watch", [watch](RouteCall call) { watch->open(std::move(call)); }, Permission::kRead);
  add_sign_in_routes(edge.routes, ports.keyring, std::move(ports.wall_clock_ms));
  return edge;
}

}  // namespace fairlead
