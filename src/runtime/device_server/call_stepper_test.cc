// A device server's loop with a node that gives places and takes them back: long calls are cut from the second one on, wait between two
// pieces, and compute what they did. Planted and caught: a call that keeps its place between pieces; a session that is dropped and whose call
// waits for ever; a part of the blocks that is left out; a tenant's session that is cut though its author wants it whole.
#include "runtime/device_server/call_stepper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "base/clock.h"
#include "runtime/device_server/task_executor.h"
#include "runtime/device_server/testing/software_gpu.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBlocks = 30'000;  // the software GPU holds 2,560 of one warp together
constexpr std::uint64_t kSession = 7;

// Each block counts for a while and writes where it is and what came out.
constexpr char kChurn[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry churn(.param .u64 out, .param .u32 rounds) {
  .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
  mov.u32 %r6, %r5;
L:
  mad.lo.u32 %r6, %r6, 1664525, 1013904223;
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra L;
  mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r6;
  ret;
})";

class Node {
 public:
  Node() {
    if (::ftruncate(memory_.get(), sizeof(wire::ShimPage)) != 0) std::abort();
    void* const at = ::mmap(nullptr, sizeof(wire::ShimPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    page_ = new (at) wire::ShimPage;
  }
  ~Node() { ::munmap(page_, sizeof *page_); }

  std::vector<UniqueFd> descriptors() const {
    std::vector<UniqueFd> all;
    all.emplace_back(::dup(memory_.get()));
    all.emplace_back(::dup(doorbell_.get()));
    return all;
  }
  void pace() {
    page_->pace.store(wire::kPacePlaces);
    page_->gate.fetch_or(wire::kGateNode);
  }
  void grant(Duration length) {
    page_->open_until_ns.store(static_cast<std::uint64_t>((monotonic_now() + length).time_since_epoch().count()));
    page_->grant.fetch_add(1);
    page_->gate.fetch_and(~wire::kGateNode);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(doorbell_.get(), &one, sizeof one);
  }
  void stop_pacing() {
    page_->pace.store(0);
    page_->gate.fetch_and(~wire::kGateNode);
  }
  void close() { page_->gate.fetch_or(wire::kGateNode); }
  bool asks() const { return page_->asking.load() > 0; }
  bool has_drained() const { return page_->drained.load() == page_->grant.load(); }
  Duration used() const { return Duration(static_cast<std::int64_t>(page_->gpu_time_ns.load())); }

 private:
  UniqueFd memory_{::memfd_create("page", MFD_CLOEXEC)}, doorbell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  wire::ShimPage* page_ = nullptr;
};

class CallStepperTest : public testing::TestWithParam<AddressSpaces> {
 protected:
  CallStepperTest() {
    constexpr Bytes kMemory{32 << 20};
    executor_ = TaskExecutor::create(software_gpu(SOFTGPU_FOLDER),
                                     {.cache = {.device = kMemory, .host = kMemory}, .spaces = GetParam()},
                                     [this](const wire::FrameToNode& frame) { sent_.push_back(frame); })
                    .value();
  }

  void start(bool whole = false, const std::string& ptx = kChurn, std::uint32_t most_width_percent = 100) {
    const std::uint32_t rounds = 300;
    KernelTask task;
    task.modules.push_back({.name = "m", .sha256 = std::string(32, 'm')});
    task.buffers.push_back(
        {.name = "out", .bytes = Bytes(kBlocks * 4), .role = BufferRole::kOutput, .shape = {}, .constant = {}});
    KernelLaunch launch{.kernel = "churn", .grid = {kBlocks / 3, 3, 1}, .block = {32, 1, 1}, .arguments = {}};
    launch.arguments = {
        BufferArgument{.buffer = 0},
        LiteralArgument{.bytes = std::string(reinterpret_cast<const char*>(&rounds), 4), .relocations = {}}};
    task.kernels = {launch};
    UniqueFd file(::memfd_create("module", MFD_CLOEXEC));
    ASSERT_EQ(::write(file.get(), ptx.data(), ptx.size()), static_cast<ssize_t>(ptx.size()));
    wire::RegisterSession frame{.session = kSession, .tenant = "acme", .task = wire::encode(task)};
    frame.most_width_percent = most_width_percent;
    frame.modules.push_back({.sha256 = "m", .bytes = ptx.size(), .descriptor = 0});
    std::vector<UniqueFd> files;
    files.push_back(std::move(file));
    executor_->handle(frame, files);
    executor_->handle(wire::PaceSession{kSession, whole}, node_.descriptors());
    const auto* const ready = last<wire::SessionReady>();
    ASSERT_NE(ready, nullptr);
    ASSERT_EQ(ready->error, "");
  }
  template <typename Frame>
  const Frame* last() const {
    for (auto frame = sent_.rbegin(); frame != sent_.rend(); ++frame) {
      if (const auto* const found = std::get_if<Frame>(&*frame)) return found;
    }
    return nullptr;
  }

  void call() {
    wire::RunCall order{.call = ++calls_, .session = kSession};
    order.outputs.push_back({.buffer = 0, .object = 0, .bytes = {}});
    executor_->handle(order, {});
    executor_->progress();
  }
  const wire::CallDone* done() const {
    const auto* const found = last<wire::CallDone>();
    return found != nullptr && found->call == calls_ ? found : nullptr;
  }
  // The loop, until that holds; the test has failed if it never does.
  bool runs_until(const std::function<bool()>& holds) {
    const Instant end = monotonic_now() + 60s;
    while (!holds()) {
      if (monotonic_now() > end || !executor_->progress()) return false;
      pollfd woken{executor_->wake_descriptor(), POLLIN, 0};
      ::poll(&woken, 1, 1);
      executor_->clear_wake();
    }
    return true;
  }
  std::string answer() const {
    const wire::CallDone& frame = *done();
    if (frame.outcome != wire::CallDone::Outcome::kDone) return frame.error;
    return frame.outputs.empty() ? "" : frame.outputs[0].bytes;
  }
  // A call in one place.
  std::string whole_call() {
    call();
    EXPECT_TRUE(runs_until([&] { return node_.asks() || done() != nullptr; }));
    if (done() == nullptr) node_.grant(60s);
    EXPECT_TRUE(runs_until([&] { return done() != nullptr; }));
    return answer();
  }
  // A call whose place is taken back as soon as it has begun, again and again; how many places it had.
  int call_in_places(std::string& out) {
    int places = 0;
    for (call(); done() == nullptr;) {
      if (!runs_until([&] { return (node_.asks() && node_.has_drained()) || done() != nullptr; })) break;
      if (done() != nullptr) break;
      const Duration before = node_.used();
      node_.grant(2ms);
      ++places;
      if (!runs_until([&] { return node_.used() > before || done() != nullptr; })) break;
      node_.close();
    }
    out = done() == nullptr ? "it never ended" : answer();
    return places;
  }

  Node node_;
  std::vector<wire::FrameToNode> sent_;
  std::unique_ptr<TaskExecutor> executor_;
  std::uint64_t calls_ = 0;
};

TEST_P(CallStepperTest, ALongCallIsCutFromTheSecondOneOn) {
  start();
  node_.pace();
  const std::string expected = whole_call();
  ASSERT_EQ(expected.size(), kBlocks * 4U) << expected;
  EXPECT_GT(done()->phases.kernel_run, KernelPieces::kWhole) << "the kernel is too short for this test";
  EXPECT_EQ(done()->counters.modules, 1U);
  for (int i = 0; i < 3; ++i) {
    const Duration before = node_.used();
    std::string out;
    EXPECT_GE(call_in_places(out), 3);
    EXPECT_TRUE(out == expected) << out.substr(0, 100);
    EXPECT_EQ(node_.used() - before, Duration(done()->gpu_ns)) << "what was told piece by piece is what is charged";
  }
  EXPECT_EQ(done()->counters.modules, 2U) << "the one with twins, and the one without that nobody has unloaded";
  EXPECT_TRUE(whole_call() == expected);
}

TEST_P(CallStepperTest, ACallThatIsKeptToSmsIsCutAndComputesTheSame) {
  if (GetParam() == AddressSpaces::kOne) GTEST_SKIP() << "others' servers may be on the device";
  start(false, kChurn, 25);
  EXPECT_EQ(last<wire::SessionReady>()->width_percent, 25U);
  node_.pace();
  const std::string expected = whole_call();
  ASSERT_EQ(expected.size(), kBlocks * 4U) << expected;
  for (int i = 0; i < 2; ++i) {
    std::string out;
    EXPECT_GE(call_in_places(out), 3);
    EXPECT_TRUE(out == expected) << out.substr(0, 100);
  }
  EXPECT_EQ(done()->counters.modules, 2U);
}

TEST_P(CallStepperTest, WhereNobodyHasAQuotaNothingIsCut) {
  start();
  const std::string expected = whole_call();
  EXPECT_TRUE(whole_call() == expected);
  EXPECT_TRUE(whole_call() == expected);
  EXPECT_EQ(done()->counters.modules, 1U);
  EXPECT_FALSE(node_.asks());
}

TEST_P(CallStepperTest, WhoWantsItWholeHasItWhole) {
  start(true);
  node_.pace();
  const std::string expected = whole_call();
  std::string out;
  EXPECT_EQ(call_in_places(out), 1);
  EXPECT_TRUE(out == expected);
  EXPECT_EQ(done()->counters.modules, 1U);
}

TEST_P(CallStepperTest, AKernelThatMayWaitForOthersIsOnePiece) {
  std::string ptx = kChurn;
  ptx.insert(ptx.find("  sub.u32"), "  membar.gl;\n");
  start(false, ptx);
  node_.pace();
  const std::string expected = whole_call();
  std::string out;
  EXPECT_EQ(call_in_places(out), 1);
  EXPECT_TRUE(out == expected);
  EXPECT_EQ(done()->counters.modules, 1U);
}

TEST_P(CallStepperTest, AModuleWithVariablesIsNotLoadedAgain) {
  std::string ptx = kChurn;
  ptx.insert(ptx.find(".visible"), ".global .align 4 .b32 counter;\n");
  start(false, ptx);
  node_.pace();
  whole_call();
  std::string out;
  EXPECT_EQ(call_in_places(out), 1);
}

TEST_P(CallStepperTest, ASessionThatIsDroppedBetweenTwoPiecesEndsItsCall) {
  start();
  node_.pace();
  whole_call();
  call();
  ASSERT_TRUE(runs_until([&] { return node_.asks(); }));
  const Duration before = node_.used();
  node_.grant(2ms);
  ASSERT_TRUE(runs_until([&] { return node_.used() > before; }));
  node_.close();
  ASSERT_TRUE(runs_until([&] { return node_.asks() && node_.has_drained(); }));
  executor_->handle(wire::DropSession{kSession}, {});
  ASSERT_TRUE(runs_until([&] { return done() != nullptr; }));
  EXPECT_EQ(answer(), "its session was ended while it waited for the device");
  EXPECT_FALSE(executor_->running());
}

TEST_P(CallStepperTest, WhereQuotasEndACallThatPausesGoesOn) {
  start();
  node_.pace();
  const std::string expected = whole_call();
  call();
  ASSERT_TRUE(runs_until([&] { return node_.asks(); }));
  const Duration before = node_.used();
  node_.grant(2ms);
  ASSERT_TRUE(runs_until([&] { return node_.used() > before; }));
  node_.close();
  ASSERT_TRUE(runs_until([&] { return node_.asks() && node_.has_drained(); }));
  node_.stop_pacing();
  ASSERT_TRUE(runs_until([&] { return done() != nullptr; }));
  EXPECT_TRUE(answer() == expected);
}

INSTANTIATE_TEST_SUITE_P(Spaces, CallStepperTest, testing::Values(AddressSpaces::kOne, AddressSpaces::kPerTenant),
                         [](const auto& one) { return one.param == AddressSpaces::kOne ? "One" : "Fenced"; });

}  // namespace
}  // namespace fairlead
