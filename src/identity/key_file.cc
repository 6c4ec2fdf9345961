#include "identity/key_file.h"

#include <sodium.h>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/log.h"
#include "base/read_file.h"
#include "base/replace_file.h"
#include "identity/cluster_keys.h"
#include "identity/key_json.h"

namespace fairlead::identity {
namespace {

using nlohmann::json;

constexpr std::size_t kMasterBytes = 32;
constexpr const char* kClusterFile = "cluster-keys.json";
constexpr std::size_t kIdLetters = 20;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

std::string digest_of(const json& keys) {
  return to_hex(as_text(blake2b(keys.dump(-1, ' ', false, json::error_handler_t::replace))));
}

// A flipped bit in a role, a tenant or a time would be another key that is as good. A file of before this has no digest.
void check_digest(const json& document) {
  if (!document.contains("blake2b") || document.at("blake2b") == digest_of(document.at("keys"))) return;
  throw std::invalid_argument("blake2b is not the digest of keys: the file is damaged, or was changed by hand");
}

// The library's reader throws; what it throws stays here.
Result<std::vector<ApiKey>> parse_keys(const std::string& text, const std::string& path) {
  try {
    std::vector<ApiKey> keys;
    const json document = json::parse(text);
    for (const json& entry : document.at("keys")) keys.push_back(key_from_json(entry));
    check_digest(document);
    return keys;
  } catch (const std::exception& error) {
    return fail(Errc::kCorrupt, "{}: {}; bring back the file that was there, or move it away to begin with no keys",
                path, error.what());
  }
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

std::string fresh_key_id(std::string_view prefix) {
  std::string id(prefix);
  for (const char byte : random_bytes(kIdLetters)) id += kAlphabet[static_cast<unsigned char>(byte) % kAlphabet.size()];
  return id;
}

Result<Keyring> KeyFile::load(const std::string& cluster) const {
  const std::string master_path = folder_ + "/master-key", keys_path = folder_ + "/keys.json";
  Result<std::string> master = read_whole_file(master_path);
  const Result<std::string> kept = read_whole_file(keys_path);
  if (!kept && kept.error().code != Errc::kNotFound) return fail(kept.error());
  if (!master && (master.error().code != Errc::kNotFound || kept)) {
    return fail(Errc::kCorrupt, "{}, with which the keys of {} were made: bring the file back, or move that one away",
                master.error().message, keys_path);
  }
  if (!master) {
    master = random_bytes(kMasterBytes);
    if (Status written = replace_file(folder_, "master-key", *master); !written) return fail(written.error());
  }
  if (master->size() != kMasterBytes) {
    return fail(Errc::kCorrupt, "{} has {} bytes instead of {}", master_path, master->size(), kMasterBytes);
  }
  Keyring keyring(*std::move(master), cluster);
  if (kept) {
    auto keys = parse_keys(*kept, keys_path);
    if (!keys) return fail(keys.error());
    if (Status restored = keyring.restore(*std::move(keys)); !restored) {
      return fail(restored.error().code, "{}: {}", keys_path, restored.error().message);
    }
  }
  if (!cluster.empty()) keyring.replace_cluster(load_cluster(cluster));
  return keyring;
}

// The store has them too, so what cannot be read here keeps nobody from starting.
Keyring::Keys KeyFile::load_cluster(const std::string& cluster) const {
  const std::string path = folder_ + "/" + kClusterFile;
  const auto text = read_whole_file(path);
  if (!text) return {};
  ClusterKeys read = read_kept_cluster_keys(*text, cluster);
  if (read.left_out > 0) {
    spdlog::warn("{}: {} keys of the cluster are damaged, or of another cluster key: they come from the store", path,
                 read.left_out);
  }
  return std::move(read.keys);
}

Status KeyFile::save_cluster(const std::string& kept) const {
  return replace_file(folder_, kClusterFile, kept);
}

Status KeyFile::save(const Keyring& keyring) const {
  json keys = json::array();
  for (const ApiKey& key : keyring.keys()) {
    if (!is_of_cluster(key.id)) keys.push_back(to_json(key));
  }
  const std::string digest = digest_of(keys);
  const json document{{"version", 1}, {"keys", std::move(keys)}, {"blake2b", digest}};
  return replace_file(folder_, "keys.json", document.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Status KeyFile::ensure_operator_key(Keyring& keyring, std::int64_t now_ms) const {
  if (const auto token = read_token(operator_key_path())) {
    const ApiKey* const known = keyring.find(token->substr(0, token->find('.')));
    // One that was rotated ends, now or while the node runs, and would keep its holder out then.
    if (known != nullptr && !known->expires_ms) return {};
  }
  const auto issued =
      keyring.issue(fresh_key_id(kNodeKeyPrefix), {.role = Role::kOperator, .note = "made by the first start"}, now_ms);
  if (!issued) return fail(issued.error());
  if (Status saved = save(keyring); !saved) return saved;
  return replace_file(folder_, "operator-key", issued->key.id + "\n" + issued->secret + "\n");
}

Result<std::string> read_token(const std::string& path) {
  const auto text = read_whole_file(path);
  if (!text) return fail(Errc::kNotFound, "{}", text.error().message);
  const std::size_t end = text->find('\n');
  if (end == std::string::npos || end + 1 == text->size() || text->back() != '\n')
    return fail(Errc::kCorrupt, "{} is not a key's two lines", path);
  return text->substr(0, end) + "." + text->substr(end + 1, text->size() - end - 2);
}

}  // namespace fairlead::identity
