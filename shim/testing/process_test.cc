// The shim in processes of its own: preloaded into shim-program (program.cc), with and without a node.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "shim/futex.h"
#include "shim/testing/node.h"

namespace fairlead::shim::testing {
namespace {

using Environment = std::map<std::string, std::string>;

// A folder for one test: the software GPU's machine, the node's socket.
class Process : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shim-test-XXXXXX";
    folder_ = ::mkdtemp(folder);
    socket_ = folder_ + "/node";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Environment with_node() const { return {{"FAIRLEAD_SHIM_SOCKET", socket_}, {"FAIRLEAD_SHIM_TOKEN", "77"}}; }

  std::string folder_;
  std::string socket_;
};

// A program under the shim. Its output is read at the end, or a line at a time.
class Running {
 public:
  Running(const std::string& folder, const std::vector<std::string>& words, const Environment& extra,
          const std::string& preload = FAIRLEAD_SHIM) {
    int out[2];
    int in[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(in, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) start(folder, words, extra, preload, in[0], out[1]);
    ::close(in[0]);
    ::close(out[1]);
    output_ = out[0];
    input_ = in[1];
  }
  ~Running() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    ::close(output_);
    ::close(input_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  int pid() const { return pid_; }
  void go_on() const { EXPECT_EQ(::write(input_, "x", 1), 1); }
  void kill() const { ::kill(pid_, SIGKILL); }

  std::string line() const {
    std::string text;
    for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  // Its exit status, 128 + signal if it was killed.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string rest() const {
    std::string text;
    char part[4096];
    for (ssize_t n = 0; (n = ::read(output_, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    return text;
  }

 private:
  [[noreturn]] static void start(const std::string& folder, const std::vector<std::string>& words,
                                 const Environment& extra, const std::string& preload, int in, int out) {
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    Environment all = {{"LD_PRELOAD", preload},
                       {"LD_LIBRARY_PATH", FAIRLEAD_SOFTGPU},
                       {"SOFTGPU_HOME", folder + "/machine"},
                       {"SOFTGPU_MEMORY_SCALE", "64"}};
    for (const auto& [name, value] : extra) all[name] = value;
    ::clearenv();
    for (const auto& [name, value] : all) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }

  pid_t pid_ = -1;
  int output_ = -1;
  int input_ = -1;
};

std::vector<std::string> program(std::vector<std::string> words) {
  words.insert(words.begin(), FAIRLEAD_SHIM_PROGRAM);
  return words;
}

// At most ten seconds; what is not so by then fails where it is looked at.
void wait_for(const std::atomic<std::uint64_t>& counter, std::uint64_t least) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (counter.load() < least && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

#define EXPECT_RUNS(running)         \
  do {                               \
    EXPECT_EQ((running).wait(), 0);  \
    EXPECT_EQ((running).rest(), ""); \
  } while (false)

// ---- Paths to the driver ----

TEST_F(Process, TheRuntimesLookUpsAreAllAnsweredWithTheRightSymbolOrItsHook) {
  Running running(folder_, program({"replay", FAIRLEAD_RUNTIME_LOOKUPS, FAIRLEAD_SYMBOLS, FAIRLEAD_HOOKS}), {});
  EXPECT_EQ(running.wait(), 0);
  EXPECT_EQ(running.rest(), "409 answered, 156 hooked\n");
}

TEST_F(Process, ADirectlyLinkedProgramCallsHooks) {
  Running running(folder_, program({"direct-link"}), {});
  EXPECT_RUNS(running);
}

TEST_F(Process, EveryVersionOfDlsymFindsHooks) {
  Running running(folder_, program({"dlsym-versions"}), {});
  EXPECT_RUNS(running);
}

TEST_F(Process, BothVersionsOfTheResolverFindTheRightAbi) {
  Running running(folder_, program({"resolver-versions"}), {});
  EXPECT_RUNS(running);
}

TEST_F(Process, AnInterposingLibraryFindsWhatIsNextToIt) {
  const std::string interposer = FAIRLEAD_INTERPOSER;
  Running before(folder_, program({"next", "libfairlead-shim.so"}), {}, interposer + ":" + FAIRLEAD_SHIM);
  EXPECT_RUNS(before);
  Running after(folder_, program({"next", "libcuda.so.1"}), {}, FAIRLEAD_SHIM ":" + interposer);
  EXPECT_RUNS(after);
}

TEST_F(Process, AProgramWithoutCudaIsLeftAlone) {
  Running running(folder_, {"/bin/true"}, with_node());  // nobody listens there, and nobody asks
  EXPECT_RUNS(running);
}

// ---- Without a node ----

TEST_F(Process, WorksWithoutANode) {
  Running alone(folder_, program({"launches", "1000"}), {});
  EXPECT_RUNS(alone);
  Running missed(folder_, program({"launches", "1000"}), with_node());
  EXPECT_RUNS(missed);
}

TEST_F(Process, AMalformedSettingIsSaidAndIgnored) {
  Running running(folder_, program({"launches", "1"}), {{"FAIRLEAD_SHIM_MEMORY_CAP", "12x"}});
  EXPECT_EQ(running.wait(), 0);
  EXPECT_EQ(running.rest(),
            "fairlead-shim: FAIRLEAD_SHIM_MEMORY_CAP is \"12x\", must be a whole number from 0 to "
            "18446744073709551615; ignored\n");
}

TEST_F(Process, AllocationsPastTheCapAreRefusedAndQueriesShowIt) {
  Running running(folder_, program({"cap", "67108864"}), {{"FAIRLEAD_SHIM_MEMORY_CAP", "67108864"}});
  EXPECT_RUNS(running);
}

TEST_F(Process, CapturesAreNotDisturbed) {
  Running running(folder_, program({"capture"}), {});
  EXPECT_RUNS(running);
}

// ---- With a node ----

TEST_F(Process, RegistersAtItsFirstUseOfTheDriver) {
  Node node(socket_);
  Running running(folder_, program({"launches", "1000"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->hello().token, 77U);
  EXPECT_EQ(connection->hello().pid, static_cast<unsigned>(running.pid()));
  EXPECT_EQ(connection->hello().version, wire::kShimVersion);
  EXPECT_RUNS(running);
  EXPECT_EQ(connection->page().launches.load(), 1000U);
  EXPECT_GT(connection->page().gpu_time_ns.load(), 0U);
  EXPECT_EQ(connection->page().passed_through.load(), 0U);
  EXPECT_EQ(connection->page().unhooked_functions.load(), 0U);
  EXPECT_TRUE(connection->gone());
}

TEST_F(Process, ANodeThatComesLaterIsFound) {
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  EXPECT_EQ(running.line(), "step");
  Node node(socket_);
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  wait_for(connection->page().launches, 10);
  running.go_on();
  EXPECT_EQ(running.line(), "step");
  EXPECT_EQ(connection->page().launches.load(), 20U);
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, ACutSocketOpensTheGateAndIsMadeAgainWithTheCountersKept) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "500"}), with_node());
  auto first = node.accept();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(running.line(), "step");
  first->page().gate.fetch_or(wire::kGateNode);
  running.go_on();
  wait_for(first->page().gate_waits, 1);
  first->cut();
  const auto second = node.accept();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->hello().pid, static_cast<unsigned>(running.pid()));
  EXPECT_EQ(running.line(), "step");
  wait_for(second->page().launches, 510);
  EXPECT_EQ(second->page().launches.load(), 510U);
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, AnOlderNodeIsSpokenToAsItSpeaks) {
  Node node(socket_);
  node.speak(wire::kOldestShimVersion);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  EXPECT_EQ(node.accept(), nullptr);
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(connection->hello().version, wire::kOldestShimVersion);
  EXPECT_EQ(running.line(), "step");
  connection->page().gate.fetch_or(wire::kGateNode);  // such a node may close the gate, and hears of nobody who asks
  running.go_on();
  wait_for(connection->page().gate_waits, 1);
  EXPECT_EQ(connection->page().asking.load(), 0U);
  connection->page().gate.fetch_and(~wire::kGateNode);
  futex_wake_all(connection->page().gate);
  EXPECT_EQ(running.line(), "step");
  running.go_on();
  EXPECT_RUNS(running);
  EXPECT_EQ(connection->page().launches.load(), 20U);
}

// ---- Places ----

// What the node does: a grant, and the end of one.
void grant(wire::ShimPage& page, std::uint64_t until_ns) {
  page.open_until_ns.store(until_ns);
  page.grant.fetch_add(1);
  page.gate.fetch_and(~wire::kGateNode);
  futex_wake_all(page.gate);
}
void begin_places(wire::ShimPage& page) {
  page.pace.store(wire::kPacePlaces | wire::kPaceLeash);
  page.gate.fetch_or(wire::kGateNode);
}
template <typename Word>
bool becomes(const std::atomic<Word>& word, Word wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (word.load() != wanted && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return word.load() == wanted;
}

TEST_F(Process, AsksForAPlaceAndSaysThatItHasDrained) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  wire::ShimPage& page = connection->page();
  EXPECT_EQ(running.line(), "step");
  begin_places(page);
  const std::uint32_t bell = page.bell.load();
  running.go_on();
  EXPECT_TRUE(becomes(page.asking, std::uint64_t{1}));
  EXPECT_NE(page.bell.load(), bell);
  EXPECT_EQ(page.drained.load(), 0U);
  grant(page, UINT64_MAX / 2);
  EXPECT_EQ(running.line(), "step");
  EXPECT_EQ(page.asking.load(), 0U);
  EXPECT_TRUE(becomes(page.drained, 1U)) << "it has no use for the rest of its place";
  EXPECT_NE(page.gate.load() & wire::kGateNode, 0U);
  EXPECT_EQ(page.busy.load(), 0U);
  page.pace.store(0);
  page.gate.fetch_and(~wire::kGateNode);
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, APlaceThatIsOverIsClosedWhereTheNodeIsLate) {
  Node node(socket_);
  Running running(folder_, program({"threads", "4", "100"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  wire::ShimPage& page = connection->page();
  begin_places(page);
  for (std::uint32_t number = 1; !connection->gone(0); ++number) {
    if (page.asking.load() == 0) continue;  // it may have ended, too
    grant(page, 1);
    // It closes its gate by itself, and has drained, or has ended.
    while (page.drained.load() != page.grant.load() && !connection->gone(0)) std::this_thread::yield();
  }
  EXPECT_RUNS(running);
  EXPECT_EQ(page.launches.load(), 400U);
}

TEST_F(Process, ACutSocketMakesAnEndOfPlaces) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  wire::ShimPage& page = connection->page();
  EXPECT_EQ(running.line(), "step");
  begin_places(page);
  running.go_on();
  EXPECT_TRUE(becomes(page.asking, std::uint64_t{1}));
  connection->cut();
  EXPECT_EQ(running.line(), "step");
  EXPECT_EQ(page.pace.load(), 0U);
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, EightThreadsPassAGateThatOpensAndCloses) {
  Node node(socket_);
  Running running(folder_, program({"threads", "8", "3000"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  wire::ShimPage& page = connection->page();
  while (page.gate_waits.load() < 20 && !connection->gone(0)) {
    const std::uint64_t waits = page.gate_waits.load();
    page.gate.fetch_or(wire::kGateNode);
    // A thread that has not seen the gate open stands there still, and is not counted again.
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(5);  // wait: then the gate opens again
    while (page.gate_waits.load() == waits && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    page.gate.fetch_and(~wire::kGateNode);
    futex_wake_all(page.gate);
  }
  EXPECT_RUNS(running);
  EXPECT_EQ(page.launches.load(), 24000U);
  EXPECT_GT(page.gate_waits.load(), 0U);
}

TEST_F(Process, AnOrderToMoveIsAnswered) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(running.line(), "step");
  wire::Frame frame = {.kind = wire::FrameKind::kSwapOut};
  frame.body.swap_out = {UINT64_MAX, 1000000000};
  connection->send(frame);
  frame.kind = wire::FrameKind::kSwapIn;
  connection->send(frame);
  ASSERT_TRUE(connection->receive(wire::FrameKind::kMoved, &frame));
  EXPECT_EQ(frame.body.moved.answered, wire::FrameKind::kSwapOut);
  EXPECT_GT(frame.body.moved.total_ns, 0U);
  ASSERT_TRUE(connection->receive(wire::FrameKind::kMoved, &frame));
  EXPECT_EQ(frame.body.moved.answered, wire::FrameKind::kSwapIn);
  running.go_on();
  EXPECT_EQ(running.line(), "step");
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, AThreadAtTheGateAsksForMemoryThatIsAwayOnce) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(running.line(), "step");
  connection->page().gate.fetch_or(wire::kGateMemory);
  running.go_on();
  wire::Frame frame;
  EXPECT_TRUE(connection->receive(wire::FrameKind::kWantMemory, &frame));
  EXPECT_FALSE(connection->receive(wire::FrameKind::kWantMemory, &frame, 1200));
  connection->page().gate.fetch_and(~wire::kGateMemory);
  futex_wake_all(connection->page().gate);
  EXPECT_EQ(running.line(), "step");
  running.go_on();
  EXPECT_RUNS(running);
}

TEST_F(Process, AForkedChildRegistersByItselfAndDropsItsParents) {
  Node node(socket_);
  Running running(folder_, program({"fork-after-use"}), with_node());
  const auto parent = node.accept();
  const auto child = node.accept();
  ASSERT_NE(parent, nullptr);
  ASSERT_NE(child, nullptr);
  EXPECT_NE(parent->hello().pid, child->hello().pid);
  EXPECT_EQ(running.line(), "child");
  EXPECT_TRUE(child->gone());
  EXPECT_RUNS(running);
  EXPECT_TRUE(parent->gone());
  EXPECT_EQ(parent->page().launches.load(), 20U);
  EXPECT_EQ(child->page().launches.load(), 0U);
}

TEST_F(Process, AForkBeforeTheFirstUseMakesTwo) {
  Node node(socket_);
  Running running(folder_, program({"fork-before-use"}), with_node());
  const auto one = node.accept();
  const auto other = node.accept();
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one->hello().pid, other->hello().pid);
  EXPECT_RUNS(running);
  EXPECT_EQ(one->page().launches.load() + other->page().launches.load(), 20U);
}

TEST_F(Process, AProgramThatClosesEveryDescriptorGoesOn) {
  Node node(socket_);
  Running running(folder_, program({"close-descriptors"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_RUNS(running);
}

TEST_F(Process, AKilledProgramIsGoneForTheNode) {
  Node node(socket_);
  Running running(folder_, program({"steps", "10", "10"}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ(running.line(), "step");
  running.kill();
  EXPECT_TRUE(connection->gone());
}

// ---- GPU time ----

// Kernels that run for 100 ms, then 100 ms of nothing: the first is counted once however many overlap, the second never.
// How long the first took in fact, on a busy machine, the program says itself.
class GpuTime : public Process, public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(GpuTime, IsTheTimeInWhichSomeStreamIsBusy) {
  Node node(socket_);
  const auto [streams, how] = GetParam();
  Running running(folder_, program({"busy", "100", streams, how}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  const double took_ms = std::stod(running.line());
  EXPECT_RUNS(running);
  const double ms = static_cast<double>(connection->page().gpu_time_ns.load()) / 1e6;
  EXPECT_GE(ms, 90);
  EXPECT_LE(ms, took_ms + 30);
}

INSTANTIATE_TEST_SUITE_P(Waits, GpuTime,
                         ::testing::Values(std::pair("1", "stream"), std::pair("1", "context"), std::pair("1", "event"),
                                           std::pair("1", "query"), std::pair("1", "copy"), std::pair("3", "stream"),
                                           std::pair("3", "context"), std::pair("3", "query")),
                         [](const auto& test) { return std::string(test.param.second) + test.param.first; });

// A copy on the device may return before it is done: it is work as any other, and a place has not drained before.
class CopyOnDevice : public Process, public ::testing::WithParamInterface<const char*> {};

TEST_P(CopyOnDevice, IsWork) {
  Node node(socket_);
  Running running(folder_, program({"copy-on-device", GetParam()}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  EXPECT_RUNS(running);
  EXPECT_GT(connection->page().gpu_time_ns.load(), 0U);
  EXPECT_EQ(connection->page().busy.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Calls, CopyOnDevice,
                         ::testing::Values("cuMemcpy", "cuMemcpyDtoD", "cuMemcpyPeer", "cuMemcpy2D"),
                         [](const auto& test) { return std::string(test.param); });

// Work of 100 ms that nobody waits for, then 400 ms of nothing: the end of the work is known when it is over, and what comes
// after it is not counted, whether the program waits later or never.
class Unawaited : public Process, public ::testing::WithParamInterface<const char*> {};

TEST_P(Unawaited, WorkEndsWhenItEndsAndIdleTimeIsNotCounted) {
  Node node(socket_);
  Running running(folder_, program({"unawaited", "100", GetParam()}), with_node());
  const auto connection = node.accept();
  ASSERT_NE(connection, nullptr);
  const bool is_short = std::string(GetParam()) == "short";
  wait_for(connection->page().busy, 1);
  EXPECT_TRUE(is_short || connection->page().busy.load() > 0);
  const double took_ms = std::stod(running.line());
  constexpr auto kSleeps = std::chrono::milliseconds(500);  // of the program, after its work
  const auto until = std::chrono::steady_clock::now() + kSleeps;
  while (connection->page().busy.load() != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(connection->page().busy.load(), 0U) << "while the program sleeps";
  EXPECT_RUNS(running);
  const double ms = static_cast<double>(connection->page().gpu_time_ns.load()) / 1e6;
  EXPECT_GE(ms, is_short ? 0 : 90);
  EXPECT_LE(ms, took_ms + 30);
}

INSTANTIATE_TEST_SUITE_P(Hows, Unawaited,
                         ::testing::Values("plain", "pile", "streams", "threads", "contexts", "graph", "destroyed",
                                           "forked", "late", "short"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fairlead::shim::testing
