// Where calls of gRPC come in: the addresses of --grpc, with the keys, the budget of bytes and the certificate of the HTTP server.
//
// Threads: everything on the io_context's thread; handshakes of TLS on one of their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "edge/guard.h"
#include "edge/node_service.h"
#include "edge/router.h"
#include "net/grpc/grpc_server.h"
#include "net/tls_handshakes.h"
#include "node/serve_options.h"

namespace fairlead {
namespace inference {
class Batches;
}

class GrpcDoor {
 public:
  // Listens. What is named here must outlive it. Null: nobody asked for gRPC.
  struct Services {
    NodeService& node;
    inference::Batches& batches;
  };
  static Result<std::unique_ptr<GrpcDoor>> open(boost::asio::io_context& io, const Services& services, Guard& guard,
                                                net::RequestMemory memory, const ServeOptions& options);

  void stop_listening() { server_->stop_listening(); }  // calls under way end

 private:
  GrpcDoor() = default;

  Router router_{EdgeErrors{}};
  std::unique_ptr<net::TlsHandshakes> handshakes_;  // null: in the clear
  std::unique_ptr<net::GrpcServer> server_;
};

}  // namespace fairlead
