#include "edge/function_in_path.h"

#include "model/function.h"
#include "model/tenant.h"

namespace fairlead {

Result<std::string> function_from(const RouteCall& call) {
  const std::string_view qualifier = call.target.query_value("Qualifier");
  if (qualifier.empty()) return function_name_from(call.parameter("function"));
  auto name = function_name_from(call.parameter("function"));
  if (!name) return name;
  return function_name_from(*name + ":" + std::string(qualifier));
}

Result<FunctionRecord> find_function(NodeService& node, const RouteCall& call) {
  const auto name = function_from(call);
  if (!name) return fail(name.error());
  auto record = node.get_function(*name);
  if (record && !call.principal.sees(tenant_of(record->config.tags))) return fail(no_such_function(*name));
  return record;
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
