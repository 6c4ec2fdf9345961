// What goes wrong is explained on stderr when $SOFTGPU_LOG is set to anything but 0.
#pragma once

#include <string>

namespace softgpu {

// Writes one line, if the log is on. Thread-safe.
void log_line(const std::string& text);

}  // namespace softgpu
