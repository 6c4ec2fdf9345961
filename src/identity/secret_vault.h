// Secrets of functions: passwords and tokens that an author gives to the node, and that only the author's functions get.
//
// At rest each is sealed with XChaCha20-Poly1305 (libsodium) under the node's secret key, bound to its tenant and name: who changes
// the file can lose a secret, and can neither read it nor give it to another. The key is kept apart where the operator has a place
// for it (SecretKeySource); by default it lies beside them, which protects copies of secrets.json and nothing more.
//
//   secrets.json   {"version", "key_check", "secrets": [{"tenant", "name", "changed_ms", "bytes", "sealed"}]}
//
// A node of a cluster has secrets of all nodes, too (share()). They are sealed under a key of the cluster's and lie in the common store as
// documents; cluster-secrets.json, of the same form, is what was last seen of them. Where there is one of both, that of all nodes counts.
//
// Bounds: a secret 1 to 16,384 bytes; SecretBounds for a tenant and for all together, since every change writes the file anew.
// Thread-safe. set() and remove() wait for the disk, one at a time; who reads does not wait for them.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "model/shared_document.h"

namespace fairlead::identity {

struct SecretBounds {
  std::size_t of_tenant = 256;  // secrets
  std::size_t bytes_in_all = 4 << 20;
};

// Where the key of 32 bytes comes from: the first of these that is given. It is written as 64 hexadecimal digits.
struct SecretKeySource {
  std::string file;                  // a path
  std::vector<std::string> command;  // what it prints: a key management service's client, for example
  std::string credential;            // a path too: systemd's, $CREDENTIALS_DIRECTORY/fairlead-secret-key
  std::string made;                  // made when the first secret is set
};

// kNotFound: nothing is given, and none was made. kInvalidArgument: what is there is no key. The error never has it.
Result<std::string> read_secret_key(const SecretKeySource& source);

struct SecretEntry {
  std::string tenant;
  std::string name;
  std::int64_t changed_ms = 0;
  std::size_t bytes = 0;
  bool is_of_cluster = false;
};

inline constexpr const char* kSecretDocuments = "secret";  // the kind; the name is TENANT/NAME

class SecretVault {
 public:
  // `folder` has secrets.json. kInvalidArgument: the key is not the one with which the secrets were sealed; kCorrupt: the file.
  static Result<std::unique_ptr<SecretVault>> open(std::string folder, SecretKeySource source,
                                                   SecretBounds bounds = {});

  // From now on secrets are set and removed at all nodes. `key`: 32 bytes, the same at all. What `publish` refuses has not happened.
  // REQUIRES: called once, before other threads.
  void share(std::string key, PublishDocuments publish);
  // Secrets of all nodes, as the store has them now. Waits for the disk.
  void adopt(const SharedDocuments& all);

  // In place of one with that name. kInvalidArgument: name or size; kResourceExhausted: the tenant, or all, have too many.
  Status set(const std::string& tenant, const std::string& name, std::string_view value, std::int64_t now_ms);
  Status remove(const std::string& tenant, const std::string& name);              // kNotFound
  std::vector<SecretEntry> list(const std::optional<std::string>& tenant) const;  // empty: of all; by tenant and name

  std::size_t damaged() const { return damaged_; }  // secrets that open() found changed on disk; it logs each

  // kNotFound; kCorrupt: it was changed on disk.
  Result<std::string> reveal(const std::string& tenant, const std::string& name) const;

 private:
  struct Sealed {
    std::int64_t changed_ms = 0;
    std::size_t bytes = 0;
    std::string box;  // nonce and ciphertext
    bool operator==(const Sealed&) const = default;
  };
  using Name = std::pair<std::string, std::string>;  // tenant, name
  using Secrets = std::map<Name, Sealed>;

  SecretVault(std::string folder, SecretKeySource source, SecretBounds bounds)
      : folder_(std::move(folder)), source_(std::move(source)), bounds_(bounds) {}
  struct Cluster {
    std::string key;
    PublishDocuments publish;
    std::int64_t revision = -1;  // of the store, as these secrets have it; guarded by changes_
  };

  Status load();
  void look_for_damage(const std::string& key, const Secrets& secrets);
  Status check_key(const std::string& key, const std::string& stored) const;
  Result<std::string> ensure_key();
  Status check_room(const Secrets& secrets, const Name& name, std::size_t bytes) const;
  Status save(const std::string& key, const Secrets& secrets) const;
  void put_in_use(std::string key, Secrets secrets);
  std::pair<std::string, Secrets> now() const;
  Secrets of_cluster() const;
  static nlohmann::json entry_of(const Name& name, const Sealed& sealed);
  static Status read_entry(const nlohmann::json& entry, Secrets& secrets);  // into them; throws as the library does
  static Status read_entries(const nlohmann::json& document, Secrets& secrets);  // of a file
  static std::string text_of(const std::string& key, const Secrets& secrets);
  Status set_at_all(const Name& name, std::string_view value, std::int64_t now_ms);
  Status remove_at_all(const Name& name);
  void keep_of_cluster(Secrets secrets);

  const std::string folder_;
  const SecretKeySource source_;
  const SecretBounds bounds_;
  std::size_t damaged_ = 0;
  Mutex changes_;                          // held by who changes something, before mutex_
  mutable Mutex mutex_;                    // never while the disk is waited for
  std::string key_ FL_GUARDED_BY(mutex_);  // empty: none yet, and no secrets
  Secrets secrets_ FL_GUARDED_BY(mutex_);
  std::optional<Cluster> cluster_;  // none: all secrets are this node's
  Secrets of_cluster_ FL_GUARDED_BY(mutex_);
};

}  // namespace fairlead::identity
