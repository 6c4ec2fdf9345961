// The system calls that a function may not make, and those that the platform's own programs in jails may make.
//
// For functions a deny list, because they bring any runtime and any GPU driver: what reaches beyond the sandbox (mounts, namespaces,
// other processes' memory, kernel modules, BPF, io_uring, the clock, keys, exotic socket families) fails with EPERM. For the
// platform's programs, which are known, an allow list (seccomp_allow_list.h): all else fails with EPERM. In both, calls newer than
// the lists, and clone3 (whose flags a filter cannot read), fail with ENOSYS, which makes libc use the older call.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"

namespace fairlead {

// One or two BPF programs to load one after the other. Made once: compiling takes about a millisecond.
struct SeccompPrograms {
  std::vector<sock_filter> known;
  std::vector<sock_filter> newer;  // may be empty
};

Result<SeccompPrograms> compile_seccomp();           // of functions
Result<SeccompPrograms> compile_platform_seccomp();  // of what runs in jails: seccomp_allow_list.h

// Both in one program, for who can load only one.
std::vector<sock_filter> joined(const SeccompPrograms& programs);

// Loads them for the calling process and all its children, for good. Async-signal-safe. 0 or errno.
// REQUIRES: no_new_privs is set.
int load_seccomp(const SeccompPrograms& programs);

}  // namespace fairlead
