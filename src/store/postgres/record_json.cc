#include "store/postgres/record_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/image_json.h"
#include "store/json_fields.h"

namespace fairlead::postgres {
namespace {

using StringMap = std::map<std::string, std::string>;

std::string relative_to(const std::string& state_dir, const std::string& path) {
  const std::string prefix = state_dir + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

std::string absolute_below(const std::string& state_dir, const std::string& path) {
  return path.empty() || path.starts_with("/") ? path : state_dir + "/" + path;
}

Result<StringMap> read_map(const nlohmann::json* object, std::string_view field, const std::string& function) {
  StringMap map;
  if (object == nullptr) return map;
  for (const auto& [key, value] : object->items()) {
    if (!value.is_string())
      return fail(Errc::kCorrupt, "stored {} of function {} has a value that is no text", field, function);
    map[key] = value.get<std::string>();
  }
  return map;
}

Status read_image(const std::string& image, const std::string& overrides, FunctionRecord& record) {
  if (image.empty()) return {};
  auto read = store::decode_image(image);
  if (!read) return fail(read.error());
  auto set = store::decode_overrides(overrides);
  if (!set) return fail(set.error());
  record.image = *std::move(read);
  record.config.image_config = *std::move(set);
  record.config.package_type = PackageType::kImage;
  return {};
}

}  // namespace

Result<std::string> encode_record(const FunctionRecord& record, const std::string& state_dir) {
  const FunctionConfig& config = record.config;
  nlohmann::json json = {{"description", config.description},
                         {"role", config.role},
                         {"handler", config.handler},
                         {"runtime", config.runtime},
                         {"memory_mib", config.memory_mib},
                         {"timeout_seconds", config.timeout_seconds},
                         {"ephemeral_storage_mib", config.ephemeral_storage_mib},
                         {"environment", config.environment},
                         {"tags", config.tags},
                         {"code_sha256", record.code_sha256},
                         {"code_bytes", record.code_bytes},
                         {"code_path", relative_to(state_dir, record.code_path)},
                         {"revision_id", record.revision_id},
                         {"last_modified_ms", record.last_modified_ms},
                         {"seats", record.seats}};
  if (record.reserved_concurrency) json["reserved_concurrency"] = *record.reserved_concurrency;
  if (record.image) {
    auto image = store::encode_image(*record.image);
    if (!image) return fail(image.error());
    auto overrides = store::encode_overrides(config.image_config);
    if (!overrides) return fail(overrides.error());
    json["image"] = *std::move(image);
    json["image_config"] = *std::move(overrides);
  }
  try {
    return json.dump();
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::kInvalidArgument, "the configuration of function {} must be valid UTF-8", record.name);
  }
}

Result<FunctionRecord> decode_record(const std::string& name, const std::string& text, const std::string& state_dir) {
  const auto json = store::parse_json_object(text, "stored function " + name);
  if (!json) return fail(json.error());
  FunctionRecord record{.name = name};
  FunctionConfig& config = record.config;
  std::int64_t memory = config.memory_mib, timeout = config.timeout_seconds, storage = config.ephemeral_storage_mib;
  std::int64_t reserved = 0;
  std::string path, image, overrides;
  store::FieldReader fields(*json, "stored function " + name + ": ");
  fields.read("description", config.description).read("role", config.role).read("handler", config.handler);
  fields.read("runtime", config.runtime).read("memory_mib", memory).read("timeout_seconds", timeout);
  fields.read("ephemeral_storage_mib", storage).read("code_sha256", record.code_sha256);
  fields.read("code_bytes", record.code_bytes).read("code_path", path).read("revision_id", record.revision_id);
  fields.read("last_modified_ms", record.last_modified_ms).read("seats", record.seats);
  fields.read("reserved_concurrency", reserved).read("image", image).read("image_config", overrides);
  const nlohmann::json* const environment = fields.object("environment");
  const nlohmann::json* const tags = fields.object("tags");
  if (!fields.status()) return fail(fields.status().error());
  auto environment_map = read_map(environment, "environment", name);
  if (!environment_map) return fail(environment_map.error());
  auto tag_map = read_map(tags, "tags", name);
  if (!tag_map) return fail(tag_map.error());
  config.environment = *std::move(environment_map);
  config.tags = *std::move(tag_map);
  config.memory_mib = static_cast<int>(memory);
  config.timeout_seconds = static_cast<int>(timeout);
  config.ephemeral_storage_mib = static_cast<int>(storage);
  record.code_path = absolute_below(state_dir, path);
  if (json->contains("reserved_concurrency")) record.reserved_concurrency = static_cast<int>(reserved);
  if (Status read = read_image(image, overrides, record); !read) {
    return fail(Errc::kCorrupt, "stored image of function {}: {}", name, read.error().message);
  }
  return record;
}

std::string code_digest(const FunctionRecord& record) {
  if (record.image) return "";
  return record.code_path.substr(record.code_path.rfind('/') + 1);
}

}  // namespace fairlead::postgres
