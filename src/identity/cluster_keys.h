// API keys of all nodes of a cluster, as documents of their common store, and as each node keeps what it last saw of them.
//
//   {"id", "role", "tenant", "created_ms", "expires_ms", "note", "secret_sha256", "seal"}
//
// A seal is an HMAC of the other fields under the master key of the cluster's keys, which comes of the cluster's key and is in no store:
// who writes to the store can neither make a key nor give one another role, tenant or end. It can bring back what was there before.
//
// Reading them costs three HMACs a key: elsewhere, and not on the thread of requests.
//
// Pure. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "identity/keyring.h"
#include "model/shared_document.h"

namespace fairlead::identity {

inline constexpr const char* kKeyDocuments = "key";  // the kind; the name is the id

// A key of 32 bytes for one purpose, of the cluster's key.
std::string derive_from_cluster_key(std::string_view cluster_key, std::string_view purpose);

std::string seal_key(const ApiKey& key, std::string_view master);
// kCorrupt: it was not sealed under this master key, or is no key of a cluster.
Result<ApiKey> open_sealed_key(const std::string& body, std::string_view master);

// What a node believes of what the store has.
struct ClusterKeys {
  std::int64_t revision = -1;
  bool is_anew = false;
  Keyring::Keys keys;
  std::size_t left_out = 0;  // what is not believed
  std::string kept;          // what a node keeps of them: a list of their texts
};
ClusterKeys read_cluster_keys(const SharedDocuments& all, std::string_view master);
ClusterKeys read_kept_cluster_keys(const std::string& kept, std::string_view master);

}  // namespace fairlead::identity
