// Both filters, each loaded by a child that then makes calls and says what the kernel answered.
#include "runtime/seccomp_filter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace fairlead {
namespace {

// errno of the call, 0 where it succeeded; -1 where the child did not get so far.
int answer(const Result<SeccompPrograms>& programs, long number, long first = 0, long second = 0, long third = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (load_seccomp(*programs) != 0) ::_exit(255);
    errno = 0;
    const long result = ::syscall(number, first, second, third, 0, 0, 0);
    ::_exit(result >= 0 ? 0 : errno);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

TEST(SeccompFilter, WhatRunsInJailsMakesListedCallsAlone) {
  const auto platform = compile_platform_seccomp();
  ASSERT_TRUE(platform);
  EXPECT_EQ(answer(platform, SYS_getpid), 0);
  EXPECT_EQ(answer(platform, SYS_memfd_create, reinterpret_cast<long>("x"), 0), 0);
  for (const long number :
       {SYS_shmget,         SYS_semget,      SYS_msgget,          SYS_inotify_init1, SYS_mq_open,
        SYS_personality,    SYS_setuid,      SYS_setgroups,       SYS_ptrace,        SYS_mount,
        SYS_unshare,        SYS_setns,       SYS_chroot,          SYS_bpf,           SYS_keyctl,
        SYS_io_uring_setup, SYS_userfaultfd, SYS_perf_event_open, SYS_io_setup,      SYS_vmsplice}) {
    EXPECT_EQ(answer(platform, number), EPERM) << number;
  }
  for (const long newer : {451L, 467L, 4000L, 0x40000000L + SYS_getpid})
    EXPECT_EQ(answer(platform, newer), ENOSYS) << newer;
  EXPECT_EQ(answer(platform, SYS_clone3), ENOSYS);
}

TEST(SeccompFilter, ArgumentsAreLookedAt) {
  const auto platform = compile_platform_seccomp();
  ASSERT_TRUE(platform);
  EXPECT_EQ(answer(platform, SYS_socket, AF_UNIX, SOCK_STREAM), 0);
  EXPECT_EQ(answer(platform, SYS_socket, AF_NETLINK, SOCK_RAW, 0), 0) << "routes";
  for (const int protocol : {2, 9, 12, 15, 16})
    EXPECT_EQ(answer(platform, SYS_socket, AF_NETLINK, SOCK_RAW, protocol), EPERM);
  for (const long family : {AF_VSOCK, AF_ALG, AF_PACKET, AF_BLUETOOTH, 45}) {
    EXPECT_EQ(answer(platform, SYS_socket, family, SOCK_STREAM), EPERM) << family;
  }
  for (const long flags : {0x10000000L, 0x40000000L, 0x20000000L, 0x00020000L, 0x04000000L, 0x08000000L, 0x02000000L}) {
    EXPECT_EQ(answer(platform, SYS_clone, flags | SIGCHLD), EPERM) << flags;
  }
}

TEST(SeccompFilter, FunctionsMakeAllCallsButThoseOnTheirList) {
  const auto functions = compile_seccomp();
  ASSERT_TRUE(functions);
  EXPECT_EQ(answer(functions, SYS_inotify_init1), 0) << "any language's runtime may watch files";
  for (const long number : {SYS_ptrace, SYS_mount, SYS_unshare, SYS_bpf, SYS_keyctl, SYS_io_uring_setup}) {
    EXPECT_EQ(answer(functions, number), EPERM) << number;
  }
  EXPECT_EQ(answer(functions, 451), ENOSYS);
}

}  // namespace
}  // namespace fairlead
