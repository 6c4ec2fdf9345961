// Changes of API keys and secrets at one node: run on a thread of their own, since they wait for the disk, or for the store of all nodes;
// and what other nodes changed, read on that thread when the store tells of it.
//
//   a route ──elsewhere()──> disk, or publish() ──────────────> the answer
//   the store's documents ──adopt()──> read, checked, kept on disk ──> the key desk, on the loop
//
// One reading at a time, then the last of those that came meanwhile: a cluster may have ten thousand keys, and each is checked.
//
// Threads: the loop's, but publish(), which is called elsewhere.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>

#include "edge/run_elsewhere.h"
#include "identity/key_desk.h"
#include "identity/secret_vault.h"
#include "model/shared_document.h"
#include "node/tenant_worker.h"

namespace fairlead {

class KeysAndSecrets {
 public:
  struct Options {
    std::string state_dir;
    std::string cluster = {};  // the master key of keys of all nodes; empty: there are none
  };
  // `secrets` must outlive it. It has a thread: REQUIRES: the process forks no more.
  KeysAndSecrets(boost::asio::io_context& io, Options options, identity::SecretVault& secrets)
      : options_(std::move(options)), secrets_(secrets), worker_(io) {}

  const std::string& cluster() const { return options_.cluster; }
  identity::SecretVault& secrets() { return secrets_; }
  RunElsewhere elsewhere();

  // Whose keys follow those of the store from now on; it must outlive the loop's last turn.
  void follow(identity::KeyDesk& keys) { keys_ = &keys; }
  // As the store has them now.
  void adopt(SharedDocuments documents);

 private:
  void read_next();
  std::function<void()> read(const SharedDocuments& all);

  const Options options_;
  identity::SecretVault& secrets_;
  identity::KeyDesk* keys_ = nullptr;
  std::optional<SharedDocuments> unread_;  // the last that came while others are being read
  bool is_reading_ = false;
  std::string kept_;     // of the keys, as it was last written; the worker's
  TenantWorker worker_;  // last: its jobs use the others
};

}  // namespace fairlead
