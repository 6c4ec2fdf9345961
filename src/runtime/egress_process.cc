#include "runtime/egress_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/confinement.h"
#include "runtime/egress/egress_relay.h"
#include "runtime/fd_socket.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

constexpr rlim_t kMostOpenFiles = 1024;
constexpr rlim_t kMostMemory = rlim_t{256}
                               << 20;  // its own need is bounded by EgressRelay; this is beside the control group's

class WayOut {
 public:
  WayOut(const WayOutPlan& plan, WayOutOrder order, UniqueFd control)
      : plan_(plan), order_(std::move(order)), control_(std::move(control)) {}

  [[noreturn]] void run() {
    const Status ended = serve();
    send_message(control_.get(), ended ? "it ended" : ended.error().message);
    ::_exit(1);
  }

 private:
  Status serve() {
    keep_own_descriptors();
    if (auto status = confine(); !status) return status;
    EgressRelayOptions options{.terms = std::move(order_.terms), .sockets = {}, .log = order_.log};
    const std::size_t half = order_.sockets.size() / 2;
    for (std::size_t i = 0; i < order_.sockets.size(); ++i) {
      auto& sockets = i < half ? options.sockets.connections : options.sockets.questions;
      sockets.push_back(std::move(order_.sockets[i]));
    }
    auto relay = EgressRelay::create(std::move(options));
    if (!relay) return fail(relay.error());
    (*relay)->run();
    return {};
  }

  // Not the spawner's, among them other sandboxes' sockets: what stays is moved to the lowest numbers.
  void keep_own_descriptors() {
    std::vector<int*> kept;
    int control = control_.release();
    kept.push_back(&control);
    kept.push_back(&order_.log);
    std::vector<int> sockets;
    for (UniqueFd& socket : order_.sockets) sockets.push_back(socket.release());
    for (int& socket : sockets) kept.push_back(&socket);
    constexpr int kAboveAll = 512;
    for (int* fd : kept) *fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, kAboveAll);
    // What the C library says of its own last moment goes into the function's log.
    for (const int stream : {0, 1, 2}) ::dup2(order_.log, stream);
    int next = 3;
    for (int* fd : kept) *fd = ::dup3(*fd, next++, O_CLOEXEC);
    ::close_range(static_cast<unsigned>(next), ~0u, 0);
    control_.reset(control);
    for (std::size_t i = 0; i < sockets.size(); ++i) order_.sockets[i].reset(sockets[i]);
  }

  Status confine() {
    if (auto status = die_with_parent(control_.get()); !status) return status;
    ::prctl(PR_SET_NAME, "fl-egress");
    if (order_.cgroup != nullptr) {
      if (auto status = order_.cgroup->join(); !status) return status;
    }
    ::setsid();
    // As the function, so that a machine out of memory does not lose the node first.
    (void)write_text("/proc/self/oom_score_adj", "500");
    if (auto status = enter_resolver_root(plan_.root_dir); !status) return status;
    const uid_t uid = !plan_.is_root ? 0 : order_.uid != 0 ? order_.uid : kSandboxUid;
    const gid_t gid = plan_.is_root ? kSandboxUid : 0;
    if (plan_.is_root) {
      // Else the bounding set would stay: emptying it is a right that goes with root's id.
      if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return fail(errno_error(errno, "PR_SET_KEEPCAPS"));
      if (auto status = change_ids(uid, gid); !status) return status;
    }
    if (auto status = die_with_parent(control_.get()); !status) return status;
    if (auto status = limit_resource(RLIMIT_CORE, 0, "CORE"); !status) return status;
    if (auto status = limit_resource(RLIMIT_NOFILE, kMostOpenFiles, "NOFILE"); !status) return status;
    if (auto status = limit_resource(RLIMIT_DATA, kMostMemory, "DATA"); !status) return status;
    if (auto status = limit_resource(RLIMIT_FSIZE, 0, "FSIZE"); !status) return status;
    if (auto status = drop_capabilities(); !status) return status;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail(errno_error(errno, "PR_SET_NO_NEW_PRIVS"));
    if (const int error = load_seccomp(plan_.seccomp); error != 0) return fail(errno_error(error, "load seccomp"));
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail(errno_error(errno, "PR_SET_DUMPABLE"));
    return {};
  }

  const WayOutPlan& plan_;
  WayOutOrder order_;
  UniqueFd control_;
};

}  // namespace

Result<WayOutProcess> start_way_out(const WayOutPlan& plan, WayOutOrder order) {
  Result<SocketPair> pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  constexpr unsigned long kFlags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
  const long pid = ::syscall(SYS_clone, kFlags, nullptr, nullptr, nullptr, 0ul);
  if (pid < 0) return fail(errno_error(errno, "clone the process of a way out"));
  if (pid == 0) {
    pair->first.reset();
    WayOut(plan, std::move(order), std::move(pair->second)).run();
  }
  return WayOutProcess{static_cast<pid_t>(pid), std::move(pair->first)};
}

}  // namespace fairlead
