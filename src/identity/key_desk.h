// Keys as an operator changes them: a change is on disk, or in the store of all nodes, before it is told of, or has not happened.
//
// A change is planned, which alters nothing; then it is carried out. One of a key of all nodes is published in between, which waits for
// the store and so is done elsewhere:
//
//   plan ──this node's──────────────────────────> carry_out: the file, then the keyring
//   plan ──of all nodes──> documents published ──> carry_out: the keyring
//   the store as it is then, or after another node's change ──> read_cluster_keys(), kept on disk ──> adopt: the keyring
//
// carry_out() blocks while the file of this node's keys is synced, some milliseconds: for the rare changes of an operator.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "identity/cluster_keys.h"
#include "identity/key_file.h"
#include "identity/keyring.h"
#include "model/shared_document.h"

namespace fairlead::identity {

class KeyDesk {
 public:
  using Clock = std::function<std::int64_t()>;  // milliseconds since the epoch

  // `cluster`: the master key of keys of all nodes; empty: new keys are this node's own.
  KeyDesk(KeyFile file, Keyring keyring, Clock clock, std::string cluster = {})
      : file_(std::move(file)), keyring_(std::move(keyring)), clock_(std::move(clock)), cluster_(std::move(cluster)) {}

  Keyring& keyring() { return keyring_; }
  std::int64_t now_ms() const { return clock_(); }

  struct Change {
    std::optional<IssuedKey> issued;  // what the answer to it has
    std::vector<ApiKey> put;
    std::string removed;        // an id; empty: none
    DocumentChanges documents;  // to be published first; none of them: the change is this node's

    bool is_of_cluster() const { return !documents.all.empty(); }
  };
  // As Keyring has them, with fresh ids.
  Result<Change> plan_issue(const KeyRequest& request) const;
  Result<Change> plan_rotate(const std::string& id, std::int64_t grace_ms) const;
  Result<Change> plan_revoke(const std::string& id) const;
  // `revision`: what publishing gave. An error: of the file, and nothing has changed. None where it was published.
  Status carry_out(const Change& change, std::int64_t revision = 0);

  // Keys of all nodes, as the store has them now.
  void adopt(ClusterKeys all);

 private:
  Change planned(const Keyring& after, std::vector<std::string> ids, std::string removed) const;

  const KeyFile file_;
  Keyring keyring_;
  const Clock clock_;
  const std::string cluster_;
  std::int64_t revision_ = -1;  // of the store, as this keyring has it
};

}  // namespace fairlead::identity
