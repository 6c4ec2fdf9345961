// What a program in a jail can and cannot do, from inside: shell and Python scripts that try.
#include "runtime/jail/jail.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "model/image_ids.h"
#include "runtime/sandbox_support.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uid_t kUid = 64123;  // of nobody

class JailTest : public testing::Test {
 protected:
  JailTest() {
    char pattern[] = "/tmp/fairlead-jail-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    fs::permissions(folder_, fs::perms(0755));
    fs::create_directories(folder_ + "/root");
    fs::create_directories(folder_ + "/shared");
    spec_.root_dir = folder_ + "/root";
    spec_.uid = spec_.gid = kUid;
  }
  ~JailTest() override { fs::remove_all(folder_); }

  void SetUp() override {
    const SandboxSupport support = probe_sandbox_support();
    if (!support.possible()) GTEST_SKIP() << support.obstacle();
  }

  struct Ended {
    int status = 0;  // wait status
    std::string said;
  };
  // A process that runs the jail; what the jail and its program say comes out of `output`.
  pid_t start(const std::vector<std::string>& program, UniqueFd& output, int passed = -1) const {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output.reset(ends[0]);
    const UniqueFd input(ends[1]);
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    if (passed >= 0) ::dup2(passed, 3);
    if (passed < 0) ::close(3);
    ::_exit(run_jail(spec_, program));
  }
  static Ended wait_for(pid_t pid, const UniqueFd& output) {
    Ended ended;
    char buffer[4096];
    ssize_t size = 0;
    while ((size = ::read(output.get(), buffer, sizeof buffer)) > 0)
      ended.said.append(buffer, static_cast<std::size_t>(size));
    ::waitpid(pid, &ended.status, 0);
    return ended;
  }
  Ended run(const std::vector<std::string>& program) const {
    UniqueFd output;
    const pid_t pid = start(program, output);
    return wait_for(pid, output);
  }
  Ended shell(const std::string& script) const { return run({"/bin/sh", "-c", script}); }
  Ended python(const std::string& script) const { return run({"/usr/bin/python3", "-c", script}); }
  void share(bool writable = true) {
    spec_.binds.push_back({folder_ + "/shared", folder_ + "/shared", writable});
    EXPECT_EQ(::geteuid() == 0 ? ::chown((folder_ + "/shared").c_str(), spec_.uid, spec_.gid) : 0, 0);
  }

  std::string folder_;
  JailSpec spec_;
};

TEST_F(JailTest, EndsAsItsProgramEnded) {
  EXPECT_EQ(WEXITSTATUS(shell("exit 7").status), 7);
  EXPECT_EQ(WEXITSTATUS(shell("exit 130").status), 130);
  const Ended killed = shell("kill -9 $$");
  EXPECT_TRUE(WIFSIGNALED(killed.status) && WTERMSIG(killed.status) == SIGKILL) << killed.status;
  const Ended crashed = python("import ctypes; ctypes.string_at(0)");
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGSEGV) << crashed.status;
  EXPECT_FALSE(WCOREDUMP(crashed.status));
}

TEST_F(JailTest, AProgramThatIsNotThereIsNamed) {
  const Ended ended = run({"/nowhere"});
  EXPECT_EQ(WEXITSTATUS(ended.status), kNoJail);
  EXPECT_THAT(ended.said, HasSubstr("start /nowhere: No such file"));
}

