// Real sandboxes: what a function can and cannot do, and what becomes of one that misbehaves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/instance_host.h"
#include "runtime/sandbox_process.h"
#include "runtime/sandbox_support.h"

extern char** environ;

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr auto kPatience = std::chrono::minutes(2);
const InstanceId kId(1);

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class SandboxTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }
  void SetUp() override {
    const SandboxSupport support = probe_sandbox_support();
    if (!support.possible()) GTEST_SKIP() << "this machine cannot make sandboxes: " << support.obstacle();
    char pattern[] = "/tmp/fairlead-sandbox-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    fs::permissions(dir_, fs::perms(0755));
    fs::create_directories(dir_ + "/code");
    fs::copy_file(TEST_FUNCTION, dir_ + "/code/bootstrap");
    fs::permissions(dir_ + "/code/bootstrap", fs::perms(0755));
  }
  void TearDown() override {
    host_.reset();
    if (!dir_.empty()) fs::remove_all(dir_);
  }

  void make_host(InstanceHostOptions options = {}) {
    options.state_dir = dir_ + "/state";
    options.log_dir = dir_ + "/logs";
    InstanceEvents events;
    events.next = [this](InstanceId) { ++waiting_; };
    events.answered = [this](InstanceId, Answer answer) { answer_ = std::move(answer); };
    events.gone = [this](InstanceId, ExitInfo info) {
      EXPECT_FALSE(gone_.has_value()) << "gone twice";
      gone_ = std::move(info);
    };
    auto host = InstanceHost::create(io_, std::move(options), std::move(events));
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
  }

  InstanceSpec spec(const std::string& handler = "serve") const {
    InstanceSpec result;
    result.instance = kId;
    result.function = "f";
    result.arn = "arn:aws:lambda:eu-west-1:000000000000:function:f";
    result.handler = handler;
    result.code_path = dir_ + "/code";
    result.tmp_limit = mib(4);
    result.memory_limit = mib(256);
    result.max_processes = 32;
    return result;
  }

  template <typename Condition>
  bool run_until(Condition condition) {
    const Instant deadline = monotonic_now() + kPatience;
    while (!condition() && monotonic_now() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(100));
    }
    return condition();
  }

  void start(InstanceSpec instance) {
    gone_.reset();
    waiting_ = 0;
    host_->start(std::move(instance));
  }
  void start_and_wait(InstanceSpec instance) {
    if (!host_) make_host();
    start(std::move(instance));
    ASSERT_TRUE(run_until([&] { return waiting_ > 0 || gone_; }));
    ASSERT_FALSE(gone_.has_value()) << gone_->reason << "\n" << read_file(dir_ + "/logs/f.log");
  }
  void deliver(const std::string& command) {
    answer_.reset();
    waiting_ = 0;
    const InvocationId id(++invocations_);
    host_->deliver(kId,
                   {.id = id, .invocation = {.request_id = fmt::format("request-{}", id.value()), .payload = command}});
  }
  // What the function answers to a command.
  std::string run(const std::string& command) {
    deliver(command);
    if (!run_until([&] { return (answer_ && waiting_ > 0) || gone_; })) return "no answer";
    return answer_ ? answer_->payload : "gone: " + gone_->reason;
  }
  bool wait_gone() {
    return run_until([&] { return gone_.has_value(); });
  }
  // Makes a path of the test's folder writable for functions, as who shares a folder has to.
  void give_to_functions(const std::string& path) {
    if (::geteuid() != 0) return;  // they are its own user there
    ASSERT_EQ(::chown((dir_ + path).c_str(), kSandboxUid, kSandboxUid), 0);
  }

  std::string dir_;
  boost::asio::io_context io_;
  std::unique_ptr<InstanceHost> host_;
  int waiting_ = 0;
  std::uint64_t invocations_ = 0;
  std::optional<Answer> answer_;
  std::optional<ExitInfo> gone_;
};

