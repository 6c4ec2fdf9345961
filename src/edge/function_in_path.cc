#include "edge/function_in_path.h"

#include "model/function.h"
#include "model/tenant.h"

namespace fairlead {

Result<QualifiedName> qualified_from(const RouteCall& call) {
  auto named = qualified_name_from(call.parameter("function"));
  const std::string_view qualifier = call.target.query_value("Qualifier");
  if (!named || qualifier.empty()) return named;
  if (Status valid = validate_qualifier(qualifier); !valid) return fail(valid.error());
  if (!named->qualifier.empty() && named->qualifier != qualifier) {
    return fail(Errc::kInvalidArgument, "Qualifier is '{}', but FunctionName names '{}'; leave one of them out",
                qualifier, named->qualifier);
  }
  named->qualifier = qualifier;
  return named;
}

Result<std::string> function_from(const RouteCall& call) {
  auto named = qualified_from(call);
  if (!named) return fail(named.error());
  if (named->qualifier.empty() || named->qualifier == kLatestVersion) return std::move(named->name);
  return fail(Errc::kInvalidArgument,
              "Qualifier is '{}': this is of functions, not of their versions and aliases; leave the qualifier out",
              named->qualifier);
}

Result<FunctionRecord> find_function(NodeService& node, const RouteCall& call) {
  const auto name = function_from(call);
  if (!name) return fail(name.error());
  auto record = node.get_function(*name);
  if (record && !call.principal.sees(tenant_of(record->config.tags))) return fail(no_such_function(*name));
  return record;
}

Result<FunctionRecord> find_version(NodeService& node, const RouteCall& call) {
  const auto named = qualified_from(call);
  if (!named) return fail(named.error());
  if (Status seen = check_seen(node, call.principal, named->name); !seen) return fail(seen.error());
  return node.versions().find(named->name, named->qualifier);
}

Error no_such_function(const std::string& name) {
  return {Errc::kNotFound, fmt::format("Function not found: {}", function_arn(name))};
}

Status check_seen(NodeService& node, const Principal& who, const std::string& function) {
  if (!who.tenant) return {};
  const auto record = node.get_function(function);
  if (!record) return fail(record.error());
  if (!who.sees(tenant_of(record->config.tags))) return fail(no_such_function(function));
  return {};
}

}  // namespace fairlead
