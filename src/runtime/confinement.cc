#include "runtime/confinement.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace fairlead {
namespace {

constexpr int kListenBacklog = 16;

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

Status map_own_ids(std::uint32_t inner, uid_t uid, gid_t gid) {
  if (auto status = write_text("/proc/self/uid_map", fmt::format("{} {} 1", inner, uid)); !status) return status;
  if (auto status = write_text("/proc/self/setgroups", "deny"); !status) return status;
  return write_text("/proc/self/gid_map", fmt::format("{} {} 1", inner, gid));
}

}  // namespace

Status write_text(const char* path, std::string_view text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0) return failed(fmt::format("write {}", path));
  return {};
}

Status enter_own_namespaces() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const bool is_root = uid == 0;
  if (::unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)) != 0) {
    return fail(Errc::kUnavailable, "sandboxes need {}: {}",
                is_root ? "the right to make mount namespaces (CAP_SYS_ADMIN)" : "user namespaces, or root",
                std::system_category().message(errno));
  }
  if (!is_root) {
    if (auto status = map_own_ids(0, uid, gid); !status) return status;
  }
  // The host's later mounts still arrive here; ours never reach the host.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return failed("make mounts private");
  return {};
}

Status die_with_parent(int control) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("PR_SET_PDEATHSIG");
  pollfd peer{control, 0, 0};
  if (::poll(&peer, 1, 0) > 0 && (peer.revents & POLLHUP) != 0) ::_exit(1);
  return {};
}

Status limit_resource(__rlimit_resource resource, rlim_t value, const char* name) {
  rlimit current{};
  ::getrlimit(resource, &current);
  const rlim_t bounded = std::min(value, current.rlim_max);
  const rlimit wanted{bounded, bounded};
  if (::setrlimit(resource, &wanted) != 0) return failed(fmt::format("setrlimit {} {}", name, bounded));
  return {};
}

Status change_ids(uid_t uid, gid_t gid) {
  if (::setgroups(0, nullptr) != 0) return failed("setgroups");
  if (::setresgid(gid, gid, gid) != 0) return failed("setresgid");
  if (::setresuid(uid, uid, uid) != 0) return failed("setresuid");
  return {};
}

Status enter_user_namespace(std::uint32_t inner, uid_t uid, gid_t gid) {
  if (::unshare(CLONE_NEWUSER) != 0) return failed("unshare(CLONE_NEWUSER)");
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return failed("PR_SET_DUMPABLE");  // else /proc/self is not ours to write
  return map_own_ids(inner, uid, gid);
}

Status drop_capabilities(std::uint64_t kept, bool pass_on) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  // Who changed ids and kept what he had has it for the asking.
  if (::syscall(SYS_capget, &header, sets) == 0) {
    for (auto& set : sets) set.effective = set.permitted;
    ::syscall(SYS_capset, &header, sets);
  }
  // Fails with EINVAL after the last capability the kernel knows.
  for (int capability = 0; capability < 64; ++capability) {
    if ((kept >> capability & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  }
  sets[0] = sets[1] = {};
  for (int half = 0; half < 2; ++half) {
    sets[half].effective = sets[half].permitted = static_cast<std::uint32_t>(kept >> (32 * half));
    if (pass_on) sets[half].inheritable = sets[half].permitted;
  }
  if (::syscall(SYS_capset, &header, sets) != 0) return failed("capset");
  for (int capability = 0; pass_on && capability < 64; ++capability) {
    if ((kept >> capability & 1) == 0) continue;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) return failed("PR_CAP_AMBIENT_RAISE");
  }
  return {};
}

Status bring_loopback_up() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!socket || ::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return failed("bring loopback up");
  return {};
}

Result<UniqueFd> listen_on_loopback(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kListenBacklog) != 0) {
    return fail(errno_error(errno, fmt::format("listen on 127.0.0.1:{}", port)));
  }
  return socket;
}

}  // namespace fairlead
