// Beast's parser must not be offered a last chunk in pieces that are too small: once it has seen "0 CR LF" it asserts that five bytes
// are there, and an assertion ends the program. A message in chunks that is not over has at least "0 CR LF CR LF" to come, so
// nothing is lost by waiting for so much.
#pragma once

#include <cstddef>

namespace fairlead::net {

template <typename Parser>
bool waits_for_last_chunk(Parser& parser, std::size_t unread) {
  constexpr std::size_t kShortestEnd = 5;
  return unread < kShortestEnd && parser.is_header_done() && parser.chunked();
}

}  // namespace fairlead::net
