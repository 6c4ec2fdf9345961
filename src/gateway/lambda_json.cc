#include "gateway/lambda_json.h"

#include <fmt/chrono.h>

#include <chrono>
#include <utility>

#include "gateway/base64.h"

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

}  // namespace

std::string lambda_timestamp(std::int64_t epoch_ms) {
  const auto seconds = static_cast<std::time_t>(epoch_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}+0000", fmt::gmtime(seconds), epoch_ms % 1000);
}

json configuration_json(const FunctionRecord& record) {
  const FunctionConfig& config = record.config;
  json result{{"FunctionName", record.name},
              {"FunctionArn", function_arn(record.name)},
              {"Runtime", config.runtime},
              {"Role", config.role},
              {"Handler", config.handler},
              {"CodeSize", record.code_bytes},
              {"Description", config.description},
              {"Timeout", config.timeout_seconds},
              {"MemorySize", config.memory_mib},
              {"LastModified", lambda_timestamp(record.last_modified_ms)},
              {"CodeSha256", record.code_sha256},
              {"Version", "$LATEST"},
              {"RevisionId", record.revision_id},
              {"State", "Active"},
              {"LastUpdateStatus", "Successful"},
              {"PackageType", "Zip"},
              {"Architectures", json::array({kArchitecture})},
              {"EphemeralStorage", {{"Size", config.ephemeral_storage_mib}}},
              {"TracingConfig", {{"Mode", "PassThrough"}}}};
  if (!config.environment.empty()) result["Environment"] = {{"Variables", config.environment}};
  return result;
}

json function_json(const FunctionRecord& record) {
  json result{{"Configuration", configuration_json(record)}, {"Code", {{"RepositoryType", "Local"}}}};
  if (!record.config.tags.empty()) result["Tags"] = record.config.tags;
  if (record.reserved_concurrency) {
    result["Concurrency"] = {{"ReservedConcurrentExecutions", *record.reserved_concurrency}};
  }
  return result;
}

Status check_supported(const json& body) {
  Status status;
  JsonFields fields(body, status);
  if (const auto type = fields.string("PackageType"); type && *type != "Zip") {
    return fail(Errc::kInvalidArgument, "PackageType is '{}'; it must be Zip: container images are not supported",
                *type);
  }
  constexpr std::pair<const char*, std::string_view> kUnsupported[] = {
      {"ImageConfig", "functions are zip packages"},
      {"Layers", "put their content into the package"},
      {"FileSystemConfigs", "functions see their package and a private /tmp"},
      {"Publish", "there are no versions but $LATEST"}};
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

Status apply_configuration(const json& body, FunctionConfig& config) {
  if (Status supported = check_supported(body); !supported) return supported;
  Status status;
  JsonFields fields(body, status);
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
  apply_accelerator(fields, config);
  return status;
}

Result<CodeSource> read_code(const json& body, const std::string& path, bool allow_folder) {
  Status status;
  JsonFields fields(body, status, path);
  for (const char* field : {"ImageUri", "S3Bucket", "S3Key"}) {
    if (fields.is_set(field)) {
      return fail(Errc::kInvalidArgument, "{}{} is not supported: send the package itself as {}ZipFile", path, field,
                  path);
    }
  }
  CodeSource code;
  const auto zip = fields.string("ZipFile");
  assign(fields.string("Folder"), code.folder);
  if (!status) return fail(status.error());
  const bool has_zip = zip && !zip->empty();
  if (has_zip == !code.folder.empty()) {
    return fail(Errc::kInvalidArgument, "{}ZipFile: send the package, a zip file in base64", path);
  }
  if (!has_zip && !allow_folder) {
    return fail(Errc::kInvalidArgument, "{}Folder is for clients on the node's own machine; send {}ZipFile", path,
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
