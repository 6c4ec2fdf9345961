// A part of a body, as the header Range asks for it (RFC 9110, section 14): one range of bytes. What the header may ask for
// and this server does not know (other units, several ranges, no range at all) is as if it were not there.
//
//   bytes=0-99 of 250: 0 to 99     bytes=200-: 200 to 249     bytes=-10: 240 to 249     bytes=250-: there is no such part
//
// Threads: free functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace fairlead {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
  bool operator==(const ByteRange&) const = default;
};

// The part of `total` bytes, at most `most` of it: who asks for more asks again. Nothing: the whole body is asked for, as
// it is of an empty one. kInvalidArgument: the range begins behind the end.
Result<std::optional<ByteRange>> byte_range(std::string_view header, std::uint64_t total, std::uint64_t most);

}  // namespace fairlead