TEST_F(SandboxTest, AnswersInvocationsOverTcpAndUnixSocket) {
  for (const char* handler : {"serve", "unix"}) {
    ASSERT_NO_FATAL_FAILURE(start_and_wait(spec(handler)));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run("echo hello"), "hello");
    EXPECT_FALSE(answer_->is_error);
    EXPECT_EQ(host_->live(), 1u);
    host_->kill(kId);
    ASSERT_TRUE(wait_gone());
    EXPECT_EQ(gone_->reason, "signal: killed");
    EXPECT_EQ(host_->live(), 0u);
  }
}

TEST_F(SandboxTest, SeesOnlyItself) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  const std::string facts = run("facts");
  EXPECT_THAT(facts, StartsWith("pid=2 uid=1000 no_new_privs=1 "));
  EXPECT_THAT(facts, HasSubstr("interfaces=all default lo processes=1 2 "));
  EXPECT_THAT(facts, AllOf(HasSubstr(" tmp "), HasSubstr(" usr "), Not(HasSubstr(" root ")), Not(HasSubstr(" home "))));
  EXPECT_EQ(run("list /root"), "ENOENT");
  EXPECT_EQ(run("list " + dir_), "ENOENT");
  EXPECT_EQ(run("list /dev"), "fd full null random shm stderr stdin stdout urandom zero ");
  EXPECT_EQ(run("list /tmp"), "");
  EXPECT_THAT(run("read /proc/1/environ"), "EACCES");
  EXPECT_EQ(run("connect 8.8.8.8"), "ENETUNREACH");
  EXPECT_EQ(run("connect 127.0.0.1"), "ok");
}

TEST_F(SandboxTest, WritesOnlyWhereItMay) {
  fs::create_directories(dir_ + "/shared");
  std::ofstream(dir_ + "/shared/made-by-the-node") << "x";
  give_to_functions("/shared");
  give_to_functions("/shared/made-by-the-node");
  InstanceSpec instance = spec();
  instance.binds = {{dir_ + "/shared", "/run/state", true},
                    {dir_ + "/shared", "/opt/frozen", false},
                    {"/dev/null", "/dev/gpu0", true}};
  ASSERT_NO_FATAL_FAILURE(start_and_wait(std::move(instance)));
  for (const char* path : {"/x", "/usr/x", "/etc/x", "/var/task/x", "/opt/frozen/x", "/dev/x", "/run/x"}) {
    EXPECT_EQ(run(std::string("create ") + path), "EROFS") << path;
  }
  for (const char* path : {"/tmp/x", "/dev/shm/x", "/run/state/x", "/run/state/made-by-the-node", "/dev/gpu0"}) {
    EXPECT_EQ(run(std::string("create ") + path), "ok") << path;
  }
  EXPECT_TRUE(fs::exists(dir_ + "/shared/x"));
}

