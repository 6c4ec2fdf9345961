// Secrets that functions refer to (model/secret_reference.h): checked when a function is made, put in place when an instance starts.
//
// Plain functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/function.h"
#include "model/secret_reference.h"

namespace fairlead {

// (tenant, name) -> the secret. kNotFound: there is none.
using SecretSource = std::function<Result<std::string>(const std::string&, const std::string&)>;

// Whether all that the configuration refers to is there. kInvalidArgument names the variable and the secret.
Status check_secrets(const SecretSource& secrets, const FunctionConfig& config);

// Puts the secrets of the tenant in the places that refer to them; those that are wanted as files are returned, one of each name. The
// error names the variable and the secret, never a value.
// kInvalidArgument: one is missing, or they have more than kMaxSecretsBytes together.
Result<std::vector<SecretFile>> put_secrets(const SecretSource& secrets, const std::string& tenant,
                                            std::map<std::string, std::string>& environment);

}  // namespace fairlead
