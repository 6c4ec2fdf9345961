// The node's log: one line per event, levels debug, info, warn, error, to stderr. Log once, where the failure is handled.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

namespace fairlead {

// level: "debug", "info", "warn", "error" or "off". Call once, from main.
void init_log(std::string_view level);

}  // namespace fairlead
