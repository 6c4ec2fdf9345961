// Invariants that stay on in release builds. A failed FL_CHECK is a bug of ours: it prints the expression, the place and
// the message, and aborts. Expected failures (bad input, a missing file) are Result<T>, never FL_CHECK.
#pragma once

#include <fmt/core.h>

#include <string>

namespace fairlead {

// While it lives, a failed check on this thread also prints `text`: the seed of a random test, say. `text` must outlive it.
class CheckNote {
 public:
  explicit CheckNote(const char* text);
  ~CheckNote();
  CheckNote(const CheckNote&) = delete;
  CheckNote& operator=(const CheckNote&) = delete;

 private:
  const char* const outer_;
};

[[noreturn]] void check_failed(const char* expression, const char* file, int line, const std::string& message);

}  // namespace fairlead

// FL_CHECK(n <= limit, "n={} limit={}", n, limit);
#define FL_CHECK(condition, ...)                                                               \
  do {                                                                                         \
    if (__builtin_expect(!(condition), 0)) {                                                   \
      ::fairlead::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                          \
  } while (false)
