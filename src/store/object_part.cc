#include "store/object_part.h"

#include <unistd.h>

#include <cerrno>

namespace fairlead {

Result<std::string> read_part(const OpenObject& object, std::uint64_t first, std::uint64_t bytes) {
  const auto whole = static_cast<std::uint64_t>(object.info.bytes.count());
  if (first > whole || bytes > whole - first) {
    return fail(Errc::kInvalidArgument, "object '{}' has {} bytes; {} from {} on are asked for", object.info.name.key,
                whole, bytes, first);
  }
  std::string part(bytes, '\0');
  std::size_t done = 0;
  while (done < part.size()) {
    const ssize_t count =
        ::pread(object.memory.get(), part.data() + done, part.size() - done, static_cast<off_t>(first + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fail(Errc::kIo, "object '{}': {} of {} bytes read", object.info.name.key, done, part.size());
    }
    done += static_cast<std::size_t>(count);
  }
  return part;
}

}  // namespace fairlead
