#include "node/secrets.h"

#include <algorithm>

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
  const auto put = put_secrets(secrets, tenant_of(config.tags), environment);
  return put ? Status() : Status(fail(put.error()));
}

Result<std::vector<SecretFile>> put_secrets(const SecretSource& secrets, const std::string& tenant,
                                            std::map<std::string, std::string>& environment) {
  std::vector<SecretFile> files;
  std::size_t bytes = 0;
  for (auto& [variable, value] : environment) {
    const auto reference = referred_secret(value);
    if (!reference) continue;
    const std::string name(reference->name);
    const bool is_file = reference->is_file;
    auto secret = secret_for(secrets, tenant, variable, name);
    if (!secret) return fail(secret.error());
    bytes += secret->size();
    if (bytes > kMaxSecretsBytes) {
      return fail(Errc::kInvalidArgument,
                  "Environment.Variables: '{}': with this one its secrets have {} bytes, the most of a function is {}",
                  variable, bytes, kMaxSecretsBytes);
    }
    if (!is_file) {
      value = *std::move(secret);
      continue;
    }
    value = fmt::format("{}/{}", kSecretsDir, name);
    const bool is_there =
        std::any_of(files.begin(), files.end(), [&](const SecretFile& file) { return file.name == name; });
    if (!is_there) files.push_back({name, *std::move(secret)});
  }
  return files;
}

}  // namespace fairlead