// Who shares a folder gives it its owner, once. A start that did it would do it by name, in a folder in which functions
// change what a name means: here a folder and a link that leads outside change places all the time.
TEST_F(SandboxTest, StartsChangeNoOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change an owner";
  constexpr int kFilesInEach = 500;  // so that a walk through the folder takes many changes of places
  const std::string outside = dir_ + "/outside";
  const std::string folder = dir_ + "/shared/folder";
  const std::string link = dir_ + "/shared/link";
  for (const std::string& made : {outside, folder}) {
    fs::create_directories(made);
    for (int i = 0; i < kFilesInEach; ++i) std::ofstream(made + "/" + std::to_string(i)) << "x";
  }
  fs::create_directory_symlink(outside, link);
  give_to_functions("/shared");
  std::atomic<bool> stop = false;
  std::thread attacker([&] {
    while (!stop) ::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  for (int start = 0; start < 3; ++start) {
    InstanceSpec instance = spec();
    instance.binds = {{dir_ + "/shared", "/run/state", true}};
    start_and_wait(std::move(instance));
    host_->kill(kId);
    EXPECT_TRUE(wait_gone());
  }
  stop = true;
  attacker.join();
  for (int i = 0; i < kFilesInEach; ++i) {
    struct stat info {};
    ASSERT_EQ(::lstat((outside + "/" + std::to_string(i)).c_str(), &info), 0);
    ASSERT_EQ(info.st_uid, 0u) << "a start gave a file outside of the folder to functions";
  }
}

TEST_F(SandboxTest, EnvironmentIsExactlyTheContract) {
  InstanceSpec instance = spec();
  instance.environment = {{"MODEL", "resnet"}, {"TZ", "CET"}, {"AWS_LAMBDA_RUNTIME_API", "evil:1"}};
  ::setenv("FAIRLEAD_TEST_SECRET", "of the node", 1);
  ASSERT_NO_FATAL_FAILURE(start_and_wait(std::move(instance)));
  EXPECT_EQ(run("env"),
            "AWS_ACCESS_KEY_ID=none\nAWS_DEFAULT_REGION=eu-west-1\nAWS_EXECUTION_ENV=AWS_Lambda_provided.al2023\n"
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256\nAWS_LAMBDA_FUNCTION_NAME=f\nAWS_LAMBDA_FUNCTION_VERSION=$LATEST\n"
            "AWS_LAMBDA_INITIALIZATION_TYPE=on-demand\nAWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/f\n"
            "AWS_LAMBDA_LOG_STREAM_NAME=[$LATEST]1\nAWS_LAMBDA_RUNTIME_API=127.0.0.1:9001\nAWS_REGION=eu-west-1\n"
            "AWS_SECRET_ACCESS_KEY=none\nAWS_SESSION_TOKEN=none\n"
            "FAIRLEAD_RUNTIME_SOCKET=/run/fairlead/runtime.sock\nHOME=/tmp\nLAMBDA_RUNTIME_DIR=/var/runtime\n"
            "LAMBDA_TASK_ROOT=/var/task\nLANG=en_US.UTF-8\nLD_LIBRARY_PATH=/var/task:/var/task/lib:/opt/lib\n"
            "MODEL=resnet\nPATH=/usr/local/bin:/usr/bin:/bin:/opt/bin\nTZ=CET\n_HANDLER=serve\n");
}

TEST_F(SandboxTest, SystemCallsBeyondTheSandboxAreRefused) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  for (const char* name :
       {"mount", "umount", "unshare", "clone-newuser", "ptrace", "bpf", "io_uring", "keyctl", "vsock"}) {
    EXPECT_EQ(run(std::string("call ") + name), "EPERM") << name;
  }
  for (const char* name : {"clone3", "unknown"}) EXPECT_EQ(run(std::string("call ") + name), "ENOSYS") << name;
  EXPECT_EQ(run("call setuid"), "EINVAL") << "no such user in its namespace";
  EXPECT_EQ(run("call socket"), "ok");
}

TEST_F(SandboxTest, FullTmpIsENOSPCForItAndHarmlessForOthers) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("fill /tmp/f"), "4 ENOSPC");
  EXPECT_EQ(run("fill /dev/shm/f"), "4 ENOSPC");
  EXPECT_EQ(run("echo still here"), "still here");
}

TEST_F(SandboxTest, ProcessesAreLimitedPerInstance) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("fork 1000"), "31 EAGAIN") << "the function itself is the 32nd";
  EXPECT_EQ(run("echo still here"), "still here");
}

TEST_F(SandboxTest, MemoryAboveTheLimitEndsTheInstanceWithTheReason) {
  if (probe_sandbox_support().cgroups == "none") GTEST_SKIP() << "no memory cgroup on this machine";
  InstanceSpec instance = spec();
  instance.memory_limit = mib(64);
  ASSERT_NO_FATAL_FAILURE(start_and_wait(std::move(instance)));
  EXPECT_EQ(run("memory 20"), "ok");
  const Bytes peak = host_->stats(kId).memory_peak;
  EXPECT_GE(peak, mib(20));
  EXPECT_LE(peak, mib(40));
  EXPECT_THAT(run("memory 200"), StartsWith("gone: out of memory"));
}

TEST_F(SandboxTest, WithoutCgroupsMemoryIsLimitedByRlimit) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer in init needs more memory than the function's limit";
#endif
  InstanceHostOptions options;
  options.use_cgroups = false;
  make_host(std::move(options));
  InstanceSpec instance = spec();
  instance.memory_limit = mib(64);
  ASSERT_NO_FATAL_FAILURE(start_and_wait(std::move(instance)));
  EXPECT_EQ(run("memory 200"), "ENOMEM");
}

