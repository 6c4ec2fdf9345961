#include "runtime/sandbox_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/confinement.h"
#include "runtime/container_process.h"
#include "runtime/egress_network.h"
#include "runtime/fd_socket.h"
#include "runtime/http_adapter.h"
#include "runtime/sandbox_root.h"
#include "runtime/spawn_protocol.h"

namespace fairlead {
namespace {

constexpr rlim_t kMaxOpenFiles = 65536;

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

// Counted per user namespace, so this comes after it is entered.
Status limit_processes(const StartOrder& order) {
  return limit_resource(RLIMIT_NPROC, order.max_processes + 1, "NPROC");  // 1: init
}

// No RLIMIT_FSIZE: /tmp and /dev/shm have quotas that answer ENOSPC, which a program can handle, unlike SIGXFSZ.
Status set_rlimits(const StartOrder& order, bool memory_by_rlimit) {
  if (auto status = limit_resource(RLIMIT_CORE, 0, "CORE"); !status) return status;
  if (auto status = limit_resource(RLIMIT_NOFILE, kMaxOpenFiles, "NOFILE"); !status) return status;
  if (!memory_by_rlimit || order.memory_limit.count() == 0) return {};
  return limit_resource(RLIMIT_DATA, static_cast<rlim_t>(order.memory_limit.count()), "DATA");
}

class Sandbox {
 public:
  Sandbox(const SandboxPlan& plan, const Cgroup* cgroup, UniqueFd control)
      : plan_(plan), cgroup_(cgroup), control_(std::move(control)) {}

  [[noreturn]] void run() {
    // The spawner's descriptors, among them other sandboxes' control sockets, were copied by the clone.
    ::dup2(control_.release(), 3);
    ::close_range(4, ~0u, 0);
    control_.reset(3);
    if (auto status = prepare(); !status) give_up_for_node(status.error());
    FdMessage message;
    if (receive_message(control_.get(), message) != 0 || message.bytes.empty()) ::_exit(0);
    Result<StartOrder> order = decode_start_order(message.bytes);
    if (!order) give_up(order.error());
    if (message.fds.size() != order->binds.size() + 1) {
      give_up({Errc::kCorrupt, "start order without its descriptors"});
    }
    if (auto status = furnish(*order, message.fds); !status) give_up_for_node(status.error());
    message.fds.clear();
    // A container is made with the rights that init is about to give up, and given none of them.
    Result<pid_t> function = order->container.empty() ? Result<pid_t>(0) : run_container(*order);
    if (!function) give_up(function.error());
    if (auto status = confine(*order); !status) give_up_for_node(status.error());
    if (order->container.empty()) function = start_function(*order);
    if (!function) give_up(function.error());
    if (order->http_port != 0) adapter_ = fork_http_adapter(*order);
    supervise(*function);
  }

 private:
  // Nothing of the function has run or was looked at.
  [[noreturn]] void give_up_for_node(const Error& error) { give_up({error.code, kNodesFault + error.message}); }

  [[noreturn]] void give_up(const Error& error) {
    send_message(control_.get(), error.message);
    ::_exit(1);
  }

  Status prepare() {
    if (auto status = die_with_parent(control_.get()); !status) return status;
    if (cgroup_ != nullptr) {
      if (auto status = cgroup_->join(); !status) return status;
    }
    if (::setsid() < 0) return failed("setsid");
    if (auto status = bring_loopback_up(); !status) return status;
    Result<UniqueFd> listener = listen_on_loopback(kRuntimeApiPort);
    if (!listener) return fail(listener.error());
    Result<WayOutSockets> way_out = plan_.way_out ? make_way_out_sockets() : WayOutSockets();
    if (!way_out) return fail(way_out.error());
    if (plan_.way_out) rules_ = lay_way_out();
    constexpr std::string_view kHost = "sandbox";
    if (::sethostname(kHost.data(), kHost.size()) != 0) return failed("sethostname");
    if (auto status = enter_template(plan_.template_dir); !status) return status;
    return hand_over(*listener, *way_out);
  }

  Status hand_over(const UniqueFd& listener, const WayOutSockets& way_out) const {
    std::vector<int> fds{listener.get()};
    for (const auto* sockets : {&way_out.connections, &way_out.questions}) {
      for (const UniqueFd& socket : *sockets) fds.push_back(socket.get());
    }
    if (const int error = send_message(control_.get(), "prepared", fds); error != 0) {
      return fail(errno_error(error, "hand over the listening sockets"));
    }
    return {};
  }

