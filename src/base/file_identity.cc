#include "base/file_identity.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace fairlead {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

template <typename Number>
bool take_number(std::string_view& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_colon(std::string_view& text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<FileIdentity> identity_of(int file) {
  struct statx info {};
  if (::statx(file, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &info) != 0) {
    return fail(errno_error(errno, "statx of an open file"));
  }
  FileIdentity identity{.device = makedev(info.stx_dev_major, info.stx_dev_minor), .inode = info.stx_ino};
  if ((info.stx_mask & STATX_BTIME) != 0) {
    identity.born_ns = info.stx_btime.tv_sec * kNanosecondsPerSecond + info.stx_btime.tv_nsec;
  }
  return identity;
}

std::string to_text(const FileIdentity& identity) {
  return fmt::format("{}:{}:{}", identity.device, identity.inode, identity.born_ns);
}

Result<FileIdentity> parse_file_identity(std::string_view text) {
  FileIdentity identity;
  std::string_view rest = text;
  if (take_number(rest, identity.device) && take_colon(rest) && take_number(rest, identity.inode) && take_colon(rest) &&
      take_number(rest, identity.born_ns) && rest.empty()) {
    return identity;
  }
  return fail(Errc::kCorrupt, "'{:.60}' is no identity of a file", text);
}

Result<UniqueFd> open_unlinked_folder(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd folder(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (folder) return folder;
  if (errno == ENOENT || errno == ENOTDIR) return fail(Errc::kNotFound, "the folder {} is not there any more", path);
  if (errno == ELOOP) {
    return fail(Errc::kConflict, "the folder {} is not where it was: there is a link in its place or on the way", path);
  }
  return fail(errno_error(errno, "open folder " + path));
}

Result<UniqueFd> open_same_folder(const std::string& path, const FileIdentity& identity) {
  Result<UniqueFd> folder = open_unlinked_folder(path);
  if (!folder) return folder;
  const Result<FileIdentity> found = identity_of(folder->get());
  if (!found) return fail(found.error());
  if (*found == identity) return folder;
  return fail(Errc::kConflict, "the folder {} is another one than was deployed: somebody put it in that one's place",
              path);
}

}  // namespace fairlead
