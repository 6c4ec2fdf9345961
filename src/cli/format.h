// Quantities for people.
#pragma once

#include <cstdint>
#include <string>

namespace fairlead::cli {

std::string format_bytes(double bytes);          // "0 B", "1.5 KiB", "16.0 GiB"
std::string format_seconds(double seconds);      // "350 us", "12.5 ms", "3.2 s", "4m 05s", "2h 03m", "5d 01h"
std::string format_percent(double share);        // 0.756 -> "76%"
std::string format_time(std::int64_t epoch_ms);  // "2026-11-20 11:40:00Z"

}  // namespace fairlead::cli
