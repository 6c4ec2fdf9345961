// Where requests come in: keys and who has them, the edges, the addresses and what is spoken there.
//
//   address ──TLS or not──> HTTP server ──> router ──guard──> edge ──> node
//
// Threads: everything on the io_context's thread; handshakes of TLS on one of their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "base/byte_budget.h"
#include "edge/error_document.h"
#include "edge/guard.h"
#include "edge/router.h"
#include "identity/key_desk.h"
#include "net/http_server.h"
#include "node/grpc_door.h"
#include "node/handshakes.h"
#include "node/keys_and_secrets.h"
#include "node/node.h"
#include "node/peers/cluster_node.h"
#include "node/serve_options.h"

namespace fairlead {
namespace inference {
class Batches;
}

class FrontDoor {
 public:
  // What is named here must outlive it. `memory`: NodeOptions::memory.
  FrontDoor(boost::asio::io_context& io, Node& node, std::unique_ptr<KeysAndSecrets> common, PublishDocuments publish,
            std::shared_ptr<ByteBudget> memory, const RequestSinks& watching)
      : io_(io),
        node_(node),
        common_(std::move(common)),
        publish_(std::move(publish)),
        memory_(std::move(memory)),
        watching_(watching) {}
  ~FrontDoor();

  // Reads the keys of the state folder, makes the operator's if there is none, and listens. REQUIRES: called once.
  Status open(const ServeOptions& options);
  KeysAndSecrets& keys_and_secrets() { return *common_; }
  void stop_listening();  // who is in, stays; other nodes are told that this one goes

  bool is_forwarding() const { return cluster_ && cluster_->busy(); }  // calls wait for other nodes
  void when_forwarded(std::function<void()> callback);                 // when none does

 private:
  Status know_callers(const ServeOptions& options);
  Status join_cluster(const ServeOptions& options);
  Status add_edges(const ServeOptions& options);
  Status listen(const ServeOptions& options);
  net::RequestMemory request_memory(const ServeOptions& options);
  NodeService& service();

  boost::asio::io_context& io_;
  Node& node_;
  const std::unique_ptr<KeysAndSecrets> common_;
  const PublishDocuments publish_;
  const std::shared_ptr<ByteBudget> memory_;  // shared with all that holds callers' bytes
  const RequestSinks& watching_;
  std::unique_ptr<ClusterNode> cluster_;  // null: the node is alone
  std::optional<identity::KeyDesk> keys_;
  std::optional<Guard> guard_;
  std::shared_ptr<inference::Batches> batches_;  // of calls of models, however they come in
  Router router_{document_errors()};
  std::unique_ptr<net::TlsHandshakes> handshakes_;  // null: HTTP in the clear
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<GrpcDoor> grpc_;  // null: nobody asked for it
};

}  // namespace fairlead