  Status furnish(const StartOrder& order, const std::vector<UniqueFd>& fds) {
    if (!order.egress_asked.empty()) {
      if (!rules_) return rules_;
      if (auto status = open_way_out(); !status) return status;
      if (auto status = use_name_server(); !status) return status;
    }
    if (auto status = mount_order(order, fds, 1); !status) return status;
    if (auto status = open_standard_files(fds[0].get()); !status) return status;
    // So that a machine out of memory loses functions first.
    (void)write_text("/proc/self/oom_score_adj", "500");
    return set_rlimits(order, cgroup_ == nullptr);
  }

  Result<pid_t> run_container(const StartOrder& order) {
    if (!plan_.user_namespaces) {
      return fail(Errc::kUnavailable, "functions that are images need user namespaces, which this machine forbids");
    }
    return start_container(order.container);
  }

  Status confine(const StartOrder& order) {
    if (auto status = change_user(order.uid); !status) return status;
    if (auto status = die_with_parent(control_.get()); !status) return status;
    if (auto status = limit_processes(order); !status) return status;
    if (auto status = drop_capabilities(); !status) return status;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
    if (const int error = load_seccomp(plan_.seccomp); error != 0) return fail(errno_error(error, "load seccomp"));
    // This process holds a copy of the node's memory: the function, of the same uid, must not read it through /proc/1.
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return failed("PR_SET_DUMPABLE");
    return {};
  }

  Status open_standard_files(int log) {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || ::dup2(null.get(), 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0) {
      return failed("open the standard files");
    }
    // Belt and braces: whatever else the node had open does not reach the function.
    if (::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) return failed("close_range");
    return {};
  }

  // The group is that of all functions: what the platform shares with them is shared with it.
  Status change_user(std::uint64_t instances_own) {
    const uid_t uid = !plan_.root ? 0 : instances_own != 0 ? static_cast<uid_t>(instances_own) : kSandboxUid;
    const gid_t gid = plan_.root ? kSandboxUid : 0;
    if (plan_.root) {
      if (auto status = change_ids(uid, gid); !status) return status;
    }
    if (!plan_.user_namespaces) return {};
    return enter_user_namespace(kInnerUid, uid, gid);
  }

  Result<pid_t> start_function(StartOrder& order) {
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &handled, nullptr);

    std::vector<char*> environment;
    for (std::string& entry : order.environment) environment.push_back(entry.data());
    environment.push_back(nullptr);
    std::string program = std::string(kTaskDir) + "/bootstrap";
    char* arguments[] = {program.data(), nullptr};

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    if (::chdir(kTaskDir) != 0) return fail(errno_error(errno, fmt::format("chdir {}", kTaskDir)));
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, program.c_str(), nullptr, &attributes, arguments, environment.data());
    if (error != 0) return fail(errno_error(error, "exec " + program));
    return pid;
  }

  // Passes invocations on to a container that knows HTTP only. A process of its own beside the container, because only
  // who lives in the container's network reaches it. -1: it could not be forked.
  pid_t fork_http_adapter(const StartOrder& order) {
    release_output();
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    control_.reset();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(run_http_adapter({.port = static_cast<std::uint16_t>(order.http_port), .health = order.http_health}));
  }

  // The function's output ends with its last writer, not with init.
  void release_output() {
    ::dup2(0, 1);
    ::dup2(0, 2);
  }

  [[noreturn]] void supervise(pid_t function) {
    release_output();
    if (adapter_ < 0) give_up({Errc::kResourceExhausted, "fork the HTTP adapter: " + std::string(strerror(errno))});
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTERM);
    while (true) {
      int status = 0;
      pid_t pid = 0;
      while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == adapter_ && status != 0) give_up({Errc::kUnavailable, "the HTTP adapter ended"});
        if (pid != function) continue;
        send_message(control_.get(), "X" + std::to_string(status));
        ::_exit(0);
      }
      if (::sigwaitinfo(&handled, nullptr) == SIGTERM) ::kill(function, SIGTERM);
    }
  }

  const SandboxPlan& plan_;
  const Cgroup* cgroup_;
  UniqueFd control_;
  pid_t adapter_ = 0;
  Status rules_;  // of a way out; what was wrong concerns those alone that ask for one
};

}  // namespace

Result<BlankProcess> clone_blank(const SandboxPlan& plan, const Cgroup* cgroup, UniqueFd control) {
  // A plain clone, not clone3, which older container runtimes forbid. Without a stack of its own it returns twice.
  constexpr unsigned long kFlags =
      CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_PIDFD | SIGCHLD;
  int pidfd = -1;
  const long pid = ::syscall(SYS_clone, kFlags, nullptr, &pidfd, nullptr, 0ul);
  if (pid < 0) return fail(errno_error(errno, "clone a sandbox"));
  if (pid == 0) Sandbox(plan, cgroup, std::move(control)).run();
  return BlankProcess{static_cast<pid_t>(pid), UniqueFd(pidfd)};
}

}  // namespace fairlead
