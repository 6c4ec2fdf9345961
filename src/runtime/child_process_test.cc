// Processes that end, are killed, are stopped and do not hear: nobody blocks for them, and none stays behind. Planted and caught: a
// destructor that waits; a process that is forgotten and stays a zombie; one that ignores SIGTERM, or is stopped, and lives on.
#include "runtime/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/clock.h"
#include "runtime/fd_socket.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> start(const std::string& script, int end_signal = SIGKILL) {
    auto pair = make_seqpacket_pair();
    if (!pair) return nullptr;
    auto made = ChildProcess::start(
        io_, {.words = {"/bin/sh", "-c", script}, .environment = {{"PATH", "/usr/bin:/bin"}}, .end_signal = end_signal},
        pair->second.get(), [this](std::string reason) { reasons_.push_back(std::move(reason)); });
    EXPECT_TRUE(made) << made.error().message;
    ours_ = std::move(pair->first);
    return made ? *std::move(made) : nullptr;
  }
  // It says so itself: then its traps are set.
  void wait_until_it_speaks() {
    char byte = 0;
    ASSERT_GT(::recv(ours_.get(), &byte, 1, 0), 0);
  }
  // Reaped: no such process, not even a zombie.
  static bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }
  template <typename Condition>
  void run_until(Condition condition) {
    const Instant end = monotonic_now() + 120s;
    while (!condition() && monotonic_now() < end) {
      io_.restart();
      io_.run_one_for(100ms);
    }
    ASSERT_TRUE(condition());
  }

  boost::asio::io_context io_;
  UniqueFd ours_;
  std::vector<std::string> reasons_;
};

TEST_F(ChildProcessTest, SaysHowItEndedOnceItIsReaped) {
  const auto child = start("exit 3");
  run_until([&] { return !reasons_.empty(); });
  EXPECT_EQ(reasons_, std::vector<std::string>{"exit status 3"});
  EXPECT_TRUE(is_gone(child->pid()));
}

TEST_F(ChildProcessTest, KilledItIsReapedAndSaysSo) {
  const auto child = start("exec sleep 1000");
  child->kill();
  child->kill();
  run_until([&] { return !reasons_.empty(); });
  EXPECT_THAT(reasons_, testing::ElementsAre(HasSubstr("Killed")));
}

// A shell that takes SIGTERM for nothing for as long as it is let.
TEST_F(ChildProcessTest, ForgottenItIsReapedByTheLoopAndNobodyWaitsForIt) {
  auto child = start("trap 'sleep 0.5; exit 0' TERM; printf x >&3; while :; do sleep 0.01; done", SIGTERM);
  wait_until_it_speaks();
  const pid_t pid = child->pid();
  const Instant before = monotonic_now();
  child.reset();
  EXPECT_LT(monotonic_now() - before, 250ms);  // its answer to SIGTERM takes 500 ms
  EXPECT_FALSE(is_gone(pid));
  run_until([&] { return is_gone(pid); });
  EXPECT_TRUE(reasons_.empty());
}

TEST_F(ChildProcessTest, WhoDoesNotHearIsKilled) {
  auto child = start("trap '' TERM; printf x >&3; while :; do sleep 0.01; done", SIGTERM);
  wait_until_it_speaks();
  child->kill();
  run_until([&] { return !reasons_.empty(); });
  EXPECT_THAT(reasons_, testing::ElementsAre(HasSubstr("Killed")));
}

TEST_F(ChildProcessTest, WhoIsStoppedHearsThatItIsToEnd) {
  auto child = start("trap 'exit 7' TERM; printf x >&3; while :; do sleep 0.01; done", SIGTERM);
  wait_until_it_speaks();
  ::kill(child->pid(), SIGSTOP);
  const Instant before = monotonic_now();
  child->kill();
  run_until([&] { return !reasons_.empty(); });
  EXPECT_THAT(reasons_, testing::ElementsAre("exit status 7"));
  EXPECT_LT(monotonic_now() - before, ChildProcess::kPatience);
}

TEST_F(ChildProcessTest, ALoopThatGoesFirstLeavesNone) {
  pid_t pid = 0;
  {
    boost::asio::io_context io;
    auto pair = make_seqpacket_pair();
    ASSERT_TRUE(pair);
    auto made = ChildProcess::start(
        io, {.words = {"/bin/sh", "-c", "exec sleep 1000"}, .environment = {{"PATH", "/usr/bin:/bin"}}},
        pair->second.get(), [](const std::string&) { FAIL(); });
    ASSERT_TRUE(made);
    pid = (*made)->pid();
    made->reset();
  }
  EXPECT_TRUE(is_gone(pid));
}

}  // namespace
}  // namespace fairlead
