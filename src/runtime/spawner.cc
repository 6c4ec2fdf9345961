#include "runtime/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/log.h"
#include "runtime/cgroup.h"
#include "runtime/confinement.h"
#include "runtime/egress_process.h"
#include "runtime/fd_socket.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"
#include "runtime/spawn_protocol.h"

namespace fairlead {
namespace {

// A blank is prepared only after this long without an order, so as not to compete with the sandbox just started.
constexpr int kRefillDelayMs = 20;

struct SandboxRecord {
  std::uint64_t instance = 0;  // 0: a blank
  UniqueFd pidfd;
  UniqueFd control;
  UniqueFd listener;              // of its Runtime API, once it is prepared, until the node has it
  std::vector<UniqueFd> outlets;  // the sockets of a way out, until its order is known
  WayOutProcess way_out;
  std::string failure;  // of the node, for which it was killed
  std::unique_ptr<Cgroup> cgroup;
};

class Spawner {
 public:
  Spawner(UniqueFd socket, UniqueFd signals, SpawnerOptions options)
      : socket_(std::move(socket)), signals_(std::move(signals)), options_(std::move(options)) {}
  ~Spawner() { shut_down(); }

  Status prepare();
  void run();

 private:
  bool handle_order();
  Status start(const StartOrder& order, const FdMessage& message);
  Status apply(const StartOrder& order, const FdMessage& message, pid_t pid, SandboxRecord& record);
  Result<std::vector<UniqueFd>> detach_binds(const StartOrder& order);
  Result<pid_t> make_blank();
  Result<pid_t> take_blank();
  Status await_prepared(SandboxRecord& record);
  Status give_way_out(const StartOrder& order, int log, SandboxRecord& record);
  void lose_way_out(pid_t pid);
  static void end_way_out(SandboxRecord& record);
  void reap();
  void report_exit(SandboxRecord& record, const rusage& usage);
  void tell_node(const std::string& note, std::span<const int> fds = {});
  void shut_down();

