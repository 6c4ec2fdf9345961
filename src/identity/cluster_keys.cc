#include "identity/cluster_keys.h"

#include <exception>

#include "identity/hmac.h"
#include "identity/key_json.h"

namespace fairlead::identity {
namespace {

using nlohmann::json;

constexpr const char* kSeal = "seal";

// Objects are written with their fields in the order of the alphabet.
std::string seal_of(const json& fields, std::string_view master) {
  const std::string text = fields.dump(-1, ' ', true, json::error_handler_t::replace);
  return to_hex(as_text(hmac_sha256(master, fmt::format("fairlead cluster's key 1\n{}", text))));
}

}  // namespace

std::string derive_from_cluster_key(std::string_view cluster_key, std::string_view purpose) {
  return std::string(as_text(hmac_sha256(cluster_key, fmt::format("fairlead derived key 1\n{}", purpose))));
}

std::string seal_key(const ApiKey& key, std::string_view master) {
  json fields = to_json(key);
  fields[kSeal] = seal_of(fields, master);
  return fields.dump(-1, ' ', true, json::error_handler_t::replace);
}

Result<ApiKey> open_sealed_key(const std::string& body, std::string_view master) {
  try {
    json fields = json::parse(body);
    const std::string seal = fields.at(kSeal).get<std::string>();
    fields.erase(kSeal);
    if (!are_equal(seal_of(fields, master), seal)) {
      return fail(Errc::kCorrupt, "it was sealed under another cluster key, or was changed");
    }
    return key_from_json(fields);
  } catch (const std::exception& error) {
    return fail(Errc::kCorrupt, "{}", error.what());
  }
}

}  // namespace fairlead::identity
