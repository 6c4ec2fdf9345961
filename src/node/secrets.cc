#include "node/secrets.h"

#include "model/secret_reference.h"

namespace fairlead {
namespace {

Result<std::string> secret_for(const SecretSource& secrets, const std::string& tenant, const std::string& variable,
                               std::string_view name) {
  auto secret = secrets ? secrets(tenant, std::string(name)) : fail(Errc::kNotFound, "this node keeps no secrets");
  if (secret) return secret;
  return fail(Errc::kInvalidArgument, "Environment.Variables: '{}': {}", variable, secret.error().message);
}

}  // namespace

Status check_secrets(const SecretSource& secrets, const FunctionConfig& config) {
  std::map<std::string, std::string> environment = config.environment;
  return put_secrets(secrets, tenant_of(config.tags), environment);
}

Status put_secrets(const SecretSource& secrets, const std::string& tenant,
                   std::map<std::string, std::string>& environment) {
  std::size_t bytes = 0;
  for (auto& [variable, value] : environment) {
    const auto name = referred_secret(value);
    if (!name) continue;
    auto secret = secret_for(secrets, tenant, variable, *name);
    if (!secret) return fail(secret.error());
    value = *std::move(secret);
    bytes += value.size();
    if (bytes > kMaxSecretsBytes) {
      return fail(Errc::kInvalidArgument,
                  "Environment.Variables: '{}': with this one its secrets have {} bytes, the most of a function is {}",
                  variable, bytes, kMaxSecretsBytes);
    }
  }
  return {};
}

}  // namespace fairlead
