#include "base/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace fairlead {
namespace {

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(errno_error(errno, "write " + path));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Status sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return fail(errno_error(errno, "sync " + folder));
  return {};
}

}  // namespace

Status replace_file(const std::string& folder, const std::string& name, std::string_view text) {
  const std::string path = folder + "/" + name, fresh = path + ".new";
  if (::unlink(fresh.c_str()) != 0 && errno != ENOENT) return fail(errno_error(errno, "unlink " + fresh));
  {
    const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return fail(errno_error(errno, "create " + fresh));
    if (Status written = write_all(fd.get(), text, fresh); !written) return written;
    if (::fsync(fd.get()) != 0) return fail(errno_error(errno, "sync " + fresh));
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return fail(errno_error(errno, "rename " + fresh));
  return sync_folder(folder);
}

}  // namespace fairlead