TEST_F(JailTest, HasNoRightsAndAFilter) {
  const Ended ended = shell("id -u; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status");
  for (const char* line : {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                           "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}) {
    EXPECT_THAT(ended.said, HasSubstr(line));
  }
  EXPECT_THAT(ended.said, testing::StartsWith("1000\n"));
}

// By number, as libraries would not let it try: x86-64's.
TEST_F(JailTest, MakesTheSystemCallsOnTheListAndNoOthers) {
  const std::string script = R"(
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def answer(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno()
named = {"shmget": 29, "semget": 64, "msgget": 68, "ptrace": 101, "personality": 135, "sysfs": 139, "mount": 165, "setuid": 105,
         "setgroups": 116, "setns": 308, "unshare": 272, "chroot": 161, "keyctl": 250, "inotify_init": 253, "mq_open": 240,
         "perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "landlock_create_ruleset": 444,
         "vmsplice": 278, "io_setup": 206, "migrate_pages": 256, "process_vm_readv": 310, "memfd_secret": 447, "quotactl": 179}
for name, number in named.items():
    print(name, answer(number, 0, 0, 0, 0, 0, 0))
print("clone3", answer(435, 0, 0)); print("newer", answer(451, 0), answer(4000, 0))
print("x32", answer(0x40000000 + 39))
for name, flags in (("newuser", 0x10000000), ("newnet", 0x40000000), ("newpid", 0x20000000), ("newns", 0x20000)):
    print("clone", name, answer(56, flags | 17, 0, 0, 0, 0))
for family in (*range(0, 50), 1 << 32 | 40):
    print("family", family, answer(41, family, 1, 0))
for protocol in range(0, 23):
    print("netlink", protocol, answer(41, 16, 3, protocol))
)";
  const std::string said = python(script).said;
  for (const char* name :
       {"shmget",          "semget",        "msgget",        "ptrace",           "personality",
        "sysfs",           "mount",         "setuid",        "setgroups",        "setns",
        "unshare",         "chroot",        "keyctl",        "inotify_init",     "mq_open",
        "perf_event_open", "bpf",           "userfaultfd",   "io_uring_setup",   "landlock_create_ruleset",
        "vmsplice",        "io_setup",      "migrate_pages", "process_vm_readv", "memfd_secret",
        "quotactl",        "clone newuser", "clone newnet",  "clone newpid",     "clone newns",
        "family 40",       "family 17",     "family 38",     "netlink 9",        "netlink 12",
        "netlink 15"}) {
    EXPECT_THAT(said, HasSubstr(fmt::format("{} {}\n", name, EPERM)));
  }
  EXPECT_THAT(said, HasSubstr(fmt::format("clone3 {0}\nnewer {0} {0}\n", ENOSYS)));
  EXPECT_THAT(said, HasSubstr(fmt::format("x32 {}\n", ENOSYS)));
  EXPECT_THAT(said, HasSubstr(fmt::format("family {} {}\n", std::uint64_t{1} << 32 | 40, EPERM)));
  for (const char* name : {"family 1", "family 2", "netlink 0"}) {
    EXPECT_THAT(said, HasSubstr(fmt::format("{} 0\n", name)));
  }
}

TEST_F(JailTest, SeesNothingOfTheHost) {
  std::ofstream(folder_ + "/secret") << "secret";
  const Ended ended = shell("ls / /root /home " + folder_ + " 2>&1; cat " + folder_ +
                            "/secret /etc/shadow 2>&1; ls /proc | grep -c '^[0-9]'; cat /proc/net/dev; hostname");
  EXPECT_THAT(ended.said, Not(HasSubstr("secret\n")));
  EXPECT_THAT(ended.said, AllOf(HasSubstr("/etc/shadow: No such file"), HasSubstr("lo:"), Not(HasSubstr("eth")),
                                HasSubstr("jail\n")));
  EXPECT_THAT(shell("ls -d /proc/[0-9]* | wc -l").said, testing::MatchesRegex("[1-5]\n"));
}

TEST_F(JailTest, CannotChangeWhereItIs) {
  share(false);
  const Ended ended = shell("touch /x /usr/x " + folder_ +
                            "/shared/x; mount -t tmpfs x /tmp; unshare -U true; "
                            "mount --bind / /tmp; touch /tmp/mine && echo private");
  EXPECT_THAT(ended.said, HasSubstr("private"));
  EXPECT_FALSE(fs::exists(folder_ + "/shared/x"));
  EXPECT_FALSE(fs::exists("/tmp/mine"));
  EXPECT_THAT(shell("unshare -U true 2>&1; mount --bind / /tmp 2>&1").said,
              AllOf(HasSubstr("unshare"), HasSubstr("mount")));
}

TEST_F(JailTest, WritesAsAUserOfItsOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  share();
  EXPECT_EQ(WEXITSTATUS(shell("echo x > " + folder_ + "/shared/file").status), 0);
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + "/shared/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUid);
  EXPECT_EQ(info.st_gid, kUid);
}

TEST_F(JailTest, HasItsStreamsAndWhatIsPassedAndNoOtherDescriptor) {
  const int extra = ::open("/", O_RDONLY);  // inheritable
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd output;
  const pid_t pid = start({"/bin/sh", "-c", "echo through >&3; ls /proc/self/fd | tr '\\n' ' '"}, output, ends[1]);
  ::close(ends[1]);
  ::close(extra);
  EXPECT_EQ(wait_for(pid, output).said, "0 1 2 3 4 ");  // 4: ls itself
  char text[16] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 8);
  EXPECT_STREQ(text, "through\n");
  EXPECT_EQ(::read(ends[0], text, sizeof text), 0) << "nobody keeps the other end";
  ::close(ends[0]);
}

TEST_F(JailTest, MemoryIsLimited) {
  spec_.memory = mib(64);
  const Ended ended = python("b = bytearray(1 << 30)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('all of it')");
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.said,
              AllOf(Not(HasSubstr("all of it")),
                    testing::AnyOf(HasSubstr("out of memory: /usr/bin/python3"), HasSubstr("MemoryError"))));
}

