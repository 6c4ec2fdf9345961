#include "node/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead {
namespace {

Error no_room(const char* what) {
  return {Errc::kResourceExhausted, errno_error(errno, what).message};
}

Status write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(no_room("write a file in memory"));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const MemoryFile>> MemoryFile::make(std::string_view bytes) {
  UniqueFd file(::memfd_create("fairlead-request", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return fail(no_room("make a file in memory"));
  if (Status written = write_all(file.get(), bytes); !written) return fail(written.error());
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(errno_error(errno, "seal a file in memory"));
  }
  const Bytes size(static_cast<std::int64_t>(bytes.size()));
  return std::shared_ptr<const MemoryFile>(new MemoryFile(std::move(file), size));
}

std::string MemoryFile::path() const {
  return fmt::format("/proc/self/fd/{}", file_.get());
}

Result<UniqueFd> MemoryFile::open() const {
  UniqueFd file(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(no_room("open a file in memory"));
  return file;
}

}  // namespace fairlead
