#include "base/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

TEST(Command, GivesWhatTheProgramSaidAndHowItEnded) {
  const auto result = run_command(
      {.arguments = {"sh", "-c", "cat; echo $A >&2; exit 3"}, .environment = {{"A", "err"}}, .input = "out\n"});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_EQ(result->exit_status, 3);
  EXPECT_EQ(run_command({.arguments = {"/bin/sh", "-c", "kill -9 $$"}})->exit_status, 128 + 9);
}

TEST(Command, KeepsTheBeginningOfTheOutputAndTheEndOfTheErrors) {
  const auto result = run_command(
      {.arguments = {"sh", "-c",
                     "echo first; head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2; echo last >&2"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output.size(), 1u << 20);
  EXPECT_TRUE(result->output.starts_with("first\n"));
  EXPECT_EQ(result->errors.size(), 16u << 10);
  EXPECT_TRUE(result->errors.ends_with("last\n"));
}

TEST(Command, AVariableOfOursTakesThePlaceOfTheNodes) {
  const auto result = run_command(
      {.arguments = {"sh", "-c", "env | grep -c '^HOME='; echo $HOME"}, .environment = {{"HOME", "/elsewhere"}}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "1\n/elsewhere\n");
}

TEST(Command, OneThatIsNotThereIsNamed) {
  for (const char* name : {"fairlead-no-such-tool", "/fairlead-no-such-tool"}) {
    const auto result = run_command({.arguments = {name}});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kNotFound);
    EXPECT_THAT(result.error().message, HasSubstr("fairlead-no-such-tool is not installed"));
  }
}

TEST(Command, IsEndedAtItsLimitAndWhenTold) {
  const Instant begin = monotonic_now();
  for (const char* program : {"sleep 60", "yes"}) {
    const auto late = run_command(
        {.arguments = {"sh", "-c", std::string("exec ") + program}, .timeout = std::chrono::milliseconds(1)});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::kDeadlineExceeded);
  }
  const std::atomic<bool> stop = true;
  const auto stopped = run_command({.arguments = {"sleep", "60"}, .stop = &stop});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::kUnavailable);
  EXPECT_LT(monotonic_now() - begin, std::chrono::seconds(30));
}

TEST(Command, ADaemonLeftBehindIsNotWaitedFor) {
  const auto result = run_command({.arguments = {"sh", "-c", "sleep 60 & echo $!"}});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(::kill(std::stoi(result->output), SIGKILL), 0) << "it outlives the program";
}

TEST(Command, InheritsNoDescriptorButItsStreams) {
  const UniqueFd inheritable(::open("/dev/null", O_RDONLY));
  ASSERT_GT(inheritable.get(), 2);
  const auto result = run_command({.arguments = {"readlink", "/proc/self/fd/" + std::to_string(inheritable.get())}});
  ASSERT_TRUE(result);
  EXPECT_THAT(result->output, testing::Not(HasSubstr("/dev/null")));
}

}  // namespace
}  // namespace fairlead
