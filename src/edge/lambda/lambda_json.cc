#include "edge/lambda/lambda_json.h"

#include <fmt/chrono.h>

#include <chrono>
#include <utility>

#include "base/base64.h"
#include "model/version.h"

namespace fairlead {

using nlohmann::json;

namespace {

#if defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "x86_64";
#endif

Status refuse(const JsonFields& fields, const char* field, std::string_view why) {
  if (!fields.is_set(field)) return {};
  return fail(Errc::kInvalidArgument, "{} is not supported: {}", field, why);
}

void assign(const std::optional<std::string_view>& value, std::string& field) {
  if (value) field = *value;
}

void assign(const std::optional<int>& value, int& field) {
  if (value) field = *value;
}

// AWS's own name for a GPU memory limit, in GiB. Kept as the tag that says the same in MiB.
void apply_accelerator(JsonFields& fields, FunctionConfig& config) {
  auto accelerator = fields.object("AcceleratorConfig");
  if (!accelerator) return;
  const auto gib = accelerator->integer("AcceleratorMemorySize");
  if (gib) config.tags["gpu:memory-mib"] = fmt::format("{}", static_cast<std::int64_t>(*gib) * 1024);
}

ImageOverrides read_overrides(JsonFields& fields) {
  ImageOverrides overrides;
  overrides.entry_point = fields.string_list("EntryPoint").value_or(std::vector<std::string>());
  overrides.command = fields.string_list("Command").value_or(std::vector<std::string>());
  assign(fields.string("WorkingDirectory"), overrides.working_directory);
  return overrides;
}

json overrides_json(const FunctionConfig& config) {
  const ImageOverrides& overrides = config.image_config;
  json result = json::object();
  if (!overrides.entry_point.empty()) result["EntryPoint"] = overrides.entry_point;
  if (!overrides.command.empty()) result["Command"] = overrides.command;
  if (!overrides.working_directory.empty()) result["WorkingDirectory"] = overrides.working_directory;
  return result;
}

Result<CodeSource> read_image(JsonFields& fields, const std::string& path, Status& status, bool may_name_paths) {
  for (const char* field : {"ZipFile", "Folder", "InPlace"}) {
    if (!fields.is_set(field)) continue;
    return fail(Errc::kInvalidArgument, "{0}{1} is set, but PackageType is Image: send {0}ImageUri", path, field);
  }
  const auto uri = fields.string("ImageUri");
  if (!status) return fail(status.error());
  const auto reference = parse_image_reference(path + "ImageUri", uri.value_or(""));
  if (!reference) return fail(reference.error());
  if (!reference->layout_dir.empty() && !may_name_paths) {
    return fail(Errc::kInvalidArgument,
                "{}ImageUri is '{}': a folder is for clients on the node's own machine; name an image in a registry",
                path, *uri);
  }
  return CodeSource{.zip = {}, .folder = {}, .in_place = false, .image = std::string(*uri)};
}

}  // namespace

std::string lambda_timestamp(std::int64_t epoch_ms) {
  const auto seconds = static_cast<std::time_t>(epoch_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}+0000", fmt::gmtime(seconds), epoch_ms % 1000);
}

json configuration_json(const FunctionRecord& record) {
  const FunctionConfig& config = record.config;
  const bool is_image = config.package_type == PackageType::kImage;
  json result{{"FunctionName", record.name},
              {"FunctionArn", version_arn(record.name, record.version)},
              {"Role", config.role},
              {"CodeSize", record.code_bytes},
              {"Description", config.description},
              {"Timeout", config.timeout_seconds},
              {"MemorySize", config.memory_mib},
              {"LastModified", lambda_timestamp(record.last_modified_ms)},
              {"CodeSha256", record.code_sha256},
              {"Version", version_name(record.version)},
              {"RevisionId", record.revision_id},
              {"State", "Active"},
              {"LastUpdateStatus", "Successful"},
              {"PackageType", is_image ? "Image" : "Zip"},
              {"Architectures", json::array({kArchitecture})},
              {"EphemeralStorage", {{"Size", config.ephemeral_storage_mib}}},
              {"TracingConfig", {{"Mode", "PassThrough"}}}};
  if (is_image) {
    if (!config.image_config.empty()) result["ImageConfigResponse"] = {{"ImageConfig", overrides_json(config)}};
  } else {
    result["Runtime"] = config.runtime;
    result["Handler"] = config.handler;
  }
  if (!config.environment.empty()) result["Environment"] = {{"Variables", config.environment}};
  return result;
}

json function_json(const FunctionRecord& record) {
  json code{{"RepositoryType", "Local"}};
  if (record.in_place) code.update({{"Folder", record.code_path}, {"InPlace", true}});
  if (record.image) {
    code = {
        {"RepositoryType", "OCI"}, {"ImageUri", record.image->uri}, {"ResolvedImageUri", record.image->resolved_uri}};
  }
  json result{{"Configuration", configuration_json(record)}, {"Code", std::move(code)}};
  if (!record.config.tags.empty()) result["Tags"] = record.config.tags;
  if (record.reserved_concurrency) {
    result["Concurrency"] = {{"ReservedConcurrentExecutions", *record.reserved_concurrency}};
  }
  return result;
}

Status check_supported(const json& body) {
  Status status;
  JsonFields fields(body, status);
  constexpr std::pair<const char*, std::string_view> kUnsupported[] = {
      {"Layers", "put their content into the package"},
      {"FileSystemConfigs", "functions see their package and a private /tmp"}};
  for (const auto& [field, why] : kUnsupported) {
    if (Status refused = refuse(fields, field, why); !refused) return refused;
  }
  for (const std::string& architecture : fields.string_list("Architectures").value_or(std::vector<std::string>())) {
    if (architecture != kArchitecture) {
      return fail(Errc::kInvalidArgument, "Architectures is '{}'; this node runs {}", architecture, kArchitecture);
    }
  }
  return status;
}

Result<PackageType> read_package_type(const json& body) {
  Status status;
  const auto type = JsonFields(body, status).string("PackageType");
  if (!status) return fail(status.error());
  if (!type || *type == "Zip") return PackageType::kZip;
  if (*type == "Image") return PackageType::kImage;
  return fail(Errc::kInvalidArgument, "PackageType is '{}'; it must be Zip or Image", *type);
}

Status apply_configuration(const json& body, FunctionConfig& config) {
  if (Status supported = check_supported(body); !supported) return supported;
  Status status;
  JsonFields fields(body, status);
  if (config.package_type == PackageType::kImage) {
    for (const char* field : {"Handler", "Runtime"}) {
      if (!fields.is_set(field)) continue;
      return fail(Errc::kInvalidArgument, "{} is set, but PackageType is Image: the image names its program", field);
    }
  }
  assign(fields.string("Description"), config.description);
  assign(fields.string("Role"), config.role);
  assign(fields.string("Handler"), config.handler);
  assign(fields.string("Runtime"), config.runtime);
  assign(fields.integer("MemorySize"), config.memory_mib);
  assign(fields.integer("Timeout"), config.timeout_seconds);
  if (auto storage = fields.object("EphemeralStorage")) assign(storage->integer("Size"), config.ephemeral_storage_mib);
  if (auto environment = fields.object("Environment")) {
    config.environment = environment->strings("Variables").value_or(std::map<std::string, std::string>());
  }
  if (auto image = fields.object("ImageConfig")) config.image_config = read_overrides(*image);
  apply_accelerator(fields, config);
  return status;
}

Result<CodeSource> read_code(const json& body, const std::string& path, PackageType type, bool may_name_paths) {
  Status status;
  JsonFields fields(body, status, path);
  for (const char* field : {"S3Bucket", "S3Key"}) {
    if (fields.is_set(field)) {
      return fail(Errc::kInvalidArgument, "{}{} is not supported: send the package itself as {}ZipFile", path, field,
                  path);
    }
  }
  if (type == PackageType::kImage) return read_image(fields, path, status, may_name_paths);
  if (fields.is_set("ImageUri")) {
    return fail(Errc::kInvalidArgument, "{0}ImageUri is set, but PackageType is Zip: send {0}ZipFile", path);
  }
  CodeSource code;
  const auto zip = fields.string("ZipFile");
  assign(fields.string("Folder"), code.folder);
  code.in_place = fields.is_set("InPlace");
  if (!status) return fail(status.error());
  const bool has_zip = zip && !zip->empty();
  if (has_zip == !code.folder.empty()) {
    return fail(Errc::kInvalidArgument, "{}ZipFile: send the package, a zip file in base64", path);
  }
  if (!has_zip && !may_name_paths) {
    return fail(Errc::kInvalidArgument, "{}Folder is for operators on the node's own machine; send {}ZipFile", path,
                path);
  }
  if (code.in_place && has_zip) {
    return fail(Errc::kInvalidArgument, "{0}InPlace is set, but what is sent is {0}ZipFile: it goes with {0}Folder",
                path);
  }
  if (!has_zip) return code;
  auto bytes = base64_decode(path + "ZipFile", *zip);
  if (!bytes) return fail(bytes.error());
  if (bytes->size() > kMaxZippedCodeBytes) {
    return fail(Errc::kTooLarge, "{}ZipFile has {} bytes; it may have at most {}", path, bytes->size(),
                kMaxZippedCodeBytes);
  }
  code.zip = std::move(*bytes);
  return code;
}

}  // namespace fairlead
