// The process of a sandbox's way out: in the node's network, and in nothing else of the node's. It is in the sandbox's control group,
// has a process namespace and a file tree of its own, with /etc alone (for the machine's resolver), no right, the instance's user and
// the platform's list of system calls. It ends with the spawner, and the spawner ends it with the sandbox.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/egress_list.h"
#include "runtime/cgroup.h"
#include "runtime/seccomp_filter.h"

namespace fairlead {

inline constexpr std::uint64_t kWayOutTasks = 5;  // of the control group's: the process, and threads that look names up

struct WayOutPlan {
  std::string root_dir;  // an empty folder, or one that may be hidden in this process
  SeccompPrograms seccomp;
  bool is_root = false;
};

struct WayOutOrder {
  EgressTerms terms;
  std::vector<UniqueFd> sockets;  // as make_way_out_sockets() has them: TCP, then UDP, as many
  int log = -1;
  const Cgroup* cgroup = nullptr;  // none: the machine has none
  uid_t uid = 0;                   // of the host, where the node is root
};

struct WayOutProcess {
  pid_t pid = -1;
  UniqueFd control;  // says why it ended, if it can
};
Result<WayOutProcess> start_way_out(const WayOutPlan& plan, WayOutOrder order);

}  // namespace fairlead
