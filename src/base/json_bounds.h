// What a stranger's JSON may become, found by its brackets, commas and colons alone, before anything is built of it: a tree
// takes up to 64 bytes for each byte of text, and a library that builds, copies or writes one recursively needs stack for
// each level. The text need not be JSON; what is not is refused by whoever reads it next.
//
//   {"a": [1, 2]}    depth 2, values 5: the object, its member's name, the list, two numbers
//
// In time linear in the text, without memory. Threads: any.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace fairlead {

struct JsonBounds {
  std::size_t depth = 64;
  std::size_t values = 1 << 17;  // of all levels, names of members included
};

// kInvalidArgument: deeper, or more values. `what` names the document.
Status check_json_bounds(std::string_view text, std::string_view what, const JsonBounds& bounds = {});

}  // namespace fairlead
