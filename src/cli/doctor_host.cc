#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/command.h"
#include "base/result.h"
#include "cli/doctor.h"
#include "cli/format.h"
#include "cli/places.h"
#include "node/serve_options.h"
#include "runtime/egress_network.h"

namespace fairlead::cli {
namespace {

using Level = Check::Level;

constexpr double kGib = 1 << 30;

Check check_kernel() {
  utsname name{};
  uname(&name);
  int major = 0, minor = 0;
  std::sscanf(name.release, "%d.%d", &major, &minor);
  const std::string finding =
      fmt::format("Linux {}, {} CPU threads", name.release, std::thread::hardware_concurrency());
  // pidfds from clone, which the supervisor of instances relies on.
  if (std::pair(major, minor) < std::pair(5, 4)) {
    return {Level::kMissing, "Kernel", finding, "Linux 5.4 or newer is needed"};
  }
  return {Level::kOk, "Kernel", finding, ""};
}

// Tries, in a child, what every sandbox needs. Root may do without a user namespace.
Check check_namespaces() {
  const bool root = geteuid() == 0;
  pid_t child = fork();
  if (child == 0) {
    int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | (root ? 0 : CLONE_NEWUSER);
    _exit(unshare(flags) == 0 ? 0 : errno);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return {Level::kMissing, "Namespaces", "cannot start a child process", "see ulimit -u"};
  }
  if (WEXITSTATUS(status) == 0) {
    return {Level::kOk, "Namespaces", root ? "available to root" : "available without root", ""};
  }
  return {Level::kMissing, "Namespaces", fmt::format("unshare: {}", std::strerror(WEXITSTATUS(status))),
          root ? "inside a container: run it privileged, or with CAP_SYS_ADMIN"
               : "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                 "kernel.apparmor_restrict_unprivileged_userns=0), or run as root"};
}

Check check_seccomp() {
  if (prctl(PR_GET_SECCOMP) >= 0) return {Level::kOk, "Seccomp", "available", ""};
  return {Level::kMissing, "Seccomp", std::strerror(errno), "a kernel with CONFIG_SECCOMP_FILTER is needed"};
}

// Read-only: setting a group up would move processes.
Check check_cgroups() {
  constexpr const char* kAdvice =
      "without them rlimits hold each process instead of each instance: mount /sys/fs/cgroup writable, or run the node "
      "as a systemd service with Delegate=yes";
  std::ifstream file("/sys/fs/cgroup/cgroup.controllers");
  std::ostringstream controllers;
  controllers << " " << file.rdbuf() << " ";
  std::string words = controllers.str();
  std::replace(words.begin(), words.end(), '\n', ' ');
  const bool v2 = words.find(" memory ") != std::string::npos && words.find(" pids ") != std::string::npos;
  if (v2 && access("/sys/fs/cgroup/cgroup.subtree_control", W_OK) == 0) {
    return {Level::kOk, "Control groups", "v2 with memory and pids", ""};
  }
  const bool v1 = access("/sys/fs/cgroup/memory", W_OK) == 0 && access("/sys/fs/cgroup/pids", W_OK) == 0;
  if (v1) return {Level::kOk, "Control groups", "v1 with memory and pids", ""};
  return {Level::kWarn, "Control groups", v2 ? "v2, not writable here" : "no memory and pids controllers", kAdvice};
}

// Functions, the node's servers and image tools are users of their own only where root gives them those.
Check check_users() {
  if (geteuid() == 0) return {Level::kOk, "Users", "one for each function, device server and image tool", ""};
  return {
      Level::kWarn, "Users", fmt::format("all processes of a node are user {}'s", geteuid()),
      "who breaks out of a sandbox or jail has what this user has: run the node as a user that has nothing else, or as "
      "root, which gives each process a user of its own"};
}

Check check_open_files() {
  constexpr rlim_t kWanted = 16'384;  // a socket per client and some per instance
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string finding = fmt::format("up to {}", limit.rlim_max);  // the node raises its own to this
  if (limit.rlim_max >= kWanted) return {Level::kOk, "Open files", finding, ""};
  return {Level::kWarn, "Open files", finding,
          fmt::format("many clients at the same time need more: ulimit -Hn {}", kWanted)};
}

// Swapped device memory is copied fastest into pages that cannot move, and drivers may count them against this limit.
Check check_pinned_memory() {
  const double wanted = static_cast<double>(default_host_memory_bytes());
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_max == RLIM_INFINITY) return {Level::kOk, "Pinned memory", "unlimited", ""};
  const double most = static_cast<double>(limit.rlim_max);
  const std::string finding = fmt::format("up to {}", format_bytes(most));
  if (most >= wanted) return {Level::kOk, "Pinned memory", finding, ""};
  return {Level::kWarn, "Pinned memory", finding,
          fmt::format("swapping up to {} at full speed needs more: ulimit -Hl unlimited, or LimitMEMLOCK=infinity in "
                      "the service",
                      format_bytes(wanted))};
}

// Tried in a child process with a network of its own.
Check check_way_out() {
  const std::string obstacle = try_way_out();
  if (obstacle.empty()) return {Level::kOk, "Egress", "functions can be given a way out", ""};
  return {Level::kWarn, "Egress", obstacle,
          "only functions with the tag gpu:egress need it: install nftables (apt install nftables), on a kernel with "
          "nf_tables and nft_tproxy"};
}

Check check_space(const std::string& subject, std::string folder, double wanted_bytes) {
  std::error_code ignored;
  const std::string asked = folder;
  while (!std::filesystem::exists(folder, ignored) && folder.size() > 1) {  // the node creates what is missing
    folder = std::filesystem::path(folder).parent_path().string();
  }
  struct statvfs space;
  if (statvfs(folder.c_str(), &space) != 0) {
    return {Level::kMissing, subject, fmt::format("{}: {}", folder, std::strerror(errno)), "choose another folder"};
  }
  if (access(folder.c_str(), W_OK) != 0) {
    return {Level::kMissing, subject, fmt::format("{} is not writable", folder), "choose another folder with --state"};
  }
  const double free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  const std::string finding = fmt::format("{}, {} free", asked, format_bytes(free_bytes));
  if (free_bytes >= wanted_bytes) return {Level::kOk, subject, finding, ""};
  return {Level::kWarn, subject, finding, fmt::format("{} or more are advisable", format_bytes(wanted_bytes))};
}

}  // namespace

