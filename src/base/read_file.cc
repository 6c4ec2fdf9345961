#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace fairlead {

Result<std::string> read_whole_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(errno_error(errno, "read " + path));
  std::string bytes;
  std::array<char, std::size_t{64} << 10> part;
  while (true) {
    const ssize_t count = ::read(file.get(), part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno_error(errno, "read " + path));
    if (count == 0) return bytes;
    bytes.append(part.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace fairlead
