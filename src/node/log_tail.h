// Reads the end of a function's log as src/runtime/function_log.h writes it: <dir>/<function>.log, and .log.1 before it.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead {

// At most `bytes` of the newest lines. Empty when the function has logged nothing yet.
Result<std::string> log_tail(const std::string& log_dir, const std::string& function, std::size_t bytes);

}  // namespace fairlead
