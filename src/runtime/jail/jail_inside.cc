#include "runtime/jail/jail_inside.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/read_file.h"
#include "model/registry_rules.h"
#include "runtime/confinement.h"
#include "runtime/fd_socket.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_root.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

constexpr int kPassed = 3;  // the descriptor that the program gets beside its streams
constexpr rlim_t kMaxOpenFiles = 65536;
constexpr long kLookAtWrittenNs = 100'000'000;
constexpr std::size_t kMostCopied = 256;  // files
constexpr std::size_t kMostCopiedBytes = 1 << 20;
// What a tool needs that gives files to the ids of an image. They reach no file of other ids.
constexpr std::uint64_t kOwnersRights =
    1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER | 1ull << CAP_FSETID | 1ull << CAP_SETFCAP;
// The filter forbids open_by_handle_at, with which this right reaches files that have no name in the jail.
constexpr std::uint64_t kReadersRights = 1ull << CAP_DAC_READ_SEARCH;

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

// Files of the host, read while they can be seen and written where they cannot. Links are followed: the operator set them.
class Copies {
 public:
  void read(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
        if (folders_ < kMostCopied && entry.is_directory(ignored)) ++folders_;
        if (folders_ < kMostCopied) read(entry.path());
      }
    } else if (fs::is_regular_file(path, ignored) && fs::file_size(path, ignored) <= kMostCopiedBytes &&
               files_.size() < kMostCopied) {
      if (auto text = read_whole_file(path)) files_.emplace_back(path, std::move(*text));
    }
  }

  Status write() const {
    for (const auto& [path, text] : files_) {
      std::error_code ignored;
      fs::create_directories(fs::path(path).parent_path(), ignored);
      const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!file || ::write(file.get(), text.data(), text.size()) != std::ssize(text)) return failed("copy " + path);
    }
    return {};
  }

 private:
  std::vector<std::pair<std::string, std::string>> files_;
  std::size_t folders_ = 0;
};

class Init {
 public:
  Init(const JailInside& jail, UniqueFd control) : jail_(jail), control_(std::move(control)) {}

  [[noreturn]] void run() {
    close_others();
    if (auto status = prepare(); !status) give_up(status.error());
    if (auto status = confine(); !status) give_up(status.error());
    const Result<pid_t> program = start();
    if (!program) give_up(program.error());
    supervise(*program);
  }

 private:
  [[noreturn]] void give_up(const Error& error) {
    send_message(control_.get(), error.message);
    ::_exit(1);
  }

  // Nothing of the node's but the streams and what is passed.
  void close_others() {
    if (!jail_.has_passed) ::close(kPassed);
    constexpr int kControl = kPassed + 1;
    const int control = ::fcntl(control_.release(), F_DUPFD_CLOEXEC, kControl);
    if (control != kControl) ::dup3(control, kControl, O_CLOEXEC);
    control_.reset(kControl);
    ::close_range(kPassed + 2, ~0u, 0);
  }

  Status prepare() {
    if (auto status = die_with_parent(control_.get()); !status) return status;
    if (jail_.cgroup != nullptr) {
      if (auto status = jail_.cgroup->join(); !status) return status;
    }
    if (::setsid() < 0) return failed("setsid");
    if (auto status = bring_loopback_up(); !status) return status;
    if (jail_.spec.has_network) {
      if (auto status = hand_out_listeners(); !status) return status;
    }
    constexpr std::string_view kHost = "jail";
    if (::sethostname(kHost.data(), kHost.size()) != 0) return failed("sethostname");
    return build_root();
  }

  Status hand_out_listeners() {
    Result<UniqueFd> proxy = listen_on_loopback(kProxyPort);
    if (!proxy) return fail(proxy.error());
    UniqueFd registry;
    if (!jail_.spec.registry.empty()) {
      Result<UniqueFd> listener = listen_on_loopback(split_host_port(jail_.spec.registry).port);
      if (!listener) return fail(listener.error());
      registry = std::move(*listener);
    }
    const int fds[] = {proxy->get(), registry.get()};
    const std::size_t count = registry ? 2 : 1;
    if (const int error = send_message(control_.get(), kWayOut, std::span(fds, count)); error != 0) {
      return fail(errno_error(error, "hand out the listening sockets"));
    }
    return {};
  }

  Status build_root() {
    StartOrder order{.binds = jail_.spec.binds, .tmp_limit = jail_.spec.tmp};
    std::vector<UniqueFd> mounts;  // taken before the template hides anything
    for (const MountBind& bind : order.binds) {
      Result<UniqueFd> mount = detach_bind(bind, {});
      if (!mount) return fail(mount.error());
      mounts.push_back(std::move(*mount));
    }
    if (auto status = build_template(jail_.spec.root_dir); !status) return status;
    Copies copies;
    for (const std::string& path : jail_.spec.copies) copies.read(path);
    if (auto status = enter_template(jail_.spec.root_dir); !status) return status;
    if (auto status = copies.write(); !status) return status;
    return mount_order(order, mounts, 0);
  }