TEST_F(JailTest, ProcessesAreLimited) {
  spec_.processes = 16;
  const Ended ended = python(
      "import os, signal\nn = 0\ntry:\n  while n < 100:\n    if os.fork() == 0: signal.pause()\n    n += 1\n"
      "except OSError: print('at', n)\nos._exit(0)");
  EXPECT_THAT(ended.said, HasSubstr("at 1"));
}

TEST_F(JailTest, WhatItWritesIsLimitedInEachFileAndInAll) {
  share();
  spec_.written = mib(8);
  EXPECT_NE(shell("head -c 9000000 /dev/zero > " + folder_ + "/shared/one").status, 0);
  EXPECT_LE(fs::file_size(folder_ + "/shared/one"), 8u << 20);
  const Ended many = python("import itertools\nfor i in itertools.count():\n  open('" + folder_ +
                            "/shared/%d' % (i % 100), 'wb').write(bytes(1 << 20))");
  EXPECT_EQ(WEXITSTATUS(many.status), kNoJail);
  EXPECT_THAT(many.said, HasSubstr("wrote more than 8388608 bytes"));
}

TEST_F(JailTest, ASignalEndsAllThatIsInsideAndLeavesNothing) {
  UniqueFd output;
  const pid_t pid =
      start({"/bin/sh", "-c", "setsid sleep 1000 & trap '' TERM; echo up; while :; do sleep 100; done"}, output);
  char text[4];
  ASSERT_EQ(::read(output.get(), text, 3), 3);
  ASSERT_EQ(::kill(pid, SIGTERM), 0);
  const Ended ended = wait_for(pid, output);  // until the last writer has gone
  EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGTERM);
  for (const char* controller : {"memory", "pids", "cpu"}) {
    EXPECT_FALSE(fs::exists(fmt::format("/sys/fs/cgroup/{}/fairlead/{}", controller, pid)));
  }
}

TEST_F(JailTest, WhoKillsTheOneOutsideKillsWhatIsInside) {
  UniqueFd output;
  const pid_t pid = start({"/bin/sh", "-c", "echo up; exec sleep 1000"}, output);
  char text[4];
  ASSERT_EQ(::read(output.get(), text, 3), 3);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(WIFSIGNALED(wait_for(pid, output).status));
}

