#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fairlead {

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "fairlead: %s:%d: check failed: %s%s%s\n", file, line, expression, message.empty() ? "" : ": ",
               message.c_str());
  std::abort();
}

}  // namespace fairlead
