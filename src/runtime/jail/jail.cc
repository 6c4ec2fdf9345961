#include "runtime/jail/jail.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "model/image.h"
#include "runtime/confinement.h"
#include "runtime/fd_socket.h"
#include "runtime/jail/egress_proxy.h"
#include "runtime/jail/jail_inside.h"

namespace fairlead {
namespace {

constexpr rlim_t kProxyMemory = rlim_t{1} << 30;
constexpr int kPassed = 3;
constexpr int kSignalled = 256;  // what follow() gives for a program that a signal ended: this and the signal

void say(const std::string& why) {
  std::fprintf(stderr, "fairlead jail: %s\n", why.c_str());
}

// The one outside: what needs the host's rights, which the one inside does not have, and what must outlive it.
class Outside {
 public:
  Outside(const JailSpec& spec, const std::vector<std::string>& program) : spec_(spec), program_(program) {}

  int run() {
    const Status made = make();
    if (!made) say(made.error().message);
    const int result = made ? follow() : kNoJail;
    end();
    return result;
  }

 private:
  Status make() {
    is_root_ = ::geteuid() == 0;
    has_passed_ = ::fcntl(kPassed, F_GETFD) >= 0;
    // The number is taken either way: nothing that is opened below may have it.
    if (!has_passed_) {
      UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (null.get() == kPassed) {
        null.release();
      } else {
        ::dup2(null.get(), kPassed);
      }
    }
    ::umask(022);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::prctl(PR_SET_NAME, "fl-jail");
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
    ::sigprocmask(SIG_SETMASK, &set, nullptr);
    signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC));
    if (auto status = make_cgroup(); !status) return status;
    set_proxy_variables();
    if (auto status = enter_own_namespaces(); !status) return status;
    Result<SeccompPrograms> seccomp = compile_platform_seccomp();
    if (!seccomp) return fail(seccomp.error());
    seccomp_ = std::move(*seccomp);
    return clone_inside();
  }

  Status make_cgroup() {
    tree_ = CgroupTree::open(::getpid());
    if (tree_.version() == CgroupVersion::kNone) return {};
    Result<std::unique_ptr<Cgroup>> group = tree_.make("jail");
    if (!group) return fail(group.error());
    cgroup_ = std::move(*group);
    if (auto status = cgroup_->set_limits(spec_.memory, spec_.processes + 1); !status) return status;
    return cgroup_->set_cpu(spec_.cpu);
  }

