// One sandbox's first process, from its clone to its end:
//   blank    it exists in its own pid, mount, ipc, uts and net namespaces and cgroup, with loopback up, the Runtime
//            API's TCP socket listening, private mounts made and the host's file tree gone, and waits for an order
//   ordered  it mounts what the order says, gives up every right (uid, user namespace, capabilities, no_new_privs,
//            seccomp) and starts /var/task/bootstrap
//   init     it reaps the sandbox's processes and passes SIGTERM on; when the function ends, it reports and exits, and
//            the kernel kills whatever the function left in the pid namespace
// What depends on no order is done ahead, because it is the slow part: joining a cgroup takes up to 16 ms on an idle
// machine, a net namespace 0.4 ms.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/cgroup.h"
#include "runtime/seccomp_filter.h"

namespace fairlead {

inline constexpr int kRuntimeApiPort = 9001;
// In a node run by root, on the host: the group of functions, and the uid of those that have none of their own (uid_pool.h).
// Inside, every function is kInnerUid.
inline constexpr uid_t kSandboxUid = 65530;
inline constexpr uid_t kInnerUid = 1000;

// The same for all sandboxes of a spawner.
struct SandboxPlan {
  std::string template_dir;
  SeccompPrograms seccomp;
  bool root = false;            // the spawner is the host's root
  bool user_namespaces = true;  // false only for root on a machine that forbids them
  bool way_out = false;         // blanks have the sockets of one (egress_network.h)
};

// Clones a blank. `control` is its end of a pair made by make_seqpacket_pair. On it the blank sends one message: the
// listening socket and those of a way out, or the text why it failed; later at most one of: "X" and the function's wait status, or why the
// function did not start. Texts of what is not the function's doing begin with kNodesFault.
inline constexpr char kNodesFault = '!';
struct BlankProcess {
  pid_t pid = -1;
  UniqueFd pidfd;
};
Result<BlankProcess> clone_blank(const SandboxPlan& plan, const Cgroup* cgroup, UniqueFd control);

}  // namespace fairlead
