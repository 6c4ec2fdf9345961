#include "store/image_json.h"

#include "store/json_fields.h"

namespace fairlead::store {
namespace {

using nlohmann::json;

Result<std::string> to_text(const json& value) {
  try {
    return value.dump();
  } catch (const json::exception&) {
    return fail(Errc::kInvalidArgument, "the image's texts must be valid UTF-8");
  }
}

Status read_environment(const json& object, std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) return fail(Errc::kCorrupt, "environment.{} is not a string", name);
    environment[name] = value.get<std::string>();
  }
  return {};
}

Status read_id(std::int64_t value, std::string_view field, std::uint32_t& id) {
  if (value < 0 || value > kMaxImageId)
    return fail(Errc::kCorrupt, "{} is {}, the bound is {}", field, value, kMaxImageId);
  id = static_cast<std::uint32_t>(value);
  return {};
}

}  // namespace

Result<std::string> encode_image(const FunctionImage& image) {
  const ImageDefaults& defaults = image.defaults;
  return to_text({{"uri", image.uri},
                  {"resolved_uri", image.resolved_uri},
                  {"digest", image.digest},
                  {"bytes", image.bytes},
                  {"entry_point", defaults.entry_point},
                  {"command", defaults.command},
                  {"working_directory", defaults.working_directory},
                  {"environment", defaults.environment},
                  {"uid", defaults.uid},
                  {"gid", defaults.gid}});
}

Result<std::string> encode_overrides(const ImageOverrides& overrides) {
  return to_text({{"entry_point", overrides.entry_point},
                  {"command", overrides.command},
                  {"working_directory", overrides.working_directory}});
}

Result<FunctionImage> decode_image(const std::string& text) {
  const Result<json> parsed = parse_json_object(text, "image");
  if (!parsed) return fail(parsed.error());
  FunctionImage image;
  ImageDefaults& defaults = image.defaults;
  std::int64_t uid = 0, gid = 0;
  FieldReader fields(*parsed, "");
  fields.read("uri", image.uri).read("resolved_uri", image.resolved_uri).read("digest", image.digest);
  fields.read("bytes", image.bytes).read("entry_point", defaults.entry_point).read("command", defaults.command);
  fields.read("working_directory", defaults.working_directory).read("uid", uid).read("gid", gid);
  const json* environment = fields.object("environment");
  Status status = fields.status();
  if (status && environment != nullptr) status = read_environment(*environment, defaults.environment);
  if (status) status = read_id(uid, "uid", defaults.uid);
  if (status) status = read_id(gid, "gid", defaults.gid);
  if (!status) return fail(status.error());
  return image;
}

Result<ImageOverrides> decode_overrides(const std::string& text) {
  const Result<json> parsed = parse_json_object(text, "image_config");
  if (!parsed) return fail(parsed.error());
  ImageOverrides overrides;
  FieldReader fields(*parsed, "");
  fields.read("entry_point", overrides.entry_point).read("command", overrides.command);
  fields.read("working_directory", overrides.working_directory);
  if (!fields.status()) return fail(fields.status().error());
  return overrides;
}

}  // namespace fairlead::store