  // The host's own proxy, where it has one, is for the one outside.
  void set_proxy_variables() {
    for (const char* name : {"HTTPS_PROXY", "https_proxy"}) {
      if (const char* value = std::getenv(name); value != nullptr && upstream_.empty()) upstream_ = value;
    }
    for (const char* name :
         {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy"}) {
      ::unsetenv(name);
    }
    if (!spec_.has_network) return;
    const std::string proxy = fmt::format("http://127.0.0.1:{}", kProxyPort);
    for (const char* name : {"HTTPS_PROXY", "HTTP_PROXY"}) ::setenv(name, proxy.c_str(), 1);
  }

  Status clone_inside() {
    Result<SocketPair> pair = make_seqpacket_pair();
    if (!pair) return fail(pair.error());
    constexpr unsigned long kFlags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | SIGCHLD;
    const long pid = ::syscall(SYS_clone, kFlags, nullptr, nullptr, nullptr, 0ul);
    if (pid < 0) return fail(errno_error(errno, "clone a jail"));
    if (pid == 0) {
      run_jail_inside({spec_, program_, seccomp_, cgroup_.get(), is_root_, has_passed_}, std::move(pair->second));
    }
    inside_ = static_cast<pid_t>(pid);
    control_ = std::move(pair->first);
    ::close(kPassed);  // its end must be the program's end
    return {};
  }

  // Until the program has ended. What this process ends with.
  int follow() {
    while (true) {
      pollfd events[] = {{control_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      if (::poll(events, std::size(events), -1) < 0) continue;
      if (events[0].revents != 0) {
        FdMessage message;
        if (receive_message(control_.get(), message) != 0 || message.bytes.empty()) return ended_silently();
        if (message.bytes.starts_with('X')) return status_in(message.bytes);
        if (auto status = help(message); !status) {
          say(status.error().message);
          return kNoJail;
        }
      }
      if (events[1].revents != 0) {
        signalfd_siginfo info{};
        if (::read(signals_.get(), &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD) {
          return kSignalled + static_cast<int>(info.ssi_signo);
        }
      }
    }
  }

  Status help(FdMessage& message) {
    if (message.bytes == kMapIds) return map_ids();
    if (message.bytes == kWayOut) return start_proxy(message.fds);
    return fail(Errc::kUnavailable, "{}", message.bytes);
  }

  Status map_ids() const {
    if (auto status = check_image_ids(); !status) return status;
    const std::string map_uid = fmt::format("0 {} {}", spec_.uid, spec_.ids);
    const std::string map_gid = fmt::format("0 {} {}", spec_.gid, spec_.ids);
    const std::string folder = fmt::format("/proc/{}/", inside_);
    if (auto status = write_text((folder + "uid_map").c_str(), map_uid); !status) return status;
    if (auto status = write_text((folder + "gid_map").c_str(), map_gid); !status) return status;
    send_message(control_.get(), "mapped");
    return {};
  }

  // Of no user of the host.
  Status check_image_ids() const {
    constexpr std::uint32_t kFirst = 65536;
    if (spec_.uid >= kFirst && spec_.gid >= kFirst) return {};
    return fail(Errc::kInvalidArgument, "a jail may not own the ids from {}, which are the host's", spec_.uid);
  }

  Status start_proxy(std::vector<UniqueFd>& sockets) {
    Result<RegistryRules> rules = RegistryRules::parse(spec_.registries);
    if (!rules) return fail(rules.error());
    if (sockets.empty()) return fail(Errc::kCorrupt, "the jail handed out no socket");
    const pid_t self = ::getpid();
    proxy_ = ::fork();
    if (proxy_ < 0) return fail(errno_error(errno, "fork the proxy"));
    if (proxy_ > 0) return {};
    control_.reset();
    const Status confined = confine_proxy(self);
    if (!confined) {
      say(confined.error().message);
      ::_exit(1);
    }
    EgressOptions options{.rules = *std::move(rules),
                          .proxy = std::move(sockets[0]),
                          .registry_listener = sockets.size() > 1 ? std::move(sockets[1]) : UniqueFd(),
                          .registry = split_host_port(spec_.registry),
                          .most_bytes = static_cast<std::uint64_t>(kMaxImageBytes),
                          .upstream = upstream_};
    run_egress_proxy(std::move(options));
  }

  Status confine_proxy(pid_t parent) const {
    ::setsid();
    // Reads the host's resolver files, which everybody may; nothing of the host is its own.
    if (is_root_) {
      if (auto status = change_ids(spec_.uid + 1, spec_.gid + 1); !status) return status;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // gone before the kernel was told
    if (auto status = limit_resource(RLIMIT_CORE, 0, "CORE"); !status) return status;
    if (auto status = limit_resource(RLIMIT_DATA, kProxyMemory, "DATA"); !status) return status;
    if (auto status = limit_resource(RLIMIT_FSIZE, 0, "FSIZE"); !status) return status;
    if (auto status = drop_capabilities(); !status) return status;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail(errno_error(errno, "PR_SET_NO_NEW_PRIVS"));
    if (const int error = load_seccomp(seccomp_); error != 0) return fail(errno_error(error, "load seccomp"));
    return {};
  }

  int ended_silently() {
    say_whether_out_of_memory();
    return kSignalled + SIGKILL;
  }

  // Of a wait status.
  int status_in(const std::string& text) {
    int status = 0;
    std::from_chars(text.data() + 1, text.data() + text.size(), status);
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    if (WTERMSIG(status) == SIGKILL) say_whether_out_of_memory();
    return kSignalled + WTERMSIG(status);
  }

  void say_whether_out_of_memory() {
    reap_inside();
    if (cgroup_ == nullptr || !cgroup_->out_of_memory_killed()) return;
    say(fmt::format("out of memory: {} needed more than {} bytes", program_[0], spec_.memory.count()));
  }

  void reap_inside() {
    if (inside_ <= 0) return;
    ::kill(inside_, SIGKILL);
    while (::waitpid(inside_, nullptr, 0) < 0 && errno == EINTR) {
    }
    inside_ = -1;
  }

  void end() {
    reap_inside();
    if (proxy_ > 0) {
      ::kill(proxy_, SIGKILL);
      ::waitpid(proxy_, nullptr, 0);
    }
    cgroup_.reset();
  }

  const JailSpec& spec_;
  const std::vector<std::string>& program_;
  bool is_root_ = false, has_passed_ = false;
  std::string upstream_;
  SeccompPrograms seccomp_;
  CgroupTree tree_;
  std::unique_ptr<Cgroup> cgroup_;
  UniqueFd signals_, control_;
  pid_t inside_ = -1, proxy_ = -1;
};

// As the program ended, so that who waits for this process learns of its signal.
int end_alike(int status) {
  if (status < kSignalled) return status;
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int signal = status - kSignalled;
  ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::raise(signal);
  return 128 + signal;
}

}  // namespace

int run_jail(const JailSpec& spec, const std::vector<std::string>& program) {
  int status = kNoJail;
  {
    Outside outside(spec, program);
    status = outside.run();
  }
  return end_alike(status);
}

}  // namespace fairlead
