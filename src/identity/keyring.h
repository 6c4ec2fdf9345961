// The keys that a node has given out, and who holds them.
//
// Idea. A key is an id and a secret. Its secret is HMAC(the node's master key, the key's id): the node need not keep it, and can
// still check a signature made with it (SigV4), which a hash alone does not allow. What is kept per key is the hash of the secret,
// so a keyring that is read with another master key says so instead of refusing every call. Who takes the kept keys has no secret;
// who takes the master key has all.
//
// Keys of one node and keys of all nodes of a cluster are of one keyring. They have a master key each, and their ids tell them apart:
// those of all nodes begin with FLC. Any node can check a key of the cluster, and no node can make one that the others did not hear of.
//
// Example: id FLKQ3ZMX2V7T4ABC; as a bearer token "Authorization: Bearer FLKQ3ZMX2V7T4ABC.ie0k..."; for boto3 the id is
// aws_access_key_id and the secret aws_secret_access_key.
//
// As Basic the id is the user and the secret the password; or the user is `admin`, as OpenFaaS's clients begin with, and the password
// the whole token.
//
// Pure: time and fresh ids are given. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "identity/sigv4.h"
#include "model/principal.h"

namespace fairlead::identity {

inline constexpr std::size_t kMostKeys = 10'000;
inline constexpr std::size_t kMostNoteBytes = 256;

struct ApiKey {
  std::string id;
  Role role = Role::kReader;
  std::optional<std::string> tenant;  // empty: all
  std::int64_t created_ms = 0;        // since the epoch
  std::optional<std::int64_t> expires_ms;
  std::string note;           // for people
  std::string secret_sha256;  // hexadecimal

  bool operator==(const ApiKey&) const = default;
};

// Whether a text could be a key's id: 8 to 64 capital letters and digits. No other Principal::name is one.
bool is_key_id(std::string_view text);

inline constexpr std::string_view kNodeKeyPrefix = "FLK", kClusterKeyPrefix = "FLC";
inline bool is_of_cluster(std::string_view id) {
  return id.starts_with(kClusterKeyPrefix);
}

// What a key is to be.
struct KeyRequest {
  Role role = Role::kDeployer;
  std::optional<std::string> tenant;
  std::optional<std::int64_t> expires_ms = std::nullopt;
  std::string note = {};
};

struct IssuedKey {
  ApiKey key;
  std::string secret;  // not kept anywhere: shown once

  std::string token() const { return key.id + "." + secret; }
};

// Whether it is of the scheme Basic, which browsers send by themselves once they know it.
bool is_basic(std::string_view authorization);

// The secret of a key under a master key.
std::string secret_of_key(std::string_view master, std::string_view id);
// Whether the key was made with it.
bool is_genuine(const ApiKey& key, std::string_view master);

class Keyring {
 public:
  using Keys = std::map<std::string, ApiKey, std::less<>>;  // by id

  // `cluster`: the master key of keys of all nodes; empty: there are none.
  explicit Keyring(std::string master, std::string cluster = {})
      : master_(std::move(master)), cluster_(std::move(cluster)) {}

  // Keys that were kept. kCorrupt: the master key is not the one that they were made with; kInvalidArgument: two with one id.
  Status restore(std::vector<ApiKey> keys);

  // kInvalidArgument names the field; kResourceExhausted: kMostKeys are there; kConflict: the id is taken.
  Result<IssuedKey> issue(const std::string& id, const KeyRequest& request, std::int64_t now_ms);
  // A new key like the old one, which goes on for `grace_ms`, or until it would have expired.
  Result<IssuedKey> rotate(const std::string& id, const std::string& new_id, std::int64_t grace_ms,
                           std::int64_t now_ms);
  Status revoke(const std::string& id);
  // In place of all keys of the cluster that are there. REQUIRES: they are of the cluster, and genuine. Takes microseconds for each of the
  // node's own keys, and next to nothing for those of the cluster.
  void replace_cluster(Keys keys);
  // As another keyring, or node, made or changed it. REQUIRES: with this one's master key.
  void put(ApiKey key);

  std::vector<ApiKey> keys() const;  // by id
  const ApiKey* find(std::string_view id) const;

  // What a browser keeps in place of a key: "ID.EXPIRES_MS.MAC". It stands for the key until then, or until the key has gone, and shows
  // nothing of its secret. REQUIRES: the key is there.
  std::string open_session(const std::string& id, std::int64_t expires_ms) const;
  // Whose it is. kUnauthenticated: it is over, or no session of this node.
  Result<Principal> by_session(std::string_view session, std::int64_t now_ms) const;

  // Who sent the request, by its Authorization: "Bearer ID.SECRET", Basic or SigV4. kUnauthenticated says why nobody.
  Result<Principal> authenticate(std::string_view authorization, const SignedRequest& request, std::int64_t now_ms);

 private:
  using SigningScope = std::pair<std::string, std::string>;  // key id, Sigv4::scope()

  std::string secret_of(std::string_view id) const { return secret_of_key(is_of_cluster(id) ? cluster_ : master_, id); }
  void forget_signatures(std::string_view id);
  std::string session_mac(std::string_view id, std::string_view expires_ms) const;
  Result<const ApiKey*> valid_key(std::string_view id, std::int64_t now_ms) const;
  Result<Principal> by_password(std::string_view encoded, std::int64_t now_ms) const;
  Result<Principal> by_token(std::string_view token, std::int64_t now_ms) const;
  Result<Principal> by_signature(std::string_view authorization, const SignedRequest& request, std::int64_t now_ms);
  const Digest& signing_key_of(const Sigv4& parts);

  std::string master_, cluster_;
  Keys keys_;
  std::map<SigningScope, Digest> signing_keys_;  // four HMACs each; at most kMostSigningKeys
};

}  // namespace fairlead::identity
