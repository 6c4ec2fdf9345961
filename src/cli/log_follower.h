// Turns repeated tails of a growing log into the lines that are new.
//
// The node serves the last N bytes, no offsets. What was printed last is searched in the next tail; what follows it is
// new. Example: printed "..b\nc\n", tail "b\nc\nd\n" -> "d\n". A log that was rotated or outran the tail does not contain
// it: the whole tail is new.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::cli {

class LogFollower {
 public:
  // Whether what was returned last is in `tail`: else lines may be missing between the two.
  bool reaches(std::string_view tail) const;
  // The part of `tail` that no earlier call has returned.
  std::string_view next(std::string_view tail);

 private:
  static constexpr std::size_t kAnchorBytes = 1024;  // long enough to be unique in practice
  std::string anchor_;                               // the end of what was returned
};

}  // namespace fairlead::cli
