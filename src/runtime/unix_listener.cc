#include "runtime/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace fairlead {

// Bound through /proc/self/fd: a socket's path is limited to 107 bytes, a state folder's is not.
Result<UniqueFd> listen_on_unix(const std::string& path, int type, int backlog) {
  const std::size_t slash = path.rfind('/');
  const UniqueFd dir(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dir || !socket) return fail(errno_error(errno, "open the folder of " + path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string short_path = fmt::format("/proc/self/fd/{}{}", dir.get(), path.substr(slash));
  FL_CHECK(short_path.size() < sizeof address.sun_path, "{}", short_path);
  std::memcpy(address.sun_path, short_path.data(), short_path.size());
  ::unlink(path.c_str());
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(socket.get(), backlog) != 0) {
    return fail(errno_error(errno, "listen on " + path));
  }
  return socket;
}

}  // namespace fairlead