TEST_F(SandboxTest, ExitAtStartIsGoneWithStatusAndLog) {
  make_host();
  start(spec("exit3"));
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->exit_status, 3);
  EXPECT_EQ(gone_->reason, "exit status 3");
  EXPECT_EQ(waiting_, 0);
  host_.reset();
  EXPECT_EQ(read_file(dir_ + "/logs/f.log"), "giving up\n");
}

TEST_F(SandboxTest, StartFailuresAreGoneWithTheReason) {
  make_host();
  fs::remove(dir_ + "/code/bootstrap");
  start(spec());
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "exec /var/task/bootstrap: No such file or directory");

  std::ofstream(dir_ + "/code/bootstrap") << "#!/bin/sh\n";
  start(spec());
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "exec /var/task/bootstrap: Permission denied");

  InstanceSpec absent = spec();
  absent.code_path = dir_ + "/absent";
  start(std::move(absent));
  ASSERT_TRUE(wait_gone());
  EXPECT_THAT(gone_->reason, AllOf(HasSubstr("absent"), HasSubstr("No such file")));

  InstanceSpec huge = spec();
  huge.environment["X"] = std::string(100'000, 'x');
  start(std::move(huge));
  ASSERT_TRUE(wait_gone());
  EXPECT_THAT(gone_->reason, HasSubstr("the limit is"));
  EXPECT_EQ(host_->live(), 0u);
}

TEST_F(SandboxTest, ShellScriptRunsAsBootstrap) {
  std::ofstream(dir_ + "/code/bootstrap") << "#!/bin/sh\necho \"$(id -u) $(cat /proc/sys/kernel/hostname)\"\nexit 5\n";
  make_host();
  start(spec());
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "exit status 5");
  host_.reset();
  EXPECT_EQ(read_file(dir_ + "/logs/f.log"), "1000 sandbox\n");
}

TEST_F(SandboxTest, InitErrorIsKeptForTheExit) {
  make_host();
  start(spec("init-error"));
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "exit status 1");
  EXPECT_EQ(gone_->init_error_payload, R"({"errorMessage":"no model"})");
}

TEST_F(SandboxTest, InitErrorEndsAFunctionThatStays) {
  make_host();
  start(spec("init-error-hang"));
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "signal: killed");
  EXPECT_EQ(gone_->init_error_payload, R"({"errorMessage":"no model"})");
}

TEST_F(SandboxTest, CrashDuringAnInvocationIsLoggedWithIt) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("crash"), "gone: signal: SIGABRT");
  EXPECT_EQ(gone_->signal, SIGABRT);
  host_.reset();
  EXPECT_THAT(read_file(dir_ + "/logs/f.log"),
              AllOf(HasSubstr("START RequestId: request-1 "), HasSubstr("Error: Runtime exited: signal: SIGABRT"),
                    HasSubstr("END RequestId: request-1\nREPORT RequestId: request-1\tDuration: ")));
}

TEST_F(SandboxTest, AnswerSentBeforeAnExitIsNotLost) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  deliver("answer-and-exit");
  ASSERT_TRUE(wait_gone());
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(answer_->payload, "last words");
  EXPECT_EQ(gone_->exit_status, 7);
}

TEST_F(SandboxTest, WrongIdDoubleAnswerAndOversizedAnswerAreSurvived) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("misbehave"), "400 403");
  EXPECT_THAT(run("big"), HasSubstr("Function.ResponseSizeTooLarge"));
  EXPECT_TRUE(answer_->is_error);
  EXPECT_EQ(run("fail"), R"({"errorMessage":"no"})");
  EXPECT_TRUE(answer_->is_error);
  EXPECT_EQ(run("echo still here"), "still here");
}

// Processes of this test's functions that the machine still has, found by their program's place.
int processes_left(const std::string& code_dir) {
  int count = 0;
  std::error_code error;
  const fs::path program = fs::canonical(code_dir + "/bootstrap", error);
  struct stat wanted {};
  if (::stat(program.c_str(), &wanted) != 0) return -1;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    struct stat info {};
    if (::stat((entry.path() / "exe").c_str(), &info) != 0) continue;
    count += info.st_ino == wanted.st_ino && info.st_dev == wanted.st_dev;
  }
  return count;
}

