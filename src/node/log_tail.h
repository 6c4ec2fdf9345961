// Reads the end of a function's log as src/runtime/function_log.h writes it: <dir>/<function>.log, and .log.1 before it; and when it was
// written, from the files .times beside them.
#pragma once

#include <string>

#include "base/result.h"
#include "edge/node_service.h"

namespace fairlead {

// At most `bytes` of the newest lines. Empty when the function has logged nothing yet.
Result<std::string> log_tail(const std::string& log_dir, const std::string& function, std::size_t bytes);

// The same, with times. Marks that make no sense (beyond the file, out of order, no numbers) are passed over.
Result<TimedLog> timed_log(const std::string& log_dir, const std::string& function, std::size_t bytes);

}  // namespace fairlead
