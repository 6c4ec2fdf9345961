#include "edge/openfaas/deployment.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <ctime>
#include <utility>

#include "edge/json_body.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/quantity.h"
#include "model/autoscale_tag.h"
#include "model/image.h"
#include "model/secret_reference.h"
#include "model/tenant.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;

// Tags that keep what was said.
constexpr std::string_view kLabel = "openfaas:label/", kAnnotation = "openfaas:annotation/";
constexpr std::string_view kLimit = "openfaas:limit/", kRequest = "openfaas:request/";
constexpr std::string_view kReplicas = "gpu:replicas";
constexpr const char* kProcess = "fprocess";
constexpr const char* kExecTimeout = "exec_timeout";
constexpr std::size_t kQuoted = 128;

using Strings = std::map<std::string, std::string>;

Result<std::string> percent_of_fraction(std::string_view field, std::string_view text, int least) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1;
  const int percent = is_number ? static_cast<int>(std::lround(value * 100)) : -1;
  if (percent >= least) return std::to_string(percent);
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be a part of the time between {} and 1, such as 0.8", field,
              text.substr(0, kQuoted), least / 100.0);
}

Result<std::string> mib_of_quantity(std::string_view field, std::string_view text) {
  const auto bytes = parse_quantity(field, text);
  if (!bytes) return fail(bytes.error());
  return std::to_string((*bytes + (1 << 20) - 1) >> 20);
}

struct Tag {
  std::string key, value;
};

// The tag that a label or an annotation stands for; none: it is for people.
Result<std::optional<Tag>> tag_of(const std::string& key, const std::string& value) {
  if (key.starts_with("faasshare/")) {
    const std::string name = key.substr(key.find('/') + 1);
    const auto as = [](const char* tag, Result<std::string> text) -> Result<std::optional<Tag>> {
      if (!text) return fail(text.error());
      return Tag{tag, *std::move(text)};
    };
    if (name == "sm_partition") return Tag{"gpu:compute-percent", value};
    if (name == "quota_request") return as("gpu:quota-request", percent_of_fraction(key, value, 0));
    if (name == "quota_limit") return as("gpu:quota-limit", percent_of_fraction(key, value, 1));
    if (name == "gpu_mem") return as("gpu:memory-mib", mib_of_quantity(key, value));
    return fail(Errc::kInvalidArgument,
                "{} is not known; there are faasshare/sm_partition, quota_limit, quota_request and gpu_mem",
                key.substr(0, kQuoted));
  }
  // Kubernetes takes no colon in a label.
  if (key.starts_with("gpu:") || key.starts_with("gpu.")) return Tag{"gpu:" + key.substr(4), value};
  if (key == kContractTag || key == "image.contract") return Tag{kContractTag, value};
  return std::nullopt;
}

Status add_tags(std::string_view what, std::string_view prefix, const Strings& said, Strings& tags) {
  for (const auto& [key, value] : said) {
    tags[std::string(prefix) + key] = value;
    auto tag = tag_of(key, value);
    if (!tag) return fail(Errc::kInvalidArgument, "{}: {}", what, tag.error().message);
    if (!*tag) continue;
    if ((*tag)->key == kTenantTag) {
      return fail(Errc::kInvalidArgument, "{}: {} is set; the namespace says whose a function is", what, key);
    }
    const auto known = tags.try_emplace((*tag)->key, (*tag)->value).first;
    if (known->second == (*tag)->value) continue;
    return fail(Errc::kInvalidArgument, "{}: {} says that {} is '{}', and something else that it is '{}'", what,
                key.substr(0, kQuoted), (*tag)->key, (*tag)->value.substr(0, kQuoted),
                known->second.substr(0, kQuoted));
  }
  return {};
}

Result<int> scale_label(const Strings& labels, const char* name, int least, int otherwise) {
  const auto label = labels.find(name);
  if (label == labels.end()) return otherwise;
  const std::string& text = label->second;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= kMaxReplicas) return value;
  return fail(Errc::kInvalidArgument, "labels: {} is '{}'; it must be a number between {} and {}", name,
              text.substr(0, kQuoted), least, kMaxReplicas);
}

