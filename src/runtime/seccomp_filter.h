// The system calls a function may not make. A deny list, because functions bring any runtime and any GPU driver: what
// reaches beyond the sandbox (mounts, namespaces, other processes' memory, kernel modules, BPF, io_uring, the clock,
// keys, exotic socket families) fails with EPERM. Calls newer than the list, and clone3 (whose flags a filter cannot
// read), fail with ENOSYS, which makes libc use the older call.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/result.h"

namespace fairlead {

// Two BPF programs to load one after the other. Made once: compiling takes about a millisecond.
struct SeccompPrograms {
  std::vector<sock_filter> deny;
  std::vector<sock_filter> newer;
};

Result<SeccompPrograms> compile_seccomp();

// Both in one program, for who can load only one.
std::vector<sock_filter> joined(const SeccompPrograms& programs);

// Loads them for the calling process and all its children, for good. Async-signal-safe. 0 or errno.
// REQUIRES: no_new_privs is set.
int load_seccomp(const SeccompPrograms& programs);

}  // namespace fairlead