// Nobody reports the end of a process that is not our child: poll, with a bound.
bool none_left(const std::string& code_dir) {
  const Instant deadline = monotonic_now() + kPatience;
  while (processes_left(code_dir) != 0) {
    if (monotonic_now() > deadline) return false;
    ::usleep(10'000);
  }
  return true;
}

TEST_F(SandboxTest, KillEndsAHangingFunctionAndItsChildren) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec("forks")));
  EXPECT_EQ(processes_left(dir_ + "/code"), 4);
  deliver("hang");
  host_->kill(kId);
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "signal: killed");
  EXPECT_EQ(processes_left(dir_ + "/code"), 0) << "gone() is the end of all of them";
}

TEST_F(SandboxTest, KillRightAfterStartIsNotForgotten) {
  make_host();
  start(spec("hang"));
  host_->kill(kId);
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "signal: killed");
}

TEST_F(SandboxTest, ChildrenLeftBehindEndWithTheFunction) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec("forks")));
  EXPECT_EQ(run("exit 0"), "gone: exit status 0");
  EXPECT_EQ(processes_left(dir_ + "/code"), 0);
}

TEST_F(SandboxTest, FloodedLogIsBoundedAndCounted) {
  InstanceHostOptions options;
  options.log_file_limit = mib(1);
  options.log_rate_limit = kib(256);
  make_host(std::move(options));
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("print 2"), "ok");
  EXPECT_THAT(host_->stats(kId).log_tail, EndsWith("\t\n"));
  EXPECT_EQ(host_->stats(kId).log_tail.size(), 4096u);
  host_->kill(kId);
  ASSERT_TRUE(wait_gone());
  host_.reset();
  EXPECT_LE(fs::file_size(dir_ + "/logs/f.log"), 1u << 20);
  EXPECT_THAT(read_file(dir_ + "/logs/f.log"), HasSubstr("[fairlead] dropped "));
}

TEST_F(SandboxTest, OutputPrecedesTheEndLineInTheTail) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("write hello from inside"), "ok");
  EXPECT_THAT(host_->stats(kId).log_tail,
              StartsWith("START RequestId: request-1 Version: $LATEST\nhello from inside\nEND RequestId: request-1\n"
                         "REPORT RequestId: request-1\tDuration: "));
  EXPECT_THAT(host_->stats(kId).log_tail, HasSubstr("Init Duration: "));
  run("echo");
  EXPECT_THAT(host_->stats(kId).log_tail, Not(HasSubstr("Init Duration: ")));
}

TEST_F(SandboxTest, AnUnwritableLogBreaksNothing) {
  make_host();
  fs::create_directories(dir_ + "/logs/f.log");
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("print 1"), "ok");
  EXPECT_EQ(run("echo still here"), "still here");
}

TEST_F(SandboxTest, DestroyingTheHostEndsEverything) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec("forks")));
  host_.reset();
  EXPECT_EQ(processes_left(dir_ + "/code"), 0);
}

TEST_F(SandboxTest, KilledSpawnerTakesItsInstancesAlongAndTheNodeLivesOn) {
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec("forks")));
  const std::string self = std::to_string(::getpid());
  const pid_t spawner = std::stoi(read_file("/proc/self/task/" + self + "/children"));
  ::kill(spawner, SIGKILL);
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "the spawner has ended unexpectedly");
  EXPECT_TRUE(none_left(dir_ + "/code"));
  start(spec());
  ASSERT_TRUE(wait_gone());
  EXPECT_EQ(gone_->reason, "the spawner has ended unexpectedly");
}

pid_t spawner_pid() {
  pid_t pid = -1;
  std::istringstream children(read_file(fmt::format("/proc/self/task/{}/children", ::getpid())));
  for (pid_t child = 0; children >> child;) {
    if (read_file(fmt::format("/proc/{}/comm", child)) == "fl-spawner\n") pid = child;
  }
  return pid;
}

