#include "model/version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/function.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostWeights = 4;
constexpr std::size_t kMaxDescriptionLength = 256;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

bool is_number(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status validate_alias_name(std::string_view name) {
  const bool is_valid = !name.empty() && name.size() <= kMaxAliasNameLength && !is_number(name) &&
                        std::all_of(name.begin(), name.end(), is_name_character);
  if (is_valid) return {};
  return fail(Errc::kInvalidArgument,
              "an alias' Name is '{}'; it must be 1 to {} letters, digits, '-' and '_', and no number",
              name.substr(0, 2 * kMaxAliasNameLength), kMaxAliasNameLength);
}

Status validate_weights(const FunctionAlias& alias) {
  const auto& weights = alias.weights;
  if (weights.empty()) return {};
  if (alias.version == 0 || weights.contains(0)) {
    return fail(Errc::kInvalidArgument,
                "RoutingConfig: calls are divided among published versions, and {} is none; publish it first",
                kLatestVersion);
  }
  if (weights.size() > kMostWeights) {
    return fail(Errc::kInvalidArgument,
                "RoutingConfig.AdditionalVersionWeights has {} versions; it may have at most {}", weights.size(),
                kMostWeights);
  }
  double sum = 0;
  for (const auto& [version, weight] : weights) {
    if (version == alias.version) {
      return fail(
          Errc::kInvalidArgument,
          "RoutingConfig.AdditionalVersionWeights names version {}, which FunctionVersion is: it has what is left",
          version);
    }
    if (!(weight > 0 && weight <= 1)) {
      return fail(
          Errc::kInvalidArgument,
          "RoutingConfig.AdditionalVersionWeights: the weight of version {} is {}; it must be above 0, and at most 1",
          version, weight);
    }
    sum += weight;
  }
  if (sum <= 1 + 1e-9) return {};
  return fail(Errc::kInvalidArgument, "RoutingConfig.AdditionalVersionWeights: the weights are {} together; at most 1",
              sum);
}

// 64 bits in which each bit of the text has a part: FNV-1a, and the mixing of MurmurHash3's end.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

}  // namespace

Status validate_alias(const FunctionAlias& alias) {
  if (Status valid = validate_alias_name(alias.name); !valid) return valid;
  if (alias.description.size() > kMaxDescriptionLength) {
    return fail(Errc::kInvalidArgument, "Description has {} bytes; it may have at most {}", alias.description.size(),
                kMaxDescriptionLength);
  }
  return validate_weights(alias);
}

std::uint64_t choose_version(const FunctionAlias& alias, std::string_view request_id) {
  if (alias.weights.empty()) return alias.version;
  const double point = static_cast<double>(hash_of(request_id) >> 11) * 0x1p-53;  // from 0 to below 1
  double from = 1;
  for (const auto& [version, weight] : alias.weights) {
    from -= weight;
    if (point >= from) return version;
  }
  return alias.version;
}

Result<QualifiedName> qualified_name_from(const std::string& name_or_arn) {
  const std::size_t colon = name_or_arn.rfind(':');
  auto bare = function_name_from(name_or_arn);
  if (bare) {
    const bool names_latest = colon != std::string::npos && name_or_arn.substr(colon + 1) == kLatestVersion;
    return QualifiedName{*std::move(bare), names_latest ? std::string(kLatestVersion) : ""};
  }
  if (bare.error().code != Errc::kNotFound || colon == std::string::npos) return fail(bare.error());
  std::string qualifier = name_or_arn.substr(colon + 1);
  if (Status valid = validate_qualifier(qualifier); !valid) return fail(valid.error());
  auto name = function_name_from(name_or_arn.substr(0, colon));
  if (!name) return fail(name.error());
  return QualifiedName{*std::move(name), std::move(qualifier)};
}

Status validate_qualifier(std::string_view qualifier) {
  if (qualifier == kLatestVersion || version_number(qualifier) > 0) return {};
  if (validate_alias_name(qualifier)) return {};
  return fail(Errc::kInvalidArgument, "Qualifier is '{}'; it must be {}, the number of a version or an alias' name",
              qualifier.substr(0, 2 * kMaxAliasNameLength), kLatestVersion);
}

std::string version_name(std::uint64_t version) {
  return version == 0 ? std::string(kLatestVersion) : fmt::format("{}", version);
}

std::uint64_t version_number(std::string_view qualifier) {
  std::uint64_t number = 0;
  const char* const end = qualifier.data() + qualifier.size();
  const auto [read, error] = std::from_chars(qualifier.data(), end, number);
  return error == std::errc() && read == end && qualifier.front() != '0' ? number : 0;
}

std::string version_arn(const std::string& function, std::uint64_t version) {
  return version == 0 ? function_arn(function) : fmt::format("{}:{}", function_arn(function), version);
}

}  // namespace fairlead
