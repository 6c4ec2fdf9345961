// The node's HTTP API: AWS Lambda's Invoke and control API, objects, graphs, one-off kernel tasks, Prometheus metrics, the admin API. Turns requests
// into calls of NodeService and results into answers; decides nothing.
//
// Threads: everything on the io_context's thread.
#pragma once

#include <memory>

#include "gateway/node_service.h"
#include "net/http_server.h"

namespace fairlead {

struct GatewayOptions {
  // Code.Folder: local clients (a Unix socket, a loopback address) may deploy a folder of this machine.
  bool allow_code_folder = true;
};

class Gateway {
 public:
  explicit Gateway(NodeService& node, GatewayOptions options = {});  // `node` must outlive the gateway
  ~Gateway();

  // The handler of the HTTP server. Answers that wait for the node may come after the gateway is gone.
  void handle(net::HttpExchange exchange) const;

  // What the HTTP server must let through for the largest legal request: zipped code, base64 in JSON.
  static net::HttpLimits http_limits();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead
