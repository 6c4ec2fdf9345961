#include "model/function.h"

#include "model/autoscale_tag.h"
#include "model/samples_tag.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/spelling.h"
#include "model/cut_tag.h"
#include "model/egress_list.h"
#include "model/mig_tag.h"
#include "model/model_consent.h"
#include "model/model_tags.h"
#include "model/provisioned_tag.h"
#include "model/secret_reference.h"
#include "model/volume.h"
#include "model/warmth_tags.h"

namespace fairlead {

namespace {

constexpr std::string_view kArnPrefix = "arn:aws:lambda:us-east-1:000000000000:function:";
constexpr std::string_view kLatest = "$LATEST";
constexpr std::size_t kMaxDescriptionLength = 256;
constexpr std::size_t kMaxHandlerLength = 128;
constexpr std::size_t kMaxTagKeyLength = 128;
constexpr std::size_t kMaxTagValueLength = 256;
constexpr int kMaxGpuMemoryMib = 1 << 20;
constexpr int kMaxObjectiveMs = 3'600'000;

// Each brings its own `bootstrap`; language runtimes are not part of a node.
constexpr std::array<std::string_view, 3> kRuntimes{"provided.al2023", "provided.al2", "provided"};

// Set by the platform for every function.
constexpr std::array<std::string_view, 13> kReservedVariables{"_HANDLER",
                                                              "_X_AMZN_TRACE_ID",
                                                              "AWS_REGION",
                                                              "AWS_DEFAULT_REGION",
                                                              "AWS_EXECUTION_ENV",
                                                              "AWS_ACCESS_KEY_ID",
                                                              "AWS_SECRET_ACCESS_KEY",
                                                              "AWS_SESSION_TOKEN",
                                                              "AWS_ACCESS_KEY",
                                                              "AWS_SECRET_KEY",
                                                              "LAMBDA_TASK_ROOT",
                                                              "LAMBDA_RUNTIME_DIR",
                                                              "AWS_CONTAINER_CREDENTIALS_FULL_URI"};
constexpr std::string_view kReservedVariablePrefix = "AWS_LAMBDA_";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_character(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '_';
}
bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

Status validate_range(std::string_view field, int value, int least, int most, std::string_view unit) {
  if (value >= least && value <= most) return {};
  return fail(Errc::kInvalidArgument, "{} is {}; it must be between {} and {} {}", field, value, least, most, unit);
}

Status validate_length(std::string_view field, const std::string& value, std::size_t most) {
  if (value.size() <= most) return {};
  return fail(Errc::kInvalidArgument, "{} has {} bytes; it may have at most {}", field, value.size(), most);
}

Status validate_variable_name(const std::string& name) {
  const bool is_identifier =
      !name.empty() && (is_letter(name[0]) || name[0] == '_') &&
      std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  if (!is_identifier) {
    return fail(Errc::kInvalidArgument, "Environment.Variables: '{}' is not a name of letters, digits and '_'", name);
  }
  if (std::find(kReservedVariables.begin(), kReservedVariables.end(), name) != kReservedVariables.end() ||
      name.starts_with(kReservedVariablePrefix)) {
    return fail(Errc::kInvalidArgument, "Environment.Variables: '{}' is reserved; the platform sets it", name);
  }
  return {};
}

Status validate_environment(const std::map<std::string, std::string>& environment) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : environment) {
    if (Status status = validate_variable_name(name); !status) return status;
    if (has_nul(value)) return fail(Errc::kInvalidArgument, "Environment.Variables: '{}' contains a NUL", name);
    if (Status status = validate_reference(name, value); !status) return status;
    bytes += name.size() + value.size();
  }
  if (bytes <= kMaxEnvironmentBytes) return {};
  return fail(Errc::kInvalidArgument, "Environment.Variables: names and values have {} bytes; they may have at most {}",
              bytes, kMaxEnvironmentBytes);
}

Status validate_tags(const std::map<std::string, std::string>& tags) {
  if (tags.size() > kMaxTags) {
    return fail(Errc::kInvalidArgument, "Tags: {} tags; at most {} are possible", tags.size(), kMaxTags);
  }
  for (const auto& [key, value] : tags) {
    if (key.empty() || key.size() > kMaxTagKeyLength) {
      return fail(Errc::kInvalidArgument, "Tags: key '{}' has {} bytes; 1 to {} are possible", key, key.size(),
                  kMaxTagKeyLength);
    }
    if (key.starts_with("aws:")) return fail(Errc::kInvalidArgument, "Tags: key '{}': 'aws:' is reserved", key);
    if (Status status = validate_length("Tags: value of " + key, value, kMaxTagValueLength); !status) return status;
  }
  return {};
}

Status validate_package(const FunctionConfig& config) {
  const auto contract = config.tags.find(kContractTag);
  if (config.package_type == PackageType::kImage) {
    if (!config.handler.empty()) {
      return fail(Errc::kInvalidArgument, "Handler is '{}'; an image has none, use ImageConfig.Command",
                  config.handler);
    }
    if (contract != config.tags.end() && contract->second != "lambda" && contract->second != "http" &&
        contract->second != "openfaas") {
      return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be lambda, http or openfaas", kContractTag,
                  contract->second);
    }
    return validate_overrides(config.image_config);
  }
  if (!config.image_config.empty()) {
    return fail(Errc::kInvalidArgument, "ImageConfig is set, but PackageType is Zip; it is for PackageType Image");
  }
  if (contract == config.tags.end()) return {};
  return fail(Errc::kInvalidArgument, "tag {} is '{}', but PackageType is Zip; it is for PackageType Image",
              kContractTag, contract->second);
}

// A GPU setting as the author wrote it, and where: the tag wins over the variable.
struct Setting {
  std::string source;
  std::string text;
};

std::optional<Setting> find_setting(const FunctionConfig& config, const std::string& tag, const std::string& variable) {
  if (const auto it = config.tags.find(tag); it != config.tags.end()) return Setting{"tag " + tag, it->second};
  const auto it = config.environment.find(variable);
  if (it == config.environment.end()) return std::nullopt;
  return Setting{"variable " + variable, it->second};
}

template <typename T>
Result<T> parse_setting(const Setting& setting, T least, T most) {
  T value{};
  const char* last = setting.text.data() + setting.text.size();
  const auto [end, error] = std::from_chars(setting.text.data(), last, value);
  if (error == std::errc() && end == last && value >= least && value <= most) return value;
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be a number between {} and {}", setting.source, setting.text,
              least, most);
}

constexpr std::string_view kQuotaRequestTag = "gpu:quota-request";
constexpr std::string_view kQuotaLimitTag = "gpu:quota-limit";
constexpr std::string_view kReplicasTag = "gpu:replicas";
constexpr std::string_view kObjectiveTag = "gpu:objective-ms";
constexpr std::int64_t kLastMillisecond = 253'402'300'799'999;  // of the year 9999

Status refuse_unknown_settings(const FunctionConfig& config) {
  constexpr std::string_view kTags[] = {
      "gpu:memory-mib", "gpu:compute-percent", kQuotaRequestTag, kQuotaLimitTag, kReplicasTag,    "gpu:weight",
      "gpu:tenant",     kObjectiveTag,         kAutoscaleTag,    kSamplesTag,    kLendsModelsTag, kTakesModelsTag,
      kUnloadedAtTag,   kVolumesTag,           kCutKernelsTag,   kEgressTag,     kPinTag,         kKeepTag,
      kProvisionedTag,  kModelInputsTag,       kModelOutputsTag, kBatchTag,      kMigProfileTag};
  for (const auto& [key, value] : config.tags) {
    if (!key.starts_with("gpu:") || std::find(std::begin(kTags), std::end(kTags), key) != std::end(kTags)) continue;
    return fail(Errc::kInvalidArgument, "tag {} is not known{}; the gpu: tags are {}", key,
                did_you_mean(key, {std::begin(kTags), std::end(kTags)}), fmt::join(kTags, ", "));
  }
  return {};
}

std::optional<Setting> find_tag(const FunctionConfig& config, std::string_view tag) {
  const auto it = config.tags.find(std::string(tag));
  if (it == config.tags.end()) return std::nullopt;
  return Setting{fmt::format("tag {}", tag), it->second};
}

// The value of the tag, or what it is where nobody says.
Result<int> number_in_tag(const FunctionConfig& config, std::string_view tag, int least, int most, int otherwise) {
  const auto setting = find_tag(config, tag);
  return setting ? parse_setting<int>(*setting, least, most) : otherwise;
}

Status read_quota(const FunctionConfig& config, Share& share) {
  const Result<int> request = number_in_tag(config, kQuotaRequestTag, 0, 100, share.request_percent);
  if (!request) return fail(request.error());
  const Result<int> limit = number_in_tag(config, kQuotaLimitTag, 1, 100, share.limit_percent);
  if (!limit) return fail(limit.error());
  if (*request > *limit) {
    return fail(Errc::kInvalidArgument, "tag {} is '{}'; it must be at most {}, which is {}", kQuotaRequestTag,
                *request, kQuotaLimitTag, *limit);
  }
  share.request_percent = *request;
  share.limit_percent = *limit;
  return {};
}

Status check_unloaded_at(const FunctionConfig& config) {
  const auto setting = find_tag(config, kUnloadedAtTag);
  if (!setting) return {};
  const auto seconds = parse_setting<std::int64_t>(*setting, 0, kLastMillisecond);
  return seconds ? Status() : Status(fail(seconds.error()));
}

// "N" or "MIN:MAX".
Status read_replicas(const FunctionConfig& config, const Share& share, Replicas& replicas) {
  const auto setting = find_tag(config, kReplicasTag);
  if (!setting) return {};
  const auto wrong = [&] {
    return fail(Errc::kInvalidArgument,
                "tag {} is '{}'; it must be N between 1 and {}, or MIN:MAX with MIN between 0 and MAX", kReplicasTag,
                setting->text, kMaxReplicas);
  };
  const std::size_t colon = setting->text.find(':');
  const std::string first = setting->text.substr(0, colon);
  const std::string second = colon == std::string::npos ? first : setting->text.substr(colon + 1);
  const Result<int> least = parse_setting<int>({setting->source, first}, 0, kMaxReplicas);
  const Result<int> most = parse_setting<int>({setting->source, second}, 1, kMaxReplicas);
  if (!least || !most || *least > *most) return wrong();
  if (*least == 0 && !share.is_best_effort()) {
    return fail(Errc::kInvalidArgument,
                "tag {} is '{}'; MIN must be at least 1 where {} is above 0: the time is reserved for an instance",
                kReplicasTag, setting->text, kQuotaRequestTag);
  }
  replicas = {.least = static_cast<std::size_t>(*least), .most = static_cast<std::size_t>(*most)};
  return {};
}

std::vector<std::string> split_at_colons(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t colon; (colon = text.find(':', begin)) != std::string::npos; begin = colon + 1) {
    parts.push_back(text.substr(begin, colon - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Index of the name in name[:qualifier], account:function:name[:qualifier] or
// arn:aws:lambda:region:account:function:name[:qualifier].
std::optional<std::size_t> name_index(const std::vector<std::string>& parts) {
  const std::size_t count = parts.size();
  if ((count == 7 || count == 8) && parts[0] == "arn" && parts[2] == "lambda" && parts[5] == "function") return 6;
  if ((count == 3 || count == 4) && parts[1] == "function") return 2;
  if (count <= 2) return 0;
  return std::nullopt;
}

}  // namespace

Status validate_function_name(const std::string& name) {
  const bool is_valid = !name.empty() && name.size() <= kMaxFunctionNameLength &&
                        std::all_of(name.begin(), name.end(), is_name_character);
  if (is_valid) return {};
  return fail(Errc::kInvalidArgument, "FunctionName is '{}'; it must be 1 to {} letters, digits, '-' and '_'",
              name.substr(0, 2 * kMaxFunctionNameLength), kMaxFunctionNameLength);
}

Status validate_config(const FunctionConfig& config) {
  Status status = validate_range("MemorySize", config.memory_mib, kMinMemoryMib, kMaxMemoryMib, "MiB");
  if (!status) return status;
  status = validate_range("Timeout", config.timeout_seconds, kMinTimeoutSeconds, kMaxTimeoutSeconds, "seconds");
  if (!status) return status;
  status = validate_range("EphemeralStorage.Size", config.ephemeral_storage_mib, kMinEphemeralStorageMib,
                          kMaxEphemeralStorageMib, "MiB");
  if (!status) return status;
  if (status = validate_length("Description", config.description, kMaxDescriptionLength); !status) return status;
  if (status = validate_length("Handler", config.handler, kMaxHandlerLength); !status) return status;
  if (has_nul(config.handler)) return fail(Errc::kInvalidArgument, "Handler contains a NUL");
  if (status = validate_package(config); !status) return status;
  if (config.package_type == PackageType::kZip &&
      std::find(kRuntimes.begin(), kRuntimes.end(), config.runtime) == kRuntimes.end()) {
    return fail(Errc::kInvalidArgument,
                "Runtime is '{}'; it must be provided.al2023, provided.al2 or provided: code with an executable "
                "`bootstrap` at its root",
                config.runtime);
  }
  if (status = validate_environment(config.environment); !status) return status;
  return validate_tags(config.tags);
}

Result<GpuSettings> gpu_settings(const FunctionConfig& config) {
  if (Status status = refuse_unknown_settings(config); !status) return fail(status.error());
  GpuSettings settings;
  if (const auto setting = find_setting(config, "gpu:memory-mib", "GPU_MEMORY_MIB")) {
    const auto value = parse_setting<int>(*setting, 1, kMaxGpuMemoryMib);
    if (!value) return fail(value.error());
    settings.share.memory = mib(*value);
  }
  if (const auto setting = find_setting(config, "gpu:compute-percent", "GPU_COMPUTE_PERCENT")) {
    const auto value = parse_setting<int>(*setting, 1, 100);
    if (!value) return fail(value.error());
    settings.share.width_percent = *value;
  }
  if (const auto setting = find_setting(config, "gpu:weight", "GPU_WEIGHT")) {
    const auto value = parse_setting<double>(*setting, 0.01, 100.0);
    if (!value) return fail(value.error());
    settings.weight = *value;
  }
  if (Status time = check_unloaded_at(config); !time) return fail(time.error());
  if (const auto held = held_as(config.tags); !held) return fail(held.error());
  if (const auto kept = provisioned_in(config.tags); !kept) return fail(kept.error());
  if (const auto model = model_of(config); !model) return fail(model.error());
  if (const auto batch = batch_rule_of(config); !batch) return fail(batch.error());
  settings.tenant = tenant_of(config.tags);
  if (Status valid = validate_tenant(settings.tenant); !valid) {
    return fail(Errc::kInvalidArgument, "tag {}: {}", kTenantTag, valid.error().message);
  }
  if (const auto consent = model_consent(config.tags); !consent) return fail(consent.error());
  if (const auto cut = may_cut_kernels(config.tags); !cut) return fail(cut.error());
  auto mig_profile = mig_profile_in(config.tags);
  if (!mig_profile) return fail(mig_profile.error());
  settings.mig_profile = *std::move(mig_profile);
  if (const auto objective = find_tag(config, kObjectiveTag)) {
    const auto value = parse_setting<int>(*objective, 1, kMaxObjectiveMs);
    if (!value) return fail(value.error());
    settings.objective_ms = *value;
  }
  if (Status quota = read_quota(config, settings.share); !quota) return fail(quota.error());
  if (Status read = read_replicas(config, settings.share, settings.replicas); !read) return fail(read.error());
  return settings;
}

std::string image_contract(const FunctionConfig& config) {
  const auto contract = config.tags.find(kContractTag);
  return contract == config.tags.end() ? "" : contract->second;
}

Result<std::string> function_name_from(const std::string& name_or_arn) {
  const std::vector<std::string> parts = split_at_colons(name_or_arn);
  const auto index = name_index(parts);
  if (!index) {
    return fail(Errc::kInvalidArgument, "FunctionName is '{}'; it must be a name, a partial ARN or a function's ARN",
                name_or_arn.substr(0, 256));
  }
  const std::string& name = parts[*index];
  if (Status status = validate_function_name(name); !status) return fail(status.error());
  if (*index + 1 < parts.size() && parts[*index + 1] != kLatest) {
    return fail(Errc::kNotFound, "Function not found: {}:{}; here a function is named without a version and an alias",
                function_arn(name), parts[*index + 1]);
  }
  return name;
}

std::string function_arn(const std::string& name) {
  return std::string(kArnPrefix) + name;
}

bool is_same_process(const FunctionConfig& one, const FunctionConfig& other) {
  constexpr std::string_view kOfTheNode[] = {kQuotaRequestTag, kQuotaLimitTag, kReplicasTag, kObjectiveTag,
                                             "gpu:weight",     kPinTag,        kKeepTag,     kProvisionedTag};
  const auto of_process = [&](FunctionConfig config) {
    for (const std::string_view tag : kOfTheNode) config.tags.erase(std::string(tag));
    // Tags of the author's own say nothing to anybody here.
    std::erase_if(config.tags,
                  [](const auto& tag) { return !tag.first.starts_with("gpu:") && !tag.first.starts_with("image:"); });
    config.description.clear();
    return config;
  };
  return of_process(one) == of_process(other);
}

}  // namespace fairlead
