#include "store/oci_image.h"

#include <charconv>
#include <optional>

#include "store/json_fields.h"

namespace fairlead::store {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxEnvironmentEntries = 1000;
constexpr std::size_t kMaxEnvironmentTotal = 24 << 10;

tl::unexpected<Error> bad_image(const Status& status) {
  return fail(Errc::kInvalidArgument, "the image is malformed: {}", status.error().message);
}

Result<json> parse_document(std::string_view text, std::string_view what) {
  if (text.size() > kMaxImageDocumentBytes) {
    return fail(Errc::kInvalidArgument, "the image is malformed: its {} has {} bytes; it may have at most {}", what,
                text.size(), kMaxImageDocumentBytes);
  }
  Result<json> parsed = parse_json_object(text, what);
  if (!parsed) return fail(Errc::kInvalidArgument, "the image is malformed: {}", parsed.error().message);
  return parsed;
}

Result<std::string> digest_of(const json& descriptor, const std::string& path) {
  std::string digest;
  FieldReader fields(descriptor, path + ".");
  fields.read("digest", digest);
  if (!fields.status()) return bad_image(fields.status());
  if (!is_sha256_digest(digest)) {
    return fail(Errc::kInvalidArgument, "the image is malformed: {}.digest is '{}', not sha256: and 64 digits", path,
                digest.substr(0, 100));
  }
  return digest;
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

Status read_environment(const std::vector<std::string>& entries, std::map<std::string, std::string>& environment) {
  std::size_t bytes = 0;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || has_nul(entry)) {
      return fail(Errc::kInvalidArgument, "the image is malformed: config.Env has '{}', not NAME=value",
                  entry.substr(0, 100));
    }
    environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    bytes += entry.size() + 1;
  }
  if (entries.size() > kMaxEnvironmentEntries || bytes > kMaxEnvironmentTotal) {
    return fail(Errc::kInvalidArgument,
                "the image's config.Env has {} entries of {} bytes; at most {} of {} are possible", entries.size(),
                bytes, kMaxEnvironmentEntries, kMaxEnvironmentTotal);
  }
  return {};
}

Status check_defaults(ImageDefaults& defaults) {
  const ImageOverrides same{defaults.entry_point, defaults.command, defaults.working_directory};
  if (Status status = validate_overrides(same); !status) {
    return fail(Errc::kInvalidArgument, "the image's own configuration: {}", status.error().message);
  }
  return {};
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > kMaxImageId) return std::nullopt;
  return value;
}

std::string_view take_field(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return field;
}

struct Account {
  std::uint32_t id = 0;
  std::uint32_t group = 0;  // of a user
};

// A line of passwd or group: name:password:id[:group].
std::optional<Account> find_account(std::string_view file, std::string_view name, std::optional<std::uint32_t> id) {
  while (!file.empty()) {
    std::string_view line = take_field(file, '\n');
    const std::string_view line_name = take_field(line, ':');
    take_field(line, ':');
    const auto line_id = number(take_field(line, ':'));
    const auto group = number(take_field(line, ':'));
    if (line_id && (id ? *line_id == *id : line_name == name)) return Account{*line_id, group.value_or(0)};
  }
  return std::nullopt;
}

tl::unexpected<Error> unknown_user(const std::string& user, std::string_view what) {
  return fail(Errc::kInvalidArgument,
              "the image's User is '{}': {} is neither a number of at most {} nor a name that the image has",
              user.substr(0, 100), what, kMaxImageId);
}

}  // namespace

Result<std::string> manifest_digest(std::string_view index_json) {
  const Result<json> index = parse_document(index_json, "index.json");
  if (!index) return fail(index.error());
  FieldReader fields(*index, "");
  const json* manifests = fields.array("manifests");
  if (!fields.status()) return bad_image(fields.status());
  if (manifests == nullptr || manifests->size() != 1 || !manifests->front().is_object()) {
    return fail(Errc::kInvalidArgument, "the image is malformed: index.json names {} manifests, not one",
                manifests == nullptr ? 0 : manifests->size());
  }
  return digest_of(manifests->front(), "manifests[0]");
}

Result<ImageManifest> parse_manifest(std::string_view manifest_json) {
  const Result<json> document = parse_document(manifest_json, "manifest");
  if (!document) return fail(document.error());
  FieldReader fields(*document, "");
  const json* config = fields.object("config");
  const json* layers = fields.array("layers");
  if (!fields.status()) return bad_image(fields.status());
  if (config == nullptr || layers == nullptr) {
    return fail(Errc::kInvalidArgument, "the image is malformed: its manifest has no {}",
                config == nullptr ? "config" : "layers");
  }
  ImageManifest manifest;
  Result<std::string> digest = digest_of(*config, "config");
  if (!digest) return fail(digest.error());
  manifest.config_digest = *std::move(digest);
  for (const json& layer : *layers) {
    std::int64_t size = -1;
    if (layer.is_object()) FieldReader(layer, "").read("size", size);
    if (size < 0 || size > kMaxImageBytes - manifest.layer_bytes) {
      return fail(Errc::kInvalidArgument, "the image's layers: a size is missing, or they exceed {} bytes together",
                  kMaxImageBytes);
    }
    manifest.layer_bytes += size;
  }
  return manifest;
}

Result<ImageConfiguration> parse_configuration(std::string_view config_json, std::string_view architecture) {
  const Result<json> document = parse_document(config_json, "configuration");
  if (!document) return fail(document.error());
  std::string image_architecture, os;
  FieldReader top(*document, "");
  const json* config = top.read("architecture", image_architecture).read("os", os).object("config");
  if (!top.status()) return bad_image(top.status());
  if (os != "linux" || image_architecture != architecture) {
    return fail(Errc::kInvalidArgument, "the image is for {}/{}; this node runs linux/{}", os, image_architecture,
                architecture);
  }
  ImageConfiguration result;
  if (config == nullptr) return result;
  std::vector<std::string> environment;
  FieldReader fields(*config, "config.");
  fields.read("Entrypoint", result.defaults.entry_point).read("Cmd", result.defaults.command);
  fields.read("WorkingDir", result.defaults.working_directory).read("User", result.user).read("Env", environment);
  if (!fields.status()) return bad_image(fields.status());
  Status status = read_environment(environment, result.defaults.environment);
  if (status) status = check_defaults(result.defaults);
  if (!status) return fail(status.error());
  return result;
}

Result<ImageUser> resolve_user(const std::string& user, std::string_view passwd, std::string_view group) {
  ImageUser result;
  if (user.empty()) return result;
  std::string_view rest = user;
  const std::string_view user_part = take_field(rest, ':');
  const auto uid = number(user_part);
  const std::optional<Account> account = find_account(passwd, user_part, uid);
  if (!uid && !account) return unknown_user(user, user_part);
  result.uid = uid ? *uid : account->id;
  result.gid = account ? account->group : 0;
  if (rest.empty()) return result;
  const auto gid = number(rest);
  const std::optional<Account> group_account = find_account(group, rest, gid);
  if (!gid && !group_account) return unknown_user(user, rest);
  result.gid = gid ? *gid : group_account->id;
  return result;
}

}  // namespace fairlead::store
