// The process that makes sandboxes. Forked from the node while it is small and has one thread: cloning it is cheap and
// safe. It takes StartOrders from a socket, keeps a few blanks ready, reaps sandboxes and reports their ends. When the
// socket ends or the node dies, it kills every sandbox, removes their cgroups and exits.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/cgroup.h"

namespace fairlead {

struct SpawnerOptions {
  std::string template_dir;
  bool use_cgroups = true;
  int blanks = 2;  // sandboxes prepared ahead
  CpuShare cpu = {};  // of each sandbox
};

struct SpawnerProcess {
  pid_t pid = -1;
  UniqueFd socket;
};

// Returns when the spawner is ready for orders. kUnavailable: the machine does not let it make sandboxes; the message
// says which step is forbidden. REQUIRES: the calling process has one thread, which lives as long as the process.
Result<SpawnerProcess> start_spawner(const SpawnerOptions& options);

}  // namespace fairlead
