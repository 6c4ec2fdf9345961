// How a function's configuration names a secret: the value of an environment variable that is `{{resolve:secret:NAME}}`, as a
// whole. What the configuration keeps, shows and logs is this text; an instance gets the secret in its place when it starts.
//
// Example: Environment.Variables.DB_PASSWORD = "{{resolve:secret:db-password}}".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

inline constexpr std::size_t kMaxSecretNameLength = 64;
inline constexpr std::size_t kMaxSecretBytes = 16 << 10;
// Of all secrets in one environment: with everything else it goes to the sandbox in one message.
inline constexpr std::size_t kMaxSecretsBytes = 32 << 10;

// 1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit.
Status validate_secret_name(std::string_view name);

// The name in a reference; empty: the value is the variable's own. REQUIRES: validate_reference() took it.
std::optional<std::string_view> referred_secret(std::string_view value);

// kInvalidArgument: the value begins as a reference and is none. `variable` is for the error.
Status validate_reference(std::string_view variable, std::string_view value);

}  // namespace fairlead
