#include "store/folder_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace fairlead::store {
namespace {

constexpr std::size_t kMostLinkBytes = 4096;
constexpr std::size_t kMostNames = 100'000;  // in one folder: more than a bundle may have in all

int open_at(int folder, const std::string& name, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  if ((flags & O_PATH) == 0) how.flags |= O_NOCTTY | O_NONBLOCK;  // openat2() refuses what means nothing to it
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how));
}

// /proc and /sys look at capabilities when they are read, which acting for a user does not take away.
bool is_of_kernel(int folder) {
  struct statfs info {};
  return ::fstatfs(folder, &info) == 0 && (info.f_type == PROC_SUPER_MAGIC || info.f_type == SYSFS_MAGIC);
}

FolderSource::Entry::Kind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return FolderSource::Entry::Kind::kFolder;
  if (S_ISREG(mode)) return FolderSource::Entry::Kind::kFile;
  if (S_ISLNK(mode)) return FolderSource::Entry::Kind::kLink;
  return FolderSource::Entry::Kind::kOther;
}

}  // namespace

Error FolderSource::denied(int error, const std::string& what) const {
  if (error == EACCES || error == EPERM) {
    return {Errc::kForbidden, fmt::format("Code.Folder: {} may not be read by who named it", what)};
  }
  // Somebody changed it while it was read.
  if (error == ELOOP || error == EXDEV) {
    return {Errc::kInvalidArgument, fmt::format("Code.Folder: {} has become a link", what)};
  }
  return errno_error(error, "Code.Folder: open " + what);
}

Result<FolderSource> FolderSource::open(const std::string& path, std::optional<std::uint32_t> uid, Links links) {
  Result<UserRights> rights = UserRights::of(uid);
  if (!rights) return fail(rights.error());
  FolderSource source(path, UniqueFd(), std::move(*rights));
  const UserRights::Acting acting(source.rights_);
  // The way to it may lead over links, with the rights of who named it, but not into another process.
  const std::uint64_t refused = links == Links::kRefused ? RESOLVE_NO_SYMLINKS : 0;
  source.folder_.reset(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_MAGICLINKS | refused));
  if (source.folder_ && is_of_kernel(source.folder_.get())) {
    return fail(Errc::kInvalidArgument, "code folder {} is the kernel's, where what is read depends on who reads",
                path);
  }
  if (source.folder_) return source;
  if (errno == ENOENT || errno == ENOTDIR) {
    return fail(Errc::kNotFound, "code folder {} is not a folder", path);
  }
  if (errno == ELOOP && links == Links::kRefused) {
    return fail(Errc::kInvalidArgument, "code folder {} is reached over a link: name the folder itself", path);
  }
  return fail(source.denied(errno, path));
}

Result<UniqueFd> FolderSource::open_inside(const std::string& name, int flags) const {
  const UserRights::Acting acting(rights_);
  UniqueFd opened(open_at(folder_.get(), name.empty() ? "." : name, flags,
                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  if (!opened) return fail(denied(errno, path_ + "/" + name));
  return opened;
}

Result<std::vector<FolderSource::Entry>> FolderSource::list(const std::string& name) const {
  Result<UniqueFd> folder = open_inside(name, O_RDONLY | O_DIRECTORY);
  if (!folder) return fail(folder.error());
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup(folder->get())), &::closedir);
  if (!entries) return fail(errno_error(errno, "read folder " + path_ + "/" + name));
  std::vector<Entry> found;
  while (const dirent* next = ::readdir(entries.get())) {
    const std::string_view own = next->d_name;
    if (own == "." || own == "..") continue;
    if (found.size() >= kMostNames) {
      return fail(Errc::kTooLarge, "Code.Folder: {}/{} has more than {} entries", path_, name, kMostNames);
    }
    const std::string at = std::string(own);
    const UserRights::Acting acting(rights_);
    struct stat info {};
    if (::fstatat(folder->get(), at.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(denied(errno, path_ + "/" + name + "/" + at));
    }
    Entry entry{.name = name.empty() ? at : name + "/" + at, .kind = kind_of(info.st_mode), .link_target = {}};
    entry.is_executable = (info.st_mode & S_IXUSR) != 0;
    if (entry.kind == Entry::Kind::kLink) {
      entry.link_target.resize(kMostLinkBytes);
      const ssize_t size = ::readlinkat(folder->get(), at.c_str(), entry.link_target.data(), kMostLinkBytes);
      if (size < 0) return fail(denied(errno, path_ + "/" + entry.name));
      entry.link_target.resize(static_cast<std::size_t>(size));
    }
    found.push_back(std::move(entry));
  }
  return found;
}

Result<std::uint32_t> FolderSource::mode_of(const std::string& name) const {
  Result<UniqueFd> there = open_inside(name, O_PATH | O_NOFOLLOW);
  if (!there) return fail(there.error());
  struct stat info {};
  if (::fstat(there->get(), &info) != 0) return fail(errno_error(errno, "stat " + path_ + "/" + name));
  return info.st_mode;
}

Result<UniqueFd> FolderSource::open_file(const std::string& name) const {
  Result<UniqueFd> file = open_inside(name, O_RDONLY);
  if (!file) return file;
  struct stat info {};
  if (::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Errc::kInvalidArgument, "Code.Folder: {}/{} is no file any more", path_, name);
  }
  return file;
}

}  // namespace fairlead::store
