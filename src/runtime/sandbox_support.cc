#include "runtime/sandbox_support.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "runtime/cgroup.h"
#include "runtime/seccomp_filter.h"

namespace fairlead {
namespace {

// 0 or errno of `attempt`, run in a child of its own.
template <typename Attempt>
int try_in_child(Attempt attempt) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(attempt());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int try_unshare(int flags) {
  // An ordinary user gets the other namespaces together with a user namespace only.
  const int user = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
  return try_in_child([&] { return ::unshare(flags | user) == 0 ? 0 : errno; });
}

int try_seccomp() {
  return try_in_child([] {
    const auto programs = compile_seccomp();
    if (!programs || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return EINVAL;
    return load_seccomp(*programs);
  });
}

SandboxFeature feature(std::string name, bool required, int error) {
  return {std::move(name), required, error == 0, error == 0 ? "" : std::system_category().message(error)};
}

}  // namespace

std::string SandboxSupport::obstacle() const {
  for (const SandboxFeature& entry : features) {
    if (entry.required && !entry.available) return entry.name + ": " + entry.detail;
  }
  return {};
}

SandboxSupport probe_sandbox_support() {
  const bool root = ::geteuid() == 0;
  SandboxSupport support;
  SandboxFeature user =
      feature("user namespace", !root, try_in_child([] { return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno; }));
  if (!user.available && root) user.detail += "; functions run as an unprivileged user of the host";
  support.features.push_back(std::move(user));
  constexpr std::pair<const char*, int> kNamespaces[] = {{"mount namespace", CLONE_NEWNS},
                                                         {"pid namespace", CLONE_NEWPID},
                                                         {"ipc namespace", CLONE_NEWIPC},
                                                         {"uts namespace", CLONE_NEWUTS},
                                                         {"net namespace", CLONE_NEWNET}};
  for (const auto& [name, flag] : kNamespaces) support.features.push_back(feature(name, true, try_unshare(flag)));
  support.features.push_back(feature("seccomp", true, try_seccomp()));
  const long tree = ::syscall(SYS_open_tree, -1, "", 0);
  support.features.push_back(feature("mount API of Linux 5.12", true, tree < 0 && errno == ENOSYS ? ENOSYS : 0));

  const CgroupTree cgroups = CgroupTree::open(::getpid());
  support.cgroups = cgroup_version_name(cgroups.version());
  SandboxFeature limits{"cgroup limits of memory and processes", false, cgroups.version() != CgroupVersion::kNone, {}};
  if (!limits.available) limits.detail = cgroups.why() + "; rlimits are used";
  support.features.push_back(std::move(limits));
  return support;
}

}  // namespace fairlead
