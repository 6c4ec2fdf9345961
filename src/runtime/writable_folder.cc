#include "runtime/writable_folder.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/unique_fd.h"
#include "runtime/confinement.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

// Lives as long as the user namespace that it is in is being set up.
class NamespaceHolder {
 public:
  NamespaceHolder()
      : pid_(static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0ul))) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~NamespaceHolder() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  NamespaceHolder(const NamespaceHolder&) = delete;
  NamespaceHolder& operator=(const NamespaceHolder&) = delete;

  pid_t pid() const { return pid_; }
  std::string path(const char* file) const { return fmt::format("/proc/{}/{}", pid_, file); }

 private:
  const pid_t pid_;
};

// In which what is `owner`'s on the disk is `user`'s, and there is nobody else.
Result<UniqueFd> mapping_namespace(const MappedUser& owner, const MappedUser& user) {
  const NamespaceHolder holder;
  if (holder.pid() < 0) return fail(errno_error(errno, "make a user namespace"));
  const std::string uids = fmt::format("{} {} 1", owner.uid, user.uid);
  const std::string gids = fmt::format("{} {} 1", owner.gid, user.gid);
  if (Status written = write_text(holder.path("uid_map").c_str(), uids); !written) return fail(written.error());
  if (Status written = write_text(holder.path("gid_map").c_str(), gids); !written) return fail(written.error());
  UniqueFd space(::open(holder.path("ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return fail(errno_error(errno, "open a user namespace"));
  return space;
}

Result<struct stat> folder_stat(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return fail(errno_error(errno, "stat " + folder));
  return info;
}

// A file with the group's id set makes who runs it a member.
bool is_roots(const struct stat& folder) {
  return folder.st_uid == 0 || folder.st_gid == 0;
}

// Who is not let through a folder reaches nothing below it.
bool is_closed_above(const fs::path& folder) {
  for (fs::path above = folder.parent_path(); above.has_relative_path(); above = above.parent_path()) {
    struct stat info {};
    if (::stat(above.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0) return true;
  }
  return false;
}

Status map_users(int tree, const std::string& folder, const MappedUser& owner, const MappedUser& user) {
  const auto space = mapping_namespace(owner, user);
  if (!space) return fail(space.error());
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_IDMAP;
  attr.userns_fd = static_cast<std::uint64_t>(space->get());
  if (::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) == 0) return {};
  return fail(Errc::kUnavailable,
              "{} cannot be written to by functions, who are other users than its owner: {} for an idmapped mount (the "
              "kernel needs Linux 5.12, and its file system such mounts: ext4, xfs, btrfs, and later tmpfs have them)",
              folder, std::strerror(errno));
}

}  // namespace

Status map_owner(int tree, const std::string& folder, const MappedUser& user) {
  struct stat info {};
  if (::fstat(tree, &info) != 0) return fail(errno_error(errno, "stat " + folder));
  // Looked at again: it is at its owner's expense that the function writes.
  if (is_roots(info)) return fail(Errc::kUnavailable, "{} is root's now, and no function writes as root", folder);
  return map_users(tree, folder, {info.st_uid, info.st_gid}, user);
}

Status try_mapped_mount(const std::string& folder) {
  const UniqueFd tree(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, folder.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)));
  if (!tree) return fail(errno_error(errno, "open_tree " + folder));
  const auto info = folder_stat(folder);
  if (!info) return fail(info.error());
  const MappedUser owner{.uid = info->st_uid, .gid = info->st_gid};
  return map_users(tree.get(), folder, owner, owner);
}

Status check_writable_folder(const std::string& folder) {
  const auto info = folder_stat(folder);
  if (!info) return fail(info.error());
  const uid_t self = ::geteuid();
  if (self != 0 && info->st_uid != self) {
    return fail(Errc::kInvalidArgument,
                "{} is user {}'s: a node that is not root writes as its own user, {}; give it the folder", folder,
                info->st_uid, self);
  }
  if (is_roots(*info)) {
    return fail(
        Errc::kInvalidArgument,
        "{} is root's or of its group, and functions would write as that: give it to a user and a group of its own "
        "(chown USER:GROUP)",
        folder);
  }
  if (!is_closed_above(folder)) {
    return fail(
        Errc::kInvalidArgument,
        "{} can be reached by every user of this machine, who could run what a function makes set-user-id there: "
        "close a folder above it (chmod o-x {})",
        folder, fs::path(folder).parent_path().string());
  }
  return self == 0 ? try_mapped_mount(folder) : Status();
}

}  // namespace fairlead
