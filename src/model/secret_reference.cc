#include "model/secret_reference.h"

#include <algorithm>
#include <cctype>

namespace fairlead {
namespace {

constexpr std::string_view kAnyReference = "{{resolve:";
constexpr std::string_view kBegin = "{{resolve:secret:";
constexpr std::string_view kEnd = "}}";

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

Status validate_secret_name(std::string_view name) {
  const bool is_valid = !name.empty() && name.size() <= kMaxSecretNameLength && is_alphanumeric(name.front()) &&
                        std::all_of(name.begin(), name.end(),
                                    [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
  if (is_valid) return {};
  return fail(
      Errc::kInvalidArgument,
      "the name of a secret is '{}'; it must be 1 to {} letters, digits, '.', '_' or '-', and begin with a letter or "
      "a digit",
      name.substr(0, kMaxSecretNameLength), kMaxSecretNameLength);
}

std::optional<std::string_view> referred_secret(std::string_view value) {
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd)) return std::nullopt;
  return value.substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size());
}

Status validate_reference(std::string_view variable, std::string_view value) {
  if (!value.starts_with(kAnyReference)) return {};
  const auto name = referred_secret(value);
  if (name && validate_secret_name(*name)) return {};
  return fail(Errc::kInvalidArgument, "Environment.Variables: '{}' is '{}'; a reference is {}NAME{} and nothing else",
              variable, value.substr(0, 2 * kMaxSecretNameLength), kBegin, kEnd);
}

}  // namespace fairlead
