// A server of gRPC's unary calls, on one io_context thread, beside the HTTP server and for the same handlers.
//
//   client ──HTTP/2──> nghttp2 ──> stream ──> GrpcMessage ──> HttpExchange ──> handler
//
// A call is an HttpExchange: POST, its path (/package.Service/Method), its metadata as headers, the message as the body without
// gRPC's five bytes before it. An answer of 200 has a message as its body; any other is a status of gRPC (grpc_status.h) and its body
// the text of that. A header "grpc-status" in the answer says another one. `:authority` is the header Host.
//
// Example: {.status = 404, .body = "there is no model 'm'"} reaches the client as NOT_FOUND, "there is no model 'm'".
//
// Not taken: compressed messages (UNIMPLEMENTED, "identity" is all that is accepted), calls with several messages, answers as streams.
// Bounds: GrpcLimits; messages and answers beyond a kilobyte are in the budget of RequestMemory, as bodies of HTTP are. Who opens
// and cancels calls faster than nghttp2's limit loses the connection.
// Contract: that of HttpHandler. Threads: everything on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "net/http_server.h"

namespace fairlead::net {

struct GrpcLimits {
  std::size_t message_bytes = 8 << 20;
  std::size_t header_bytes = 16 << 10;  // of a call's metadata
  std::size_t headers = 128;
  std::size_t calls = 100;                               // of a connection at a time
  std::size_t connections = 1024;                        // beyond: the one that is idle for longest makes room
  Duration idle_timeout = std::chrono::minutes(5);       // between calls
  Duration transfer_timeout = std::chrono::seconds(60);  // a begun call must arrive, a blocked answer must move on
  std::size_t calls_per_turn = 16;                       // of a connection, before others have theirs,
  Duration turn = std::chrono::microseconds(100);        // and after which its next call waits for another turn
};

// REQUIRES: the io_context outlives the server and every exchange.
class GrpcServer {
 public:
  GrpcServer(boost::asio::io_context& io, const GrpcLimits& limits, HttpHandler handler, RequestMemory memory = {});
  ~GrpcServer();  // closes everything

  // "127.0.0.1:8001", "[::1]:0", "unix:/path". Returns the bound address (port 0 replaced). `handshakes`, of an identity that speaks
  // "h2", outlives the server; null: HTTP/2 in the clear, with prior knowledge.
  Result<std::string> listen(std::string_view address, TlsHandshakes* handshakes = nullptr);
  void stop_listening();  // who is in hears that the server goes, and its calls end
  void close();           // drops everything now
  std::size_t connections() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fairlead::net
