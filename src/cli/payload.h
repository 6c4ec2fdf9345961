// The payload of an invocation, from the command line, a file or standard input.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "base/result.h"

namespace fairlead::cli {

struct PayloadSource {
  std::optional<std::string> data;  // -d
  std::optional<std::string> file;  // -p; "-": standard input
};

// Neither: "{}", what Lambda's clients send by default. kTooLarge beyond `limit` bytes; kNotFound.
Result<std::string> read_payload(const PayloadSource& source, std::istream& in, std::size_t limit);

}  // namespace fairlead::cli
