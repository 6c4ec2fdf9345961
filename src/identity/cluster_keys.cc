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
  if (body.size() > kMostDocumentBytes) return fail(Errc::kCorrupt, "it has {} bytes", body.size());
  try {
    json fields = json::parse(body);
    const std::string seal = fields.at(kSeal).get<std::string>();
    fields.erase(kSeal);
    if (!are_equal(seal_of(fields, master), seal)) {
      return fail(Errc::kCorrupt, "it was sealed under another cluster key, or was changed");
    }
    ApiKey key = key_from_json(fields);
    if (!is_key_id(key.id) || !is_of_cluster(key.id) || !is_genuine(key, master)) {
      return fail(Errc::kCorrupt, "it is no key of this cluster");
    }
    return key;
  } catch (const std::exception& error) {
    return fail(Errc::kCorrupt, "{}", error.what());
  }
}

ClusterKeys read_cluster_keys(const SharedDocuments& all, std::string_view master) {
  ClusterKeys read{.revision = all.revision, .is_anew = all.is_anew, .keys = {}, .kept = {}};
  json kept = json::array();
  for (const SharedDocument& document : all.documents) {
    if (document.kind != kKeyDocuments) continue;
    auto key = open_sealed_key(document.body, master);
    if (!key || key->id != document.name) {
      ++read.left_out;
      continue;
    }
    kept.push_back(document.body);
    read.keys.insert_or_assign(document.name, *std::move(key));
  }
  read.kept = kept.dump(1) + "\n";
  return read;
}

ClusterKeys read_kept_cluster_keys(const std::string& kept, std::string_view master) {
  ClusterKeys read;
  const json document = json::parse(kept, nullptr, /*allow_exceptions=*/false);
  read.left_out = document.is_array() ? 0 : 1;
  for (const json& entry : document.is_array() ? document : json::array()) {
    auto key = entry.is_string() ? open_sealed_key(entry.get<std::string>(), master)
                                 : Result<ApiKey>(fail(Errc::kCorrupt, "no text"));
    if (!key) {
      ++read.left_out;
      continue;
    }
    std::string id = key->id;
    read.keys.insert_or_assign(std::move(id), *std::move(key));
  }
  return read;
}

}  // namespace fairlead::identity
