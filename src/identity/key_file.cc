#include "identity/key_file.h"

#include <sodium.h>

#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/read_file.h"
#include "base/replace_file.h"

namespace fairlead::identity {
namespace {

using nlohmann::json;

constexpr std::size_t kMasterBytes = 32;
constexpr std::string_view kIdPrefix = "FLK";
constexpr std::size_t kIdLetters = 20;
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

json to_json(const ApiKey& key) {
  json entry{{"id", key.id},
             {"role", role_name(key.role)},
             {"created_ms", key.created_ms},
             {"note", key.note},
             {"secret_sha256", key.secret_sha256}};
  if (key.tenant) entry["tenant"] = *key.tenant;
  if (key.expires_ms) entry["expires_ms"] = *key.expires_ms;
  return entry;
}

ApiKey from_json(const json& entry) {
  ApiKey key;
  key.id = entry.at("id").get<std::string>();
  const auto role = role_named(entry.at("role").get<std::string>());
  if (!role) throw std::invalid_argument("role is none of reader, invoker, deployer, operator");
  key.role = *role;
  key.created_ms = entry.at("created_ms").get<std::int64_t>();
  key.note = entry.at("note").get<std::string>();
  key.secret_sha256 = entry.at("secret_sha256").get<std::string>();
  if (entry.contains("tenant")) key.tenant = entry.at("tenant").get<std::string>();
  if (entry.contains("expires_ms")) key.expires_ms = entry.at("expires_ms").get<std::int64_t>();
  return key;
}

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
    for (const json& entry : document.at("keys")) keys.push_back(from_json(entry));
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

std::string fresh_key_id() {
  std::string id(kIdPrefix);
  for (const char byte : random_bytes(kIdLetters)) id += kAlphabet[static_cast<unsigned char>(byte) % kAlphabet.size()];
  return id;
}

Result<Keyring> KeyFile::load() const {
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
  Keyring keyring(*std::move(master));
  if (!kept) return keyring;
  auto keys = parse_keys(*kept, keys_path);
  if (!keys) return fail(keys.error());
  if (Status restored = keyring.restore(*std::move(keys)); !restored) {
    return fail(restored.error().code, "{}: {}", keys_path, restored.error().message);
  }
  return keyring;
}

Status KeyFile::save(const Keyring& keyring) const {
  json keys = json::array();
  for (const ApiKey& key : keyring.keys()) keys.push_back(to_json(key));
  const std::string digest = digest_of(keys);
  const json document{{"version", 1}, {"keys", std::move(keys)}, {"blake2b", digest}};
  return replace_file(folder_, "keys.json", document.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Status KeyFile::ensure_operator_key(Keyring& keyring, std::int64_t now_ms) const {
  if (const auto token = read_token(operator_key_path())) {
    if (keyring.find(token->substr(0, token->find('.'))) != nullptr) return {};
  }
  const auto issued =
      keyring.issue(fresh_key_id(), {.role = Role::kOperator, .note = "made by the first start"}, now_ms);
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
