// How a function's configuration names a secret: the value of an environment variable that is `{{resolve:secret:NAME}}` or
// `{{resolve:secret-file:NAME}}`, as a whole. What the configuration keeps, shows and logs is this text. When an instance starts, the
// secret is in the variable; or it is in a file that only this instance sees, and the variable has the file's path.
//
// Example: Environment.Variables.DB_PASSWORD = "{{resolve:secret:db-password}}". With DB_PASSWORD_FILE =
// "{{resolve:secret-file:db-password}}" the variable is /run/secrets/db-password there.
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

inline constexpr const char* kSecretsDir = "/run/secrets";  // of an instance

struct SecretReference {
  std::string_view name;
  bool is_file = false;
};
// None: the value is the variable's own. REQUIRES: validate_reference() took it.
std::optional<SecretReference> referred_secret(std::string_view value);

// A secret as a file in kSecretsDir.
struct SecretFile {
  std::string name;
  std::string value;
  bool operator==(const SecretFile&) const = default;
};

// kInvalidArgument: the value begins as a reference and is none. `variable` is for the error.
Status validate_reference(std::string_view variable, std::string_view value);

}  // namespace fairlead
