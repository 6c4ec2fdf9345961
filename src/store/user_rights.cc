#include "store/user_rights.h"

#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace fairlead::store {
namespace {

constexpr std::size_t kNameBufferBytes = 16 << 10;
constexpr int kMostGroups = 65536;  // NGROUPS_MAX

// The raw call: that of the C library changes all threads.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

}  // namespace

Result<UserRights> UserRights::of(std::optional<std::uint32_t> uid) {
  UserRights rights;
  if (!uid || *uid == 0 || *uid == ::geteuid()) return rights;
  if (::geteuid() != 0) {
    return fail(Errc::kForbidden,
                "Code.Folder: this node is run by user {} and cannot tell what user {} may read; send Code.ZipFile",
                ::geteuid(), *uid);
  }
  rights.uid_ = *uid;
  rights.gid_ = 65534;  // of a user that the machine does not know
  std::vector<char> buffer(kNameBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return rights;
  rights.gid_ = entry.pw_gid;
  int count = 64;
  rights.groups_.resize(64);
  while (::getgrouplist(entry.pw_name, entry.pw_gid, rights.groups_.data(), &count) < 0 && count <= kMostGroups) {
    rights.groups_.resize(static_cast<std::size_t>(count));
  }
  rights.groups_.resize(static_cast<std::size_t>(count));
  return rights;
}

UserRights::Acting::Acting(const UserRights& rights) : is_other_(rights.uid_.has_value()) {
  if (!is_other_) return;
  const int count = ::getgroups(0, nullptr);
  groups_.resize(static_cast<std::size_t>(count));
  ::getgroups(count, groups_.data());
  FL_CHECK(set_groups(rights.groups_), "setgroups for user {}", *rights.uid_);
  ::setfsgid(rights.gid_);
  ::setfsuid(*rights.uid_);  // takes the rights over others' files away, too
  FL_CHECK(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == *rights.uid_, "setfsuid {}", *rights.uid_);
}

UserRights::Acting::~Acting() {
  if (!is_other_) return;
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
  FL_CHECK(set_groups(groups_), "setgroups back");
}

}  // namespace fairlead::store
