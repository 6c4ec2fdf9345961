#include "softgpu/driver/log.h"

#include <cstdio>
#include <cstdlib>

namespace softgpu {

void log_line(const std::string& text) {
  static const bool enabled = [] {
    const char* value = std::getenv("SOFTGPU_LOG");
    return value != nullptr && *value != '\0' && *value != '0';
  }();
  if (enabled) std::fprintf(stderr, "softgpu: %s\n", text.c_str());
}

}  // namespace softgpu