TEST_F(SandboxTest, AKilledSpawnerIsReplacedEveryTime) {
  make_host({.spawner_program = TEST_NODE});
  for (int i = 1; i <= 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(start_and_wait(spec("forks")));
    const pid_t spawner = spawner_pid();
    ::kill(spawner, SIGKILL);
    ASSERT_TRUE(wait_gone());
    EXPECT_TRUE(gone_->is_nodes_fault);
    EXPECT_EQ(gone_->reason, "the spawner has ended unexpectedly");
    EXPECT_EQ(processes_left(dir_ + "/code"), 0) << "gone says that nothing is left";
    ASSERT_TRUE(run_until([&] { return host_->obstacle().empty(); }));
    EXPECT_EQ(host_->spawner_restarts(), static_cast<std::uint64_t>(i));
    EXPECT_NE(::kill(spawner, 0), 0) << "it was reaped";
  }
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  EXPECT_EQ(run("echo served by the sixth"), "served by the sixth");
  host_.reset();
  EXPECT_EQ(processes_left(dir_ + "/code"), 0);
}

TEST_F(SandboxTest, WhatIsStartedWhileASpawnerIsReplacedWaitsForTheNext) {
  make_host({.spawner_program = TEST_NODE});
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  ::kill(spawner_pid(), SIGKILL);
  ASSERT_TRUE(run_until([&] { return !host_->obstacle().empty(); }));
  InstanceSpec next = spec();
  next.instance = InstanceId(77);
  waiting_ = 0;
  host_->start(next);
  ASSERT_TRUE(run_until([&] { return waiting_ == 1; }));
  ASSERT_TRUE(gone_) << "the first, and it alone";
  EXPECT_EQ(host_->live(), 1u);
}

TEST_F(SandboxTest, ASpawnerThatHangsIsReplaced) {
  make_host({.spawner_program = TEST_NODE, .spawner_patience = std::chrono::seconds(2)});
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  host_->kill(kId);
  ASSERT_TRUE(wait_gone());
  gone_.reset();
  ::kill(spawner_pid(), SIGSTOP);
  InstanceSpec next = spec();
  next.instance = InstanceId(77);
  host_->start(next);
  ASSERT_TRUE(run_until([&] { return host_->spawner_restarts() == 1; }));
  ASSERT_TRUE(gone_);
  EXPECT_EQ(gone_->reason, "the spawner said nothing for 2 s");
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
}

TEST_F(SandboxTest, ASpawnerThatCannotBeReplacedIsTriedAgainAndTheReasonSaid) {
  make_host({.spawner_program = "/nonexistent"});
  ASSERT_NO_FATAL_FAILURE(start_and_wait(spec()));
  ::kill(spawner_pid(), SIGKILL);
  ASSERT_TRUE(run_until([&] { return host_->obstacle().find("/nonexistent") != std::string::npos; }));
}

TEST_F(SandboxTest, ManyInstancesStartAtOnce) {
  make_host();
  constexpr int kCount = 16;
  for (int i = 1; i <= kCount; ++i) {
    InstanceSpec instance = spec();
    instance.instance = InstanceId(static_cast<std::uint64_t>(i));
    host_->start(std::move(instance));
  }
  ASSERT_TRUE(run_until([&] { return waiting_ == kCount; }));
  EXPECT_EQ(host_->live(), static_cast<std::size_t>(kCount));
}

TEST_F(SandboxTest, KilledNodeLeavesNoProcess) {
  int output[2];
  ASSERT_EQ(::pipe2(output, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  const std::string state = dir_ + "/state", code = dir_ + "/code";
  std::string program = TEST_NODE, handler = "forks", count = "3";
  char* argv[] = {
      program.data(), const_cast<char*>(state.data()), const_cast<char*>(code.data()), handler.data(), count.data(),
      nullptr};
  pid_t node = -1;
  ASSERT_EQ(::posix_spawn(&node, TEST_NODE, &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(output[1]);
  char ready[6] = {};
  EXPECT_EQ(::read(output[0], ready, 6), 6) << "the node did not come up";
  EXPECT_EQ(processes_left(code), 12);
  ::kill(node, SIGKILL);
  ::waitpid(node, nullptr, 0);
  EXPECT_TRUE(none_left(code));
  // The spawner held our end of the pipe: its end of file says that it has gone too.
  EXPECT_EQ(::read(output[0], ready, 1), 0);
  ::close(output[0]);
}

}  // namespace
}  // namespace fairlead
