#include "node/own_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace fairlead {
namespace {

std::uint64_t bits(std::initializer_list<int> capabilities) {
  std::uint64_t all = 0;
  for (const int capability : capabilities) all |= std::uint64_t{1} << capability;
  return all;
}

}  // namespace

std::uint64_t rights_of_node(bool makes_slices) {
  return bits({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE,
               CAP_SYS_NICE, CAP_NET_BIND_SERVICE}) |
         (makes_slices ? bits({CAP_SYS_ADMIN}) : 0);
}

std::uint64_t rights_of_nobody() {
  return bits({CAP_SYS_BOOT, CAP_SYS_TIME, CAP_SYS_PACCT, CAP_SYS_TTY_CONFIG, CAP_SYSLOG, CAP_MAC_ADMIN,
               CAP_MAC_OVERRIDE, CAP_AUDIT_CONTROL, CAP_AUDIT_READ, CAP_WAKE_ALARM, CAP_BLOCK_SUSPEND,
               CAP_LINUX_IMMUTABLE, CAP_NET_BROADCAST, CAP_IPC_OWNER, CAP_PERFMON, CAP_BPF});
}

Status give_up_rights(bool makes_slices) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return fail(errno_error(errno, "capget"));
  const std::uint64_t has = sets[0].permitted | std::uint64_t{sets[1].permitted} << 32;
  for (int capability = 0; capability < 64; ++capability) {
    // EINVAL: the kernel knows no such one; EPERM: who may not change the set has no use for it.
    if ((rights_of_nobody() >> capability & 1) != 0) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  const std::uint64_t kept = has & rights_of_node(makes_slices);
  for (int half = 0; half < 2; ++half) {
    sets[half].effective = sets[half].permitted = static_cast<std::uint32_t>(kept >> (32 * half));
    sets[half].inheritable &= sets[half].permitted;
  }
  if (::syscall(SYS_capset, &header, sets) != 0) return fail(errno_error(errno, "capset"));
  return {};
}

}  // namespace fairlead
