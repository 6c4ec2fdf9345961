// The process that makes sandboxes. Forked from the node while it is small and has one thread: cloning it is cheap and
// safe. It takes StartOrders from a socket, keeps a few blanks ready, reaps sandboxes and reports their ends. When the
// socket ends or the node dies, it kills every sandbox, removes their cgroups and exits.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/cgroup.h"

namespace fairlead {

struct SpawnerOptions {
  std::string template_dir;
  bool use_cgroups = true;
  int blanks = 2;        // sandboxes prepared ahead
  CpuShare cpu = {};     // of each sandbox
  bool way_out = false;  // orders may ask for one
};

struct SpawnerProcess {
  pid_t pid = -1;
  UniqueFd socket;
};

// The first message of a spawner that is ready for orders; any other says why it cannot be.
inline constexpr std::string_view kSpawnerReady = "ready";

// Returns when the spawner is ready for orders. kUnavailable: the machine does not let it make sandboxes; the message
// says which step is forbidden. REQUIRES: the calling process has one thread, which lives as long as the process.
Result<SpawnerProcess> start_spawner(const SpawnerOptions& options);

// The same for a process with threads: a new process of `program`, whose arguments are those below, as the program `fairlead` takes
// them. Does not wait: the socket's first message is the spawner's. REQUIRES: the calling thread lives as long as the process.
Result<SpawnerProcess> launch_spawner(const std::string& program, const SpawnerOptions& options);
inline constexpr const char* kSpawnerCommand = "spawner";
std::vector<std::string> spawner_arguments(const SpawnerOptions& options);
// kInvalidArgument: they are not what spawner_arguments() makes.
Result<SpawnerOptions> spawner_options_of(const std::vector<std::string>& arguments);
// What such a process does, until the node's end of descriptor 3 is closed.
[[noreturn]] void run_launched_spawner(const SpawnerOptions& options);

}  // namespace fairlead