std::vector<Check> check_host(const std::string& state_dir) {
  return {check_kernel(),
          check_namespaces(),
          check_seccomp(),
          check_cgroups(),
          check_users(),
          check_open_files(),
          check_space("State folder", state_dir, 2 * kGib),
          check_space("Shared memory", "/dev/shm", 1 * kGib)};
}

std::vector<Check> check_device_memory() {
  std::vector<Check> checks;
  const Result<std::string> library = shim_library();
  if (library) {
    checks.push_back({Level::kOk, "Shim", *library, ""});
  } else {
    checks.push_back({Level::kWarn, "Shim", library.error().message,
                      "without it device memory stays where it is and GPU time is taken from the clock"});
  }
  checks.push_back(check_pinned_memory());
  return checks;
}

std::vector<Check> check_tools() {
  std::vector<Check> checks;
  for (const char* tool : {"crun", "skopeo", "umoci"}) {
    const std::string path = find_program(tool);
    if (!path.empty())
      checks.push_back({Level::kOk, tool, path, ""});
    else
      checks.push_back(
          {Level::kWarn, tool, "not in $PATH", fmt::format("only container images need it: apt install {}", tool)});
  }
  checks.push_back(check_way_out());
  checks.push_back(check_writable_volumes());
  return checks;
}

}  // namespace fairlead::cli
