#include "runtime/device_servers/task_error.h"

#include <nlohmann/json.hpp>

namespace fairlead {

std::string task_error_json(std::string_view type, const std::string& message) {
  const nlohmann::json body{{"errorType", type}, {"errorMessage", message}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fairlead
