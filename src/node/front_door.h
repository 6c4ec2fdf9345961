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
#include "identity/secret_vault.h"
#include "net/http_server.h"
#include "net/tls_handshakes.h"
#include "node/node.h"
#include "node/peers/cluster_node.h"
#include "node/serve_options.h"
#include "node/tenant_worker.h"

namespace fairlead {

class FrontDoor {
 public:
  // What is named here must outlive it. `memory`: NodeOptions::memory.
  FrontDoor(boost::asio::io_context& io, Node& node, identity::SecretVault& secrets, std::shared_ptr<ByteBudget> memory,
            const RequestSinks& watching)
      : io_(io), node_(node), secrets_(secrets), memory_(std::move(memory)), watching_(watching), changes_(io) {}
  ~FrontDoor();

  // Reads the keys of the state folder, makes the operator's if there is none, and listens. REQUIRES: called once.
  Status open(const ServeOptions& options);
  // Keys and secrets of all nodes, as their store has them now.
  void adopt(SharedDocuments documents);
  void stop_listening();  // who is in, stays; other nodes are told that this one goes

  bool is_forwarding() const { return cluster_ && cluster_->busy(); }  // calls wait for other nodes
  void when_forwarded(std::function<void()> callback);                 // when none does

 private:
  void read_next();
  std::function<void()> read(const SharedDocuments& all);
  Status know_callers(const ServeOptions& options);
  Status join_cluster(const ServeOptions& options);
  Status add_edges(const ServeOptions& options);
  Status prepare_tls(const ServeOptions& options);
  Status listen(const ServeOptions& options);

  boost::asio::io_context& io_;
  Node& node_;
  identity::SecretVault& secrets_;
  const std::shared_ptr<ByteBudget> memory_;  // shared with all that holds callers' bytes
  const RequestSinks& watching_;
  std::unique_ptr<ClusterNode> cluster_;  // null: the node is alone
  std::optional<identity::KeyDesk> keys_;
  std::optional<Guard> guard_;
  Router router_{document_errors()};
  std::unique_ptr<net::TlsHandshakes> handshakes_;  // null: HTTP in the clear
  std::unique_ptr<net::HttpServer> http_;
  std::optional<SharedDocuments> unread_;  // the last that came while others are being read
  bool is_reading_ = false;
  // Of keys of all nodes; empty: there are none. Its worker's once the node is open.
  struct {
    std::string folder;  // of what is kept
    std::string master;
    std::string kept;  // as it was last written
  } of_cluster_;
  // Changes of keys and secrets, which wait for the disk or for the store of all nodes. Last: its jobs use the others.
  TenantWorker changes_;
};

}  // namespace fairlead
