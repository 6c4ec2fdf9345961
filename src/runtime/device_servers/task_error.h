// What a failed call or a failed start of a kernel task answers: as Lambda functions do.
#pragma once

#include <string>
#include <string_view>

namespace fairlead {

std::string task_error_json(std::string_view type, const std::string& message);

}  // namespace fairlead
