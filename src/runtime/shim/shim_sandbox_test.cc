// Shims in real sandboxes: other uids, other pid namespaces, memory limits, kill -9 in the middle of a move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/sandbox_support.h"
#include "runtime/shim/shim_host.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr auto kPatience = std::chrono::minutes(2);
const InstanceId kId(3);

class ShimSandboxTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }
  void SetUp() override {
    const SandboxSupport support = probe_sandbox_support();
    if (!support.possible()) GTEST_SKIP() << "this machine cannot make sandboxes: " << support.obstacle();
    char pattern[] = "/tmp/fairlead-shim-sandbox-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    fs::permissions(dir_, fs::perms(0755));
    fs::create_directories(dir_ + "/code");
    fs::copy_file(SHIM_FUNCTION, dir_ + "/code/bootstrap");
    fs::permissions(dir_ + "/code/bootstrap", fs::perms(0755));

    InstanceEvents events;
    events.next = [](InstanceId) {};
    events.answered = [](InstanceId, Answer) {};
    events.gone = [this](InstanceId id, ExitInfo) {
      gone_ = true;
      shims_->remove(id);
    };
    auto host = InstanceHost::create(io_, {.state_dir = dir_ + "/state", .log_dir = dir_ + "/logs"}, std::move(events));
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);

    ShimHostOptions options;
    options.library = SHIM_PRELOADED;
    options.socket_dir = dir_ + "/state/run";
    options.host_memory = mib(16);
    options.background = [this](std::function<bool()> job, std::function<void(bool)> done) {
      boost::asio::post(io_, [job = std::move(job), done = std::move(done)] { done(job()); });
    };
    ShimEvents shim_events;
    shim_events.moved = [this](InstanceId, const SwapOutcome& outcome) { outcomes_.push_back(outcome); };
    shim_events.needs_room = [](InstanceId, std::uint64_t, Bytes) {};
    shim_events.wants_memory = [](InstanceId) {};
    shim_events.usage_changed = [](InstanceId) {};
    shims_ = ShimHost::create(io_, std::move(options), std::move(shim_events));
  }
  void TearDown() override {
    host_.reset();
    shims_.reset();
    if (!dir_.empty()) fs::remove_all(dir_);
  }

  void start(const std::string& handler) {
    InstanceSpec spec;
    spec.instance = kId;
    spec.function = "f";
    spec.handler = handler;
    spec.code_path = dir_ + "/code";
    spec.tmp_limit = mib(4);
    spec.memory_limit = mib(256);
    spec.max_processes = 32;
    const auto access = shims_->add({.instance = kId, .function = "f", .device_memory = gib(1)});
    ASSERT_TRUE(access) << access.error().message;
    spec.shim = *access;
    host_->start(std::move(spec));
  }
  template <typename Condition>
  bool until(Condition condition) {
    const Instant give_up = monotonic_now() + kPatience;
    while (!condition() && monotonic_now() < give_up) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return condition();
  }
  bool holds_memory() {
    return until([this] {
      const auto use = shims_->measure(kId);
      return gone_ || (use && use->resident > Bytes(0));
    });
  }
  std::string log() const {
    std::ifstream in(dir_ + "/logs/f.log");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string dir_;
  boost::asio::io_context io_;
  std::unique_ptr<ShimHost> shims_;
  std::unique_ptr<InstanceHost> host_;
  std::vector<SwapOutcome> outcomes_;
  bool gone_ = false;
};

TEST_F(ShimSandboxTest, TheLibraryIsPreloaded) {
  start("preload");
  ASSERT_TRUE(until([this] { return gone_; }));
  EXPECT_THAT(log(), HasSubstr("the library is mapped"));
}

TEST_F(ShimSandboxTest, MemoryLeavesThroughTheArenaAndComesBack) {
  start("mover");
  ASSERT_TRUE(holds_memory() && !gone_) << log();
  for (std::size_t round = 1; round <= 3; ++round) {
    shims_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
    ASSERT_TRUE(until([&] { return outcomes_.size() == 2 * round - 1; })) << log();
    EXPECT_EQ(outcomes_.back().result, wire::MoveResult::kDone);
    EXPECT_EQ(shims_->measure(kId)->away, mib(6));
    EXPECT_EQ(shims_->staging().granted(), mib(6));
    shims_->swap_in(kId);
    ASSERT_TRUE(until([&] { return outcomes_.size() == 2 * round; })) << log();
    EXPECT_TRUE(until([&] { return shims_->staging().granted() == Bytes(0); }));
  }
  EXPECT_TRUE(until([this] { return log().find("every byte is back") != std::string::npos; })) << log();
}

TEST_F(ShimSandboxTest, KilledInTheMiddleOfAMoveItsStagingIsFreeAndItsUseIsZero) {
  start("staller");
  ASSERT_TRUE(holds_memory() && !gone_) << log();
  shims_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  ASSERT_TRUE(until([this] { return shims_->staging().granted() == mib(6); })) << log();
  EXPECT_TRUE(outcomes_.empty());
  host_->kill(kId);
  ASSERT_TRUE(until([this] { return gone_; }));
  EXPECT_EQ(shims_->staging().used(), Bytes(0));
  EXPECT_FALSE(shims_->measure(kId));
  EXPECT_FALSE(fs::exists(dir_ + "/state/run/3.shim.sock"));
}

}  // namespace
}  // namespace fairlead
