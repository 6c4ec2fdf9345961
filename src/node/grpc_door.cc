#include "node/grpc_door.h"

#include <utility>

#include "base/log.h"
#include "edge/inference/grpc/grpc_edge.h"
#include "node/handshakes.h"

namespace fairlead {

Result<std::unique_ptr<GrpcDoor>> GrpcDoor::open(boost::asio::io_context& io, const Services& services, Guard& guard,
                                                 net::RequestMemory memory, const ServeOptions& options) {
  if (options.grpc.empty()) return nullptr;
  std::unique_ptr<GrpcDoor> door(new GrpcDoor());
  Edge edge = grpc_edge(services.node, services.batches);
  door->router_ = Router(edge.errors);
  if (Status added = door->router_.add(std::move(edge)); !added) return fail(added.error());
  door->router_.set_guard(&guard);
  auto handshakes = make_handshakes(options, net::TlsProtocol::kHttp2);
  if (!handshakes) return fail(handshakes.error());
  door->handshakes_ = *std::move(handshakes);
  door->server_ = std::make_unique<net::GrpcServer>(
      io, net::GrpcLimits(),
      [router = &door->router_](net::HttpExchange exchange) { router->dispatch(std::move(exchange)); },
      std::move(memory));
  for (const std::string& address : options.grpc) {
    const bool is_secured = door->handshakes_ && !address.starts_with("unix:");
    const auto bound = door->server_->listen(address, is_secured ? door->handshakes_.get() : nullptr);
    if (!bound) return fail(bound.error());
    spdlog::info("gRPC at {}{}", *bound, is_secured ? ", with TLS" : "");
  }
  return door;
}

}  // namespace fairlead