TEST_F(JailTest, AnOwnerOfIdsGivesFilesToThemAndReachesNoOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  spec_.uid = spec_.gid = kImageIdBase;
  spec_.ids = kImageIds;
  share();
  const std::string shared = folder_ + "/shared";
  std::ofstream(shared + "/roots") << "secret";
  ::chmod((shared + "/roots").c_str(), 0600);
  const Ended ended = shell("cd " + shared +
                            "; id -u; echo x > a; chown 33:44 a; chown 70000 a; cat roots; chown 0 roots;"
                            "mknod d c 1 3; chmod 6755 a; mount -t tmpfs x /tmp; true");
  EXPECT_THAT(ended.said, AllOf(testing::StartsWith("0\n"), Not(HasSubstr("secret"))));
  struct stat info {};
  ASSERT_EQ(::stat((shared + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kImageIdBase + 33);
  EXPECT_EQ(info.st_gid, kImageIdBase + 44);
  ASSERT_EQ(::stat((shared + "/roots").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
  EXPECT_FALSE(fs::exists(shared + "/d"));
  EXPECT_THAT(shell("grep CapEff /proc/self/status").said, HasSubstr("000000008000001b"));
}

TEST_F(JailTest, AReaderReadsWhatItWasGivenAndWritesNothingElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  spec_.reads_all = true;
  spec_.binds.push_back({folder_ + "/shared", folder_ + "/shared", false});
  std::ofstream(folder_ + "/shared/roots") << "content";
  ::chmod((folder_ + "/shared/roots").c_str(), 0600);
  ::chmod((folder_ + "/shared").c_str(), 0700);
  const Ended ended = shell("cd " + folder_ +
                            "/shared; cat roots; echo x > roots; mount -t tmpfs x /tmp; echo; "
                            "grep Cap /proc/self/status; id -u; echo x > /proc/sys/kernel/core_pattern");
  EXPECT_THAT(ended.said, AllOf(testing::StartsWith("content"), HasSubstr("CapBnd:\t0000000000000004"),
                                HasSubstr(fmt::format("{}\n", kUid)), HasSubstr("core_pattern: ")));
  std::ifstream file(folder_ + "/shared/roots");
  std::string text;
  file >> text;
  EXPECT_EQ(text, "content");
}

TEST_F(JailTest, OwnsNoIdsOfTheHost) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  spec_.uid = 0;
  spec_.ids = 65536;
  const Ended ended = shell("echo in");
  EXPECT_EQ(WEXITSTATUS(ended.status), kNoJail);
  EXPECT_THAT(ended.said, AllOf(HasSubstr("which are the host's"), Not(HasSubstr("in\n"))));
}

TEST_F(JailTest, CopiesAreReadableWhereverTheyWere) {
  std::ofstream(folder_ + "/auth.json") << "credential";
  ::chmod((folder_ + "/auth.json").c_str(), 0600);
  spec_.copies = {folder_ + "/auth.json", folder_ + "/absent"};
  EXPECT_EQ(shell("cat " + folder_ + "/auth.json").said, "credential");
}

// A server on this machine that answers every connection with a word.
class Greeter {
 public:
  Greeter() {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_.get(), 8);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int stream : {0, 1, 2}) ::close(stream);
    while (true) {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      if (!client || ::write(client.get(), "hello", 5) < 0) ::_exit(1);
    }
  }
  ~Greeter() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int port = 0;

 private:
  UniqueFd listener_;
  pid_t pid_ = -1;
};

// What a client says to the proxy inside, and hears.
std::string asks(const std::string& target) {
  return "import socket\ns = socket.create_connection(('127.0.0.1', 3128))\ns.sendall(b'CONNECT " + target +
         " HTTP/1.1\\r\\n\\r\\n')\nt = b''\nwhile True:\n  d = s.recv(999)\n  if not d: break\n  t += d\n"
         "print(t.decode())";
}

TEST_F(JailTest, WithoutANetworkNothingIsReached) {
  const Greeter greeter;
  const Ended ended =
      python(fmt::format("import socket\nsocket.create_connection(('127.0.0.1', {}), 5)", greeter.port));
  EXPECT_THAT(ended.said, HasSubstr("ConnectionRefused"));
}

TEST_F(JailTest, TheWayOutLeadsToWhatIsListed) {
  const Greeter greeter;
  spec_.has_network = true;
  spec_.registries = {fmt::format("127.0.0.1:{}", greeter.port)};
  EXPECT_THAT(python(asks(spec_.registries[0])).said, AllOf(HasSubstr("200 Connected"), HasSubstr("hello")));
  EXPECT_THAT(python(fmt::format("import socket\nsocket.create_connection(('127.0.0.1', {}), 5)", greeter.port)).said,
              HasSubstr("ConnectionRefused"))
      << "but through the proxy";
  spec_.registry = spec_.registries[0];
  EXPECT_EQ(
      python(fmt::format("import socket\nprint(socket.create_connection(('127.0.0.1', {}), 5).recv(9))", greeter.port))
          .said,
      "b'hello'\n");
}

TEST_F(JailTest, TheWayOutLeadsNowhereElse) {
  const Greeter greeter;
  spec_.has_network = true;
  spec_.registries = {"public"};
  EXPECT_THAT(python(asks(fmt::format("127.0.0.1:{}", greeter.port))).said,
              AllOf(HasSubstr("403 127.0.0.1"), HasSubstr("to the setting registries"), Not(HasSubstr("hello"))));
  for (const char* target : {"127.0.0.1:443", "localhost:443", "169.254.169.254:443", "2130706433:443", "[::1]:443",
                             "0x7f.1:443", "[::ffff:10.0.0.1]:443"}) {
    EXPECT_THAT(python(asks(target)).said, AllOf(HasSubstr("HTTP/1.1 403"), HasSubstr("the setting registries")))
        << target;
  }
  EXPECT_THAT(python(asks("no-port")).said, HasSubstr("HTTP/1.1"));
  spec_.registries = {"none"};
  EXPECT_THAT(python(asks("ghcr.io:443")).said, HasSubstr("403 ghcr.io:443 is no registry of this node"));
}

TEST(JailSpecTest, IsReadAsItWasWritten) {
  const JailSpec spec{.root_dir = "/r \"x\"",
                      .uid = 3,
                      .gid = 4,
                      .ids = 5,
                      .reads_all = true,
                      .binds = {{"/a", "/b", true}},
                      .copies = {"/c"},
                      .memory = mib(1),
                      .reserves_memory = true,
                      .tmp = mib(2),
                      .written = mib(3),
                      .processes = 6,
                      .cpu = {7, 8},
                      .has_network = true,
                      .registries = {"public"},
                      .registry = "localhost:1"};
  const auto read = decode_jail_spec(encode(spec));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode(*read), encode(spec));
  EXPECT_EQ(read->binds, spec.binds);
  EXPECT_EQ(read->cpu, spec.cpu);
  EXPECT_FALSE(decode_jail_spec("{}"));
  EXPECT_FALSE(decode_jail_spec("["));
}

}  // namespace
}  // namespace fairlead
