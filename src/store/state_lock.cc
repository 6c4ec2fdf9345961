#include "store/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead::store {
namespace {

std::string holder_of(int fd) {
  char text[32] = {};
  ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  std::string pid(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<StateLock> StateLock::acquire(const std::string& state_dir) {
  const std::string path = state_dir + "/lock";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(errno_error(errno, "open " + path));
  StateLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(errno_error(errno, "flock " + path));
    return fail(Errc::kConflict, "{} is in use by the process with pid {}: stop it, or choose another --state folder",
                state_dir, holder_of(fd));
  }
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return fail(errno_error(errno, "write " + path));
  }
  return lock;
}

StateLock::~StateLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace fairlead::store
