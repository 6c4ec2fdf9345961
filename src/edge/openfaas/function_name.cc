#include "edge/openfaas/function_name.h"

#include "model/function.h"
#include "model/tenant.h"

namespace fairlead::openfaas {
namespace {

constexpr std::size_t kQuoted = 128;

bool means_default(std::string_view space) {
  return space.empty() || space == kOwnNamespace || space == kUsualNamespace;
}

}  // namespace

FunctionName split_name(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

Result<std::string> tenant_of_namespace(const Principal& who, std::string_view space) {
  if (means_default(space)) return who.tenant.value_or(kDefaultTenant);
  if (Status valid = validate_tenant(space); !valid) {
    return fail(Errc::kInvalidArgument, "namespace is '{}'; it must be {}, {}, or the name of a tenant: {}",
                space.substr(0, kQuoted), kOwnNamespace, kUsualNamespace, valid.error().message);
  }
  if (who.sees(space)) return std::string(space);
  return fail(Errc::kForbidden, "namespace is '{}'; {} is a key of tenant '{}'", space, who.name, *who.tenant);
}

std::string namespace_of(const std::string& tenant) {
  return tenant == kDefaultTenant ? std::string(kOwnNamespace) : tenant;
}

Error no_such_function(const FunctionName& name) {
  const std::string space =
      name.space.empty() ? std::string() : " in the namespace '" + name.space.substr(0, kQuoted) + "'";
  return {Errc::kNotFound, fmt::format("there is no function '{}'{}", name.name.substr(0, kQuoted), space)};
}

Result<FunctionRecord> find_function(NodeService& node, const Principal& who, const FunctionName& name) {
  const auto tenant = tenant_of_namespace(who, name.space);
  if (!tenant || !validate_function_name(name.name)) return fail(no_such_function(name));
  auto record = node.get_function(name.name);
  if (!record || tenant_of(record->config.tags) != *tenant) return fail(no_such_function(name));
  return record;
}

}  // namespace fairlead::openfaas