  UniqueFd socket_;
  UniqueFd signals_;
  SpawnerOptions options_;
  SandboxPlan plan_;
  WayOutPlan way_out_plan_;
  CgroupTree cgroups_;
  std::map<pid_t, SandboxRecord> sandboxes_;
  std::deque<pid_t> blanks_;
  std::uint64_t next_name_ = 1;
  bool blanks_work_ = true;
};

bool user_namespaces_work() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

Status Spawner::prepare() {
  ::umask(022);
  if (options_.use_cgroups) {
    cgroups_ = CgroupTree::open(::getpid());
    if (cgroups_.version() == CgroupVersion::kNone) {
      spdlog::warn("sandboxes have rlimits in place of cgroups: {}", cgroups_.why());
    }
  }
  plan_.root = ::geteuid() == 0;
  if (auto status = enter_own_namespaces(); !status) return status;
  plan_.user_namespaces = user_namespaces_work();
  if (plan_.root && !plan_.user_namespaces) spdlog::warn("sandboxes have no user namespace: the machine forbids them");
  if (!plan_.root && !plan_.user_namespaces) return fail(Errc::kUnavailable, "nested user namespaces are forbidden");
  plan_.template_dir = options_.template_dir;
  if (auto status = build_template(plan_.template_dir); !status) return status;
  Result<SeccompPrograms> programs = compile_seccomp();
  if (!programs) return fail(programs.error());
  plan_.seccomp = std::move(*programs);
  plan_.way_out = options_.way_out;
  if (options_.way_out) {
    Result<SeccompPrograms> platform = compile_platform_seccomp();
    if (!platform) return fail(platform.error());
    way_out_plan_ = {.root_dir = plan_.template_dir, .seccomp = *std::move(platform), .is_root = plan_.root};
  }
  // The first blank proves that the machine permits all of it.
  Result<pid_t> first = make_blank();
  if (!first) return fail(Errc::kUnavailable, "cannot make a sandbox: {}", first.error().message);
  SandboxRecord& record = sandboxes_.at(*first);
  if (auto status = await_prepared(record); !status) {
    return fail(Errc::kUnavailable, "cannot make a sandbox: {}", status.error().message);
  }
  blanks_.push_back(*first);
  return {};
}

// Waits until the blank has done all it can without an order.
Status Spawner::await_prepared(SandboxRecord& record) {
  if (record.listener) return {};
  FdMessage prepared;
  if (const int error = receive_message(record.control.get(), prepared); error != 0 || prepared.fds.empty()) {
    if (prepared.bytes.starts_with(kNodesFault)) prepared.bytes.erase(0, 1);
    return fail(Errc::kUnavailable, "{}", prepared.bytes.empty() ? "the sandbox ended while prepared" : prepared.bytes);
  }
  record.listener = std::move(prepared.fds[0]);
  prepared.fds.erase(prepared.fds.begin());
  record.outlets = std::move(prepared.fds);
  return {};
}

Result<pid_t> Spawner::make_blank() {
  std::unique_ptr<Cgroup> cgroup;
  if (cgroups_.version() != CgroupVersion::kNone) {
    Result<std::unique_ptr<Cgroup>> made = cgroups_.make(std::to_string(next_name_++));
    if (!made) return fail(made.error());
    cgroup = std::move(*made);
    if (auto status = cgroup->set_cpu(options_.cpu); !status) return fail(status.error());
  }
  Result<SocketPair> pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  Result<BlankProcess> blank = clone_blank(plan_, cgroup.get(), std::move(pair->second));
  if (!blank) return fail(blank.error());
  SandboxRecord& record = sandboxes_[blank->pid];
  record.pidfd = std::move(blank->pidfd);
  record.control = std::move(pair->first);
  record.cgroup = std::move(cgroup);
  return blank->pid;
}

Result<pid_t> Spawner::take_blank() {
  if (blanks_.empty()) return make_blank();
  const pid_t pid = blanks_.front();
  blanks_.pop_front();
  return pid;
}

Result<std::vector<UniqueFd>> Spawner::detach_binds(const StartOrder& order) {
  std::vector<UniqueFd> mounts;
  std::optional<MappedUser> user;
  if (plan_.root) user = {.uid = order.uid != 0 ? static_cast<uid_t>(order.uid) : kSandboxUid, .gid = kSandboxUid};
  for (const MountBind& bind : order.binds) {
    Result<UniqueFd> mount = detach_bind(bind, user);
    if (!mount) return fail(mount.error());
    mounts.push_back(std::move(*mount));
  }
  return mounts;
}

Status Spawner::start(const StartOrder& order, const FdMessage& message) {
  if (message.fds.size() != 1) return fail(Errc::kCorrupt, "start order without its log pipe");
  Result<pid_t> pid = take_blank();
  if (!pid) return fail(pid.error());
  SandboxRecord& record = sandboxes_.at(*pid);
  Status applied = apply(order, message, *pid, record);
  // Whatever happens to it from now on is reported by its end, or was by the caller.
  if (applied) {
    record.instance = order.instance;
  } else {
    ::kill(*pid, SIGKILL);
  }
  return applied;
}

Status Spawner::apply(const StartOrder& order, const FdMessage& message, pid_t pid, SandboxRecord& record) {
  Result<std::vector<UniqueFd>> mounts = detach_binds(order);
  if (!mounts) return fail(mounts.error());
  if (record.cgroup != nullptr) {
    const std::uint64_t way_out = order.egress_asked.empty() ? 0 : kWayOutTasks;
    auto status = record.cgroup->set_limits(order.memory_limit, order.max_processes + 1 + way_out);  // 1: init
    if (!status) return status;
  }
  if (auto status = await_prepared(record); !status) return status;
  if (auto status = give_way_out(order, message.fds[0].get(), record); !status) return status;
  std::vector<int> fds{message.fds[0].get()};
  for (const UniqueFd& mount : *mounts) fds.push_back(mount.get());
  if (const int error = send_message(record.control.get(), message.bytes, fds); error != 0) {
    return fail(errno_error(error, "send the order to the sandbox"));
  }
  const UniqueFd peak = record.cgroup == nullptr ? UniqueFd() : record.cgroup->open_memory_peak();
  const int started_fds[] = {record.pidfd.get(), record.listener.get(), peak.get()};
  tell_node(encode(StartedNote{order.instance, pid}), std::span(started_fds, peak ? 3 : 2));
  record.pidfd.reset();
  record.listener.reset();
  return {};
}

// A sandbox without one loses the sockets, which nothing leads to.
Status Spawner::give_way_out(const StartOrder& order, int log, SandboxRecord& record) {
  std::vector<UniqueFd> outlets = std::move(record.outlets);
  record.outlets.clear();
  if (order.egress_asked.empty()) return {};
  if (outlets.empty()) return fail(Errc::kUnavailable, "this node gives no function a way out");
  Result<EgressList> asked = EgressList::parse(order.egress_asked), granted = EgressList::parse(order.egress_granted);
  if (!asked) return fail(asked.error());
  if (!granted) return fail(granted.error());
  Result<WayOutProcess> process = start_way_out(way_out_plan_, {.terms = {*std::move(asked), *std::move(granted)},
                                                                .sockets = std::move(outlets),
                                                                .log = log,
                                                                .cgroup = record.cgroup.get(),
                                                                .uid = static_cast<uid_t>(order.uid)});
  if (!process) return fail(process.error());
  record.way_out = *std::move(process);
  return {};
}

// One that ended by itself: its function would wait for answers that nobody gives, so it ends as well.
void Spawner::lose_way_out(pid_t pid) {
  for (auto& [init, record] : sandboxes_) {
    if (record.way_out.pid != pid) continue;
    record.way_out.pid = -1;
    FdMessage last;
    (void)receive_message(record.way_out.control.get(), last, MSG_DONTWAIT);
    record.failure = "the process of its way out ended: " + (last.bytes.empty() ? "it was killed" : last.bytes);
    ::kill(init, SIGKILL);
    return;
  }
}

void Spawner::end_way_out(SandboxRecord& record) {
  const pid_t pid = std::exchange(record.way_out.pid, -1);
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

bool Spawner::handle_order() {
  FdMessage message;
  if (receive_message(socket_.get(), message) != 0 || message.bytes.empty()) return false;
  Result<StartOrder> order = decode_start_order(message.bytes);
  if (!order) {
    spdlog::error("spawner: {}", order.error().message);
    return false;
  }
  if (auto status = start(*order, message); !status) {
    tell_node(encode(ExitNote{
        .instance = order->instance, .failure = status.error().message, .memory_peak = 0, .is_nodes_fault = true}));
  }
  return true;
}

void Spawner::tell_node(const std::string& note, std::span<const int> fds) {
  // A failure means that the node has gone, which the next receive shows.
  (void)send_message(socket_.get(), note, fds);
}

void Spawner::report_exit(SandboxRecord& record, const rusage& usage) {
  ExitNote note{.instance = record.instance};
  note.memory_peak = usage.ru_maxrss * 1024;
  FdMessage last;
  if (receive_message(record.control.get(), last, MSG_DONTWAIT) == 0 && last.bytes.starts_with('X')) {
    note.ended = true;
    std::from_chars(last.bytes.data() + 1, last.bytes.data() + last.bytes.size(), note.wait_status);
  } else {
    note.is_nodes_fault = last.bytes.starts_with(kNodesFault);
    note.failure = last.bytes.substr(note.is_nodes_fault ? 1 : 0);
  }
  if (!record.failure.empty()) {
    note.failure = record.failure;
    note.is_nodes_fault = true;
  }
  if (record.cgroup != nullptr) {
    char text[32];
    const UniqueFd peak = record.cgroup->open_memory_peak();
    const ssize_t size = ::read(peak.get(), text, sizeof text);
    if (size > 0) std::from_chars(text, text + size, note.memory_peak);
    if (record.cgroup->out_of_memory_killed()) note.failure = "out of memory: it needed more than its memory limit";
  }
  tell_node(encode(note));
}

void Spawner::reap() {
  int status = 0;
  rusage usage{};
  pid_t pid = 0;
  while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
    const auto found = sandboxes_.find(pid);
    if (found == sandboxes_.end()) {
      lose_way_out(pid);
      continue;
    }
    end_way_out(found->second);  // before its log ends, and its control group
    if (found->second.instance != 0) report_exit(found->second, usage);
    // A blank that ends by itself: the machine is short of something, so make no more ahead.
    if (std::erase(blanks_, pid) > 0) blanks_work_ = false;
    sandboxes_.erase(found);
  }
}

void Spawner::shut_down() {
  for (const auto& [pid, record] : sandboxes_) ::kill(pid, SIGKILL);
  for (const auto& [pid, record] : sandboxes_) ::waitpid(pid, nullptr, 0);
  for (auto& [pid, record] : sandboxes_) end_way_out(record);
  sandboxes_.clear();
}

void Spawner::run() {
  tell_node(std::string(kSpawnerReady));
  while (true) {
    const bool refill = blanks_work_ && static_cast<int>(blanks_.size()) < options_.blanks;
    pollfd events[] = {{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    const int count = ::poll(events, std::size(events), refill ? kRefillDelayMs : -1);
    if (count == 0) {
      const Result<pid_t> blank = make_blank();
      blanks_work_ = blank.has_value();
      if (blank) blanks_.push_back(*blank);
    }
    if ((events[1].revents & POLLIN) != 0) {
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) > 0 && info.ssi_signo == SIGTERM) break;
      reap();
    }
    if (events[0].revents != 0 && !handle_order()) break;
  }
}

UniqueFd block_and_read_signals() {
  for (const int ignored : {SIGINT, SIGQUIT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2}) ::signal(ignored, SIG_IGN);
  for (const int handled : {SIGCHLD, SIGTERM}) ::signal(handled, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

[[noreturn]] void spawner_main(UniqueFd socket, const SpawnerOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::prctl(PR_SET_NAME, "fl-spawner");
  ::setsid();
  // Nothing the node had open (its store, its sockets) stays open here; 3 becomes the only descriptor.
  ::dup2(socket.release(), 3);
  ::close_range(4, ~0u, 0);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  {
    Spawner spawner(UniqueFd(3), block_and_read_signals(), options);
    if (auto status = spawner.prepare(); !status) {
      (void)send_message(3, status.error().message);
    } else {
      spawner.run();
    }
  }
  ::_exit(0);
}

}  // namespace

void run_launched_spawner(const SpawnerOptions& options) {
  spawner_main(UniqueFd(3), options);
}

Result<SpawnerProcess> start_spawner(const SpawnerOptions& options) {
  Result<SocketPair> pair = make_seqpacket_pair();
  if (!pair) return fail(pair.error());
  const pid_t pid = ::fork();
  if (pid < 0) return fail(errno_error(errno, "fork the spawner"));
  if (pid == 0) spawner_main(std::move(pair->second), options);
  pair->second.reset();
  FdMessage answer;
  if (const int error = receive_message(pair->first.get(), answer); error != 0 || answer.bytes != kSpawnerReady) {
    pair->first.reset();
    ::waitpid(pid, nullptr, 0);
    return fail(Errc::kUnavailable, "{}", answer.bytes.empty() ? "the spawner ended at its start" : answer.bytes);
  }
  return SpawnerProcess{pid, std::move(pair->first)};
}

}  // namespace fairlead
