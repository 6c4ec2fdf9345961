#include "edge/function_in_path.h"

#include "model/function.h"

namespace fairlead {

Result<std::string> function_from(const RouteCall& call) {
  const std::string_view qualifier = call.target.query_value("Qualifier");
  if (qualifier.empty()) return function_name_from(call.parameter("function"));
  auto name = function_name_from(call.parameter("function"));
  if (!name) return name;
  return function_name_from(*name + ":" + std::string(qualifier));
}

}  // namespace fairlead