// com.openfaas.scale.min, .max and .zero are MIN:MAX of gpu:replicas. Who says gpu:replicas has said it better.
Status add_replicas(const Strings& labels, Strings& tags) {
  const auto least = scale_label(labels, "com.openfaas.scale.min", 0, 0);
  if (!least) return fail(least.error());
  const auto most = scale_label(labels, "com.openfaas.scale.max", 1, kMaxReplicas);
  if (!most) return fail(most.error());
  const auto zero = labels.find("com.openfaas.scale.zero");
  if (zero != labels.end() && zero->second != "true" && zero->second != "false") {
    return fail(Errc::kInvalidArgument, "labels: com.openfaas.scale.zero is '{}'; it must be true or false",
                zero->second.substr(0, kQuoted));
  }
  if (*least > *most) {
    return fail(Errc::kInvalidArgument,
                "labels: com.openfaas.scale.min is {}, which is more than com.openfaas.scale.max, {}", *least, *most);
  }
  const bool may_go = zero != labels.end() && zero->second == "true";
  const int kept = may_go ? 0 : *least;
  if (kept > 0 || *most < kMaxReplicas) tags.try_emplace(std::string(kReplicas), fmt::format("{}:{}", kept, *most));
  return {};
}

Status add_secrets(const std::vector<std::string>& names, Strings& environment) {
  for (const std::string& name : names) {
    if (Status valid = validate_secret_name(name); !valid)
      return fail(Errc::kInvalidArgument, "secrets: {}", valid.error().message);
    const std::string variable = secret_variable(name), reference = "{{resolve:secret-file:" + name + "}}";
    const auto known = environment.try_emplace(variable, reference).first;
    if (known->second == reference) continue;
    return fail(Errc::kInvalidArgument,
                "secrets: '{}' is given in the variable {}, which another secret or envVars has already", name,
                variable);
  }
  return {};
}

Status read_process(JsonFields& fields, FunctionConfig& config) {
  if (const auto process = fields.string("envProcess"); process && !process->empty()) {
    config.environment[kProcess] = std::string(*process);
  }
  const auto timeout = config.environment.find(kExecTimeout);
  if (timeout == config.environment.end()) return {};
  const auto duration = parse_go_duration("envVars: exec_timeout", timeout->second);
  if (!duration) return fail(duration.error());
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(*duration).count();
  if (seconds < kMinTimeoutSeconds || seconds > kMaxTimeoutSeconds) {
    return fail(Errc::kInvalidArgument, "envVars: exec_timeout is '{}'; it must be between {} and {} seconds",
                timeout->second.substr(0, kQuoted), kMinTimeoutSeconds, kMaxTimeoutSeconds);
  }
  config.timeout_seconds = static_cast<int>(seconds);
  return {};
}

// Less than the least that a function has is the least: a limit that is larger does no harm.
Status read_memory(const Strings& limits, FunctionConfig& config) {
  const auto memory = limits.find("memory");
  if (memory == limits.end()) return {};
  const auto bytes = parse_quantity("limits.memory", memory->second);
  if (!bytes) return fail(bytes.error());
  const std::int64_t needed = (*bytes + (1 << 20) - 1) >> 20;
  if (needed > kMaxMemoryMib) {
    return fail(Errc::kInvalidArgument, "limits.memory is '{}'; it must be at most {}Mi",
                memory->second.substr(0, kQuoted), kMaxMemoryMib);
  }
  config.memory_mib = std::max(kMinMemoryMib, static_cast<int>(needed));
  return {};
}

Status read_resources(JsonFields& fields, FunctionConfig& config) {
  const Strings limits = fields.strings("limits").value_or(Strings());
  const Strings requests = fields.strings("requests").value_or(Strings());
  for (const auto* said : {&limits, &requests}) {
    for (const auto& [name, text] : *said) {
      if (name == "nvidia.com/gpu" && text != "0" && text != "1") {
        return fail(Errc::kInvalidArgument,
                    "limits.{} is '{}'; a function has one GPU, or a part of it: say 1, or annotations gpu:*", name,
                    text.substr(0, kQuoted));
      }
      if (name == "cpu") {
        if (const auto cpu = parse_quantity("limits.cpu", text); !cpu) return fail(cpu.error());
      }
    }
  }
  for (const auto& [name, text] : limits) config.tags[std::string(kLimit) + name] = text;
  for (const auto& [name, text] : requests) config.tags[std::string(kRequest) + name] = text;
  return read_memory(limits, config);
}

Status read_identity(JsonFields& fields, Status& status, Deployment& deployment) {
  deployment.service = fields.string("service").value_or("");
  deployment.space = fields.string("namespace").value_or("");
  deployment.image = fields.string("image").value_or("");
  if (!status) return status;
  if (Status valid = validate_function_name(deployment.service); !valid) {
    return fail(Errc::kInvalidArgument, "service: {}", valid.error().message);
  }
  if (deployment.image.empty()) return fail(Errc::kInvalidArgument, "image is missing: name an OCI image");
  if (const auto reference = parse_image_reference("image", deployment.image); !reference)
    return fail(reference.error());
  return {};
}

