#include "runtime/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "base/unique_fd.h"
#include "runtime/seccomp_allow_list.h"

namespace fairlead {
namespace {

// set_mempolicy_home_node, Linux 5.17: the newest call the list below was written against.
constexpr std::uint32_t kNewestKnownCall = 450;

constexpr int kDenied[] = {
    // the file tree
    SCMP_SYS(mount),
    SCMP_SYS(umount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(fanotify_mark),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    // namespaces and other processes
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    // the kernel
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(create_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(syslog),
    SCMP_SYS(acct),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(modify_ldt),
    SCMP_SYS(vhangup),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(uselib),
    SCMP_SYS(ustat),
    SCMP_SYS(sysfs),
    // keys, clock, names
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(stime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
};

constexpr unsigned long kNamespaceFlags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                             CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

constexpr int kAllowedFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

bool is_allowed_family(int family) {
  for (const int allowed : kAllowedFamilies) {
    if (family == allowed) return true;
  }
  return false;
}

// Not namespaced families (vsock, above all) would be a way out of the network namespace.
int add_socket_rules(scmp_filter_ctx filter) {
  int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
  for (int family = 0; family < AF_NETLINK && error == 0; ++family) {
    if (is_allowed_family(family)) continue;
    error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(family)));
  }
  return error;
}

int set_attributes(scmp_filter_ctx filter) {
  const int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  return error != 0 ? error : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree over the numbers
}

int add_denied(scmp_filter_ctx filter) {
  int error = set_attributes(filter);
  for (const int call : kDenied) {
    if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
  }
  for (const unsigned long flag : kNamespaceFlags) {
    if (error != 0) break;
    error =
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  return error == 0 ? add_socket_rules(filter) : error;
}

// New threads and processes, but no namespaces; sockets of the families that have a namespace, and of netlink the routes alone, which
// the C library and Go look at.
int add_argument_rules(scmp_filter_ctx filter) {
  scmp_datum_t namespaces = 0;
  for (const unsigned long flag : kNamespaceFlags) namespaces |= flag;
  int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
  for (const int family : {AF_UNIX, AF_INET, AF_INET6}) {
    if (error != 0) break;
    error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(family)));
  }
  if (error != 0) return error;
  return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                          SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
}

int add_allowed(scmp_filter_ctx filter) {
  int error = set_attributes(filter);
  for (const int call : platform_calls()) {
    if (error == 0 && call >= 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  }
  if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  return error == 0 ? add_argument_rules(filter) : error;
}

Result<std::vector<sock_filter>> exported(scmp_filter_ctx filter) {
  const UniqueFd memory(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!memory) return fail(errno_error(errno, "memfd_create for the seccomp program"));
  if (const int error = seccomp_export_bpf(filter, memory.get()); error != 0) {
    return fail(errno_error(-error, "seccomp_export_bpf"));
  }
  const off_t size = ::lseek(memory.get(), 0, SEEK_END);
  std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (::pread(memory.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
    return fail(errno_error(errno, "read of the seccomp program"));
  }
  return program;
}

Result<SeccompPrograms> compile(std::uint32_t otherwise, int (*add_rules)(scmp_filter_ctx)) {
  const std::unique_ptr<void, decltype(&seccomp_release)> filter(seccomp_init(otherwise), &seccomp_release);
  if (!filter) return fail(Errc::kInternal, "seccomp_init failed: out of memory");
  if (const int error = add_rules(filter.get()); error != 0) return fail(errno_error(-error, "seccomp rules"));
  Result<std::vector<sock_filter>> known = exported(filter.get());
  if (!known) return fail(known.error());
  return SeccompPrograms{
      .known = std::move(*known),
      .newer = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kNewestKnownCall, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
}

}  // namespace

Result<SeccompPrograms> compile_seccomp() {
  return compile(SCMP_ACT_ALLOW, &add_denied);
}

// One program: the first of two would not allow to load the second.
Result<SeccompPrograms> compile_platform_seccomp() {
  const Result<SeccompPrograms> programs = compile(SCMP_ACT_ERRNO(EPERM), &add_allowed);
  if (!programs) return fail(programs.error());
  return SeccompPrograms{.known = joined(*programs), .newer = {}};
}

std::vector<sock_filter> joined(const SeccompPrograms& programs) {
  std::vector<sock_filter> program = programs.newer;
  program.pop_back();  // its last instruction allows; here the other program has the last word
  program.insert(program.end(), programs.known.begin(), programs.known.end());
  return program;
}

int load_seccomp(const SeccompPrograms& programs) {
  for (const std::vector<sock_filter>* program : {&programs.known, &programs.newer}) {
    if (program->empty()) continue;
    const sock_fprog loaded{static_cast<unsigned short>(program->size()), const_cast<sock_filter*>(program->data())};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) != 0) return errno;
  }
  return 0;
}

}  // namespace fairlead