  Status confine() {
    const JailSpec& spec = jail_.spec;
    (void)write_text("/proc/self/oom_score_adj", "500");  // a machine out of memory loses this first
    if (auto status = limit_resource(RLIMIT_CORE, 0, "CORE"); !status) return status;
    if (auto status = limit_resource(RLIMIT_NOFILE, kMaxOpenFiles, "NOFILE"); !status) return status;
    const auto bytes = [](Bytes count) { return static_cast<rlim_t>(count.count()); };
    if (spec.written.count() > 0) {
      if (auto status = limit_resource(RLIMIT_FSIZE, bytes(spec.written), "FSIZE"); !status) return status;
    }
    if (jail_.cgroup == nullptr && spec.memory.count() > 0 && !spec.reserves_memory) {
      if (auto status = limit_resource(RLIMIT_DATA, bytes(spec.memory), "DATA"); !status) return status;
    }
    const bool is_owner = jail_.is_root && spec.ids > 1;
    const std::uint64_t kept = is_owner ? kOwnersRights : jail_.is_root && spec.reads_all ? kReadersRights : 0;
    if (auto status = is_owner ? become_owner() : become_nobody(); !status) return status;
    if (auto status = die_with_parent(control_.get()); !status) return status;
    if (auto status = limit_resource(RLIMIT_NPROC, spec.processes + 1, "NPROC"); !status) return status;  // 1: init
    if (auto status = drop_capabilities(kept, spec.reads_all); !status) return status;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
    if (const int error = load_seccomp(jail_.seccomp); error != 0) return fail(errno_error(error, "load seccomp"));
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return failed("PR_SET_DUMPABLE");
    return {};
  }

  // One user without rights.
  Status become_nobody() {
    const uid_t uid = jail_.is_root ? jail_.spec.uid : 0;  // 0: the only one in the namespace of the one outside
    const gid_t gid = jail_.is_root ? jail_.spec.gid : 0;
    if (jail_.is_root) {
      if (jail_.spec.reads_all) ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
      if (auto status = change_ids(uid, gid); !status) return status;
      if (jail_.spec.reads_all) return {};
    }
    Status entered = enter_user_namespace(kInnerUid, uid, gid);
    // A machine that forbids them to root: the user has no rights all the same.
    if (!entered && jail_.is_root) return {};
    return entered;
  }

  // Root of the ids from spec.uid on, which only the one outside may map.
  Status become_owner() {
    if (::unshare(CLONE_NEWUSER) != 0) return failed("unshare(CLONE_NEWUSER)");
    FdMessage mapped;
    if (send_message(control_.get(), kMapIds) != 0 || receive_message(control_.get(), mapped) != 0 ||
        mapped.bytes.empty()) {
      ::_exit(1);
    }
    return change_ids(0, 0);
  }

  Result<pid_t> start() {
    sigset_t handled, none, all;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    ::sigprocmask(SIG_SETMASK, &handled, nullptr);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    std::vector<std::string> words = jail_.program;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = -1;
    const int error = ::posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) return fail(errno_error(error, "start " + words[0]));
    if (jail_.has_passed) ::close(kPassed);
    return pid;
  }

  // What the program wrote so far; its children's bytes are its own when it has waited for them.
  static std::uint64_t written_by(pid_t pid) {
    std::istringstream lines(read_whole_file(fmt::format("/proc/{}/io", pid)).value_or(""));
    std::uint64_t most = 0;
    std::string key;
    for (std::uint64_t count = 0; lines >> key >> count;) {
      if (key == "wchar:" || key == "write_bytes:") most = std::max(most, count);
    }
    return most;
  }

  [[noreturn]] void supervise(pid_t program) {
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    const auto limit = static_cast<std::uint64_t>(jail_.spec.written.count());
    while (true) {
      int status = 0;
      pid_t pid = 0;
      while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != program) continue;
        send_message(control_.get(), "X" + std::to_string(status));
        ::_exit(0);
      }
      if (limit == 0) {
        ::sigwaitinfo(&handled, nullptr);
        continue;
      }
      const timespec pause{0, kLookAtWrittenNs};
      ::sigtimedwait(&handled, nullptr, &pause);
      if (written_by(program) > limit) {
        give_up({Errc::kTooLarge, fmt::format("{} wrote more than {} bytes", jail_.program[0], limit)});
      }
    }
  }

  const JailInside& jail_;
  UniqueFd control_;
};

}  // namespace

void run_jail_inside(const JailInside& jail, UniqueFd control) {
  Init(jail, std::move(control)).run();
}

}  // namespace fairlead
