// Keys on disk, beside the node's state: `master-key` (32 random bytes), `keys.json` (what a keyring keeps: no secrets), and
// `operator-key`, the first start's key for the person who started the node: its id, its secret, a line each. `cluster-keys.json` has what
// was last seen of the keys of all nodes, each sealed (cluster_keys.h), for a start without the common store. All are 0600.
//
// Errors: kCorrupt and kInvalidArgument name the file, and nothing is changed then. Threads: one at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "identity/keyring.h"

namespace fairlead::identity {

std::string fresh_key_id(std::string_view prefix);  // and 20 letters and digits: 100 random bits

// The node's side of the files. REQUIRES: one process at a time, the folder exists and is only the node's to write.
class KeyFile {
 public:
  explicit KeyFile(std::string folder) : folder_(std::move(folder)) {}

  // Makes a master key where there is none. kCorrupt: keys are there and their master key is not. `cluster`: the master key of the
  // keys of all nodes; empty: there are none.
  Result<Keyring> load(const std::string& cluster = {}) const;
  // As a whole or not at all, and durably: the keys of this node, those of all nodes.
  Status save(const Keyring& keyring) const;
  Status save_cluster(const std::string& kept) const;  // ClusterKeys::kept

  // Where the operator's key is missing, is none of the keyring's (any more), or has an end: makes one, and saves both.
  Status ensure_operator_key(Keyring& keyring, std::int64_t now_ms) const;

  std::string operator_key_path() const { return folder_ + "/operator-key"; }

 private:
  Keyring::Keys load_cluster(const std::string& cluster) const;

  std::string folder_;
};

// A client's side: "ID.SECRET" of an operator-key file. kNotFound: there is none, or it is not this user's to read.
Result<std::string> read_token(const std::string& path);

}  // namespace fairlead::identity
