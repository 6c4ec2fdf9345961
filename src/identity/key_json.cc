#include "identity/key_json.h"

#include <stdexcept>

namespace fairlead::identity {

using nlohmann::json;

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

ApiKey key_from_json(const json& entry) {
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

}  // namespace fairlead::identity
