#include "cli/payload.h"

#include <cerrno>
#include <fstream>
#include <istream>

namespace fairlead::cli {
namespace {

// Reads one byte more than the limit at most: a pipe may never end.
Result<std::string> read_all(std::istream& stream, const std::string& name, std::size_t limit) {
  std::string bytes;
  char buffer[64 << 10];
  while (stream.read(buffer, sizeof(buffer)) || stream.gcount() > 0) {
    bytes.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > limit) {
      return fail(Errc::kTooLarge, "the payload from {} is larger than {} bytes", name, limit);
    }
  }
  return bytes;
}

}  // namespace

Result<std::string> read_payload(const PayloadSource& source, std::istream& in, std::size_t limit) {
  if (source.data) {
    if (source.data->size() <= limit) return *source.data;
    return fail(Errc::kTooLarge, "the payload is {} bytes, the limit is {}", source.data->size(), limit);
  }
  if (!source.file) return std::string("{}");
  if (*source.file == "-") return read_all(in, "standard input", limit);
  std::ifstream file(*source.file, std::ios::binary);
  if (!file) return fail(errno_error(errno, "payload file " + *source.file));
  return read_all(file, *source.file, limit);
}

}  // namespace fairlead::cli
