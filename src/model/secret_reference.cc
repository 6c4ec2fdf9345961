#include "model/secret_reference.h"

#include <algorithm>
#include <cctype>

namespace fairlead {
namespace {

constexpr std::string_view kAnyReference = "{{resolve:";
constexpr std::string_view kBegin = "{{resolve:secret:", kBeginFile = "{{resolve:secret-file:";
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

std::optional<SecretReference> referred_secret(std::string_view value) {
  if (!value.ends_with(kEnd)) return std::nullopt;
  for (const bool is_file : {false, true}) {
    const std::string_view begin = is_file ? kBeginFile : kBegin;
    if (!value.starts_with(begin)) continue;
    return SecretReference{value.substr(begin.size(), value.size() - begin.size() - kEnd.size()), is_file};
  }
  return std::nullopt;
}

Status validate_reference(std::string_view variable, std::string_view value) {
  if (!value.starts_with(kAnyReference)) return {};
  const auto reference = referred_secret(value);
  if (reference && validate_secret_name(reference->name)) return {};
  return fail(Errc::kInvalidArgument,
              "Environment.Variables: '{}' is '{}'; a reference is {}NAME{} or {}NAME{} and nothing else", variable,
              value.substr(0, 2 * kMaxSecretNameLength), kBegin, kEnd, kBeginFile, kEnd);
}

}  // namespace fairlead