Strings with_prefix(const Strings& tags, std::string_view prefix) {
  Strings found;
  for (const auto& [key, value] : tags) {
    if (key.starts_with(prefix)) found[key.substr(prefix.size())] = value;
  }
  return found;
}

json usage_json(const FunctionCounts& counts) {
  return {{"cpu", 0}, {"totalMemoryBytes", counts.memory.count()}};
}

}  // namespace

Result<Deployment> read_deployment(const json& body) {
  Deployment deployment;
  deployment.config.package_type = PackageType::kImage;
  FunctionConfig& config = deployment.config;
  Status status;
  JsonFields fields(body, status);
  if (Status read = read_identity(fields, status, deployment); !read) return fail(read.error());
  config.environment = fields.strings("envVars").value_or(Strings());
  const auto secrets = fields.string_list("secrets").value_or(std::vector<std::string>());
  const Strings labels = fields.strings("labels").value_or(Strings());
  const Strings annotations = fields.strings("annotations").value_or(Strings());
  if (Status read = read_process(fields, config); status && !read) return fail(read.error());
  if (Status read = read_resources(fields, config); status && !read) return fail(read.error());
  if (!status) return fail(status.error());
  if (Status added = add_secrets(secrets, config.environment); !added) return fail(added.error());
  if (Status added = add_tags("labels", kLabel, labels, config.tags); !added) return fail(added.error());
  if (Status added = add_tags("annotations", kAnnotation, annotations, config.tags); !added) return fail(added.error());
  if (Status added = add_replicas(labels, config.tags); !added) return fail(added.error());
  if (Status valid = validate_config(config); !valid) return fail(valid.error());
  if (const auto gpu = gpu_settings(config); !gpu) return fail(gpu.error());
  if (const auto scaled = autoscale_of(config); !scaled) return fail(scaled.error());
  return deployment;
}

std::string secret_variable(std::string_view name) {
  std::string variable = "SECRET_";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    variable += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return variable;
}

FunctionCounts counts_of(const FunctionRecord& record, const FunctionStatus* status) {
  FunctionCounts counts;
  if (status == nullptr) return counts;
  counts.invocations = status->stats.invocations;
  const std::size_t ready = status->instances_idle + status->instances_busy;
  const auto settings = gpu_settings(record.config);
  const std::size_t kept = settings ? settings->seats() : 0;
  counts.replicas = std::max({std::size_t{1}, kept, ready + status->instances_starting});
  counts.available = kept > 0 ? std::min(ready, counts.replicas) : std::max(std::size_t{1}, ready);
  counts.memory = status->memory.resident;
  return counts;
}

std::string rfc3339(std::int64_t epoch_ms) {
  const auto seconds = static_cast<std::time_t>(epoch_ms / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), epoch_ms % 1000);
}

json status_json(const FunctionRecord& record, const FunctionCounts& counts, bool with_usage) {
  const FunctionConfig& config = record.config;
  Strings variables = config.environment;
  json secrets = json::array();
  for (const auto& [variable, value] : config.environment) {
    const auto secret = referred_secret(value);
    if (!secret || variable != secret_variable(secret->name)) continue;
    secrets.push_back(secret->name);
    variables.erase(variable);
  }
  const auto process = variables.find(kProcess);
  json status{{"name", record.name},
              {"namespace", namespace_of(tenant_of(config.tags))},
              {"image", record.image ? record.image->uri : std::string()},
              {"envProcess", process == variables.end() ? "" : process->second},
              {"secrets", std::move(secrets)},
              {"labels", with_prefix(config.tags, kLabel)},
              {"annotations", with_prefix(config.tags, kAnnotation)},
              {"readOnlyRootFilesystem", true},
              {"invocationCount", static_cast<double>(counts.invocations)},
              {"replicas", counts.replicas},
              {"availableReplicas", counts.available},
              {"createdAt", rfc3339(record.last_modified_ms)}};
  if (process != variables.end()) variables.erase(process);
  status["envVars"] = std::move(variables);
  for (const auto& [field, prefix] : {std::pair{"limits", kLimit}, std::pair{"requests", kRequest}}) {
    if (Strings said = with_prefix(config.tags, prefix); !said.empty()) status[field] = std::move(said);
  }
  if (with_usage) status["usage"] = usage_json(counts);
  return status;
}

}  // namespace fairlead::openfaas
