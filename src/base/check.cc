#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fairlead {

namespace {
thread_local const char* note = nullptr;
}  // namespace

CheckNote::CheckNote(const char* text) : outer_(note) {
  note = text;
}

CheckNote::~CheckNote() {
  note = outer_;
}

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "fairlead: %s:%d: check failed: %s%s%s\n", file, line, expression, message.empty() ? "" : ": ",
               message.c_str());
  if (note != nullptr) std::fprintf(stderr, "fairlead: %s\n", note);
  std::abort();
}

}  // namespace fairlead
