// The node's end against fake shims, honest and hostile, over real sockets. This process is the honest shims' process;
// those that must die are forked.
#include "runtime/shim/shim_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/post.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "base/log.h"
#include "runtime/shim/fake_checkpoints.h"
#include "runtime/shim/fake_shim.h"
#include "runtime/shim/shim_connection.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::Frame;
using wire::FrameKind;
using wire::MoveResult;

constexpr auto kPatience = std::chrono::minutes(2);
constexpr std::uint64_t kG = wire::kStagingGranule;
const InstanceId kId(7);

class ShimHostTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }
  void SetUp() override {
    char pattern[] = "/tmp/fairlead-shims-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    options_.socket_dir = dir_;
    options_.library = "/lib/libfairlead-shim.so";
    options_.host_memory = mib(16);
    options_.background = [this](std::function<bool()> job, std::function<void(bool)> done) {
      ++jobs_;
      boost::asio::post(io_, [job = std::move(job), done = std::move(done)] { done(job()); });
    };
    terms_ = {.instance = kId, .function = "f", .cap = Bytes(0), .device_memory = gib(4)};
  }
  void TearDown() override {
    host_.reset();
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(dir_);
  }

  void start() {
    ShimEvents events;
    events.moved = [this](InstanceId id, const SwapOutcome& outcome) {
      EXPECT_EQ(id, kId);
      outcomes_.push_back(outcome);
    };
    events.needs_room = [this](InstanceId, std::uint64_t request, Bytes bytes) {
      rooms_.emplace_back(request, bytes.count());
    };
    events.wants_memory = [this](InstanceId) { ++wants_; };
    events.usage_changed = [this](InstanceId) { ++usage_changes_; };
    events.process_came = [this](InstanceId, std::uint64_t process, std::shared_ptr<wire::ShimPage> page) {
      page->gate.fetch_or(wire::kGateNode);
      came_[process] = std::move(page);
    };
    events.process_left = [this](std::uint64_t process) { left_.push_back(process); };
    host_ = ShimHost::create(io_, options_, std::move(events));
    auto access = host_->add(terms_);
    ASSERT_TRUE(access) << access.error().message;
    access_ = *access;
  }

  // Runs the node's side until the condition holds.
  template <typename Condition>
  bool until(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  std::optional<Frame> receive(FakeShim& shim) {
    std::optional<Frame> frame;
    until([&] { return (frame = shim.receive()) || shim.closed(); });
    return frame;
  }
  bool closes(FakeShim& shim) {
    return until([&] { return (shim.receive(), shim.closed()); });
  }
  std::unique_ptr<FakeShim> greeted() {
    auto shim = std::make_unique<FakeShim>(access_.socket);
    shim->hello(access_.token);
    const auto welcome = receive(*shim);
    EXPECT_TRUE(welcome && welcome->kind == FrameKind::kWelcome);
    return shim;
  }
  // Another process with memory on the device, killed by the test.
  // `twice`: it takes a granule of staging, connects again and takes another.
  pid_t fork_shim(std::uint64_t resident, bool twice = false) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      FakeShim first(access_.socket);
      use_memory(first, resident, twice);
      while (!twice) ::pause();
      FakeShim second(access_.socket);
      use_memory(second, resident, true);
      while (true) ::pause();
    }
    children_.push_back(pid);
    EXPECT_TRUE(until([&] {
      const auto use = host_->measure(kId);
      return use && use->resident.count() >= static_cast<std::int64_t>(resident);
    }));
    return pid;
  }
  // In the child.
  void use_memory(FakeShim& shim, std::uint64_t resident, bool stage) {
    const auto wait = [&shim] {
      pollfd readable{shim.fd(), POLLIN, 0};
      ::poll(&readable, 1, 20'000);
      return shim.receive();
    };
    shim.hello(access_.token);
    wait();
    if (shim.page() == nullptr) ::_exit(1);
    shim.page()->gpu_time_ns = 1000;
    shim.page()->held = resident;
    shim.page()->resident = resident;
    if (!stage) return;
    shim.need_staging(kG, 1);
    wait();
  }
  void kill_child(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }

  boost::asio::io_context io_;
  std::string dir_;
  ShimHostOptions options_;
  ShimTerms terms_;
  ShimAccess access_;
  std::unique_ptr<ShimHost> host_;
  std::vector<pid_t> children_;
  std::vector<SwapOutcome> outcomes_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> rooms_;
  std::map<std::uint64_t, std::shared_ptr<wire::ShimPage>> came_;
  std::vector<std::uint64_t> left_;
  int wants_ = 0, usage_changes_ = 0, jobs_ = 0;
};

// ---- greeting

TEST_F(ShimHostTest, WelcomeBringsAPageAndAnArenaThatCannotBeResized) {
  options_.backend = wire::MemoryBackend::kUvm;
  options_.uvm = wire::UvmMode::kAdvise;
  start();
  EXPECT_FALSE(host_->measure(kId)) << "nobody has used the GPU";
  FakeShim shim(access_.socket);
  shim.hello(access_.token);
  const auto welcome = receive(shim);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->body.welcome.arena_bytes, 16u << 20);
  EXPECT_EQ(welcome->body.welcome.backend, wire::MemoryBackend::kUvm);
  EXPECT_EQ(welcome->body.welcome.uvm, wire::UvmMode::kAdvise);
  ASSERT_EQ(shim.fds().size(), 2u);
  EXPECT_EQ(shim.page()->magic, wire::kShimPageMagic);
  EXPECT_EQ(shim.page()->version, wire::kShimVersion);
  for (const UniqueFd& fd : shim.fds()) {
    struct stat info {};
    ::fstat(fd.get(), &info);
    EXPECT_EQ(::ftruncate(fd.get(), info.st_size + 4096), -1);
    EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  }
  EXPECT_EQ(host_->measure(kId)->processes, 1u);
  EXPECT_EQ(usage_changes_, 1);
}

TEST_F(ShimHostTest, WithoutHostMemoryThereIsNoArena) {
  options_.host_memory = Bytes(0);
  start();
  const auto shim = greeted();
  EXPECT_EQ(shim->fds().size(), 1u);
  shim->need_staging(kG, 5);
  const auto answer = receive(*shim);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.staging.bytes, 0u);
}

TEST_F(ShimHostTest, AWrongTokenOrVersionGetsNoAnswer) {
  start();
  FakeShim stranger(access_.socket);
  stranger.hello(access_.token ^ 1);
  EXPECT_TRUE(closes(stranger));
  FakeShim future(access_.socket);
  future.hello(access_.token, wire::kShimVersion + 1);
  EXPECT_TRUE(closes(future));
  EXPECT_FALSE(host_->measure(kId));
}

TEST_F(ShimHostTest, AnOlderShimIsSpokenToAsItSpeaks) {
  start();
  FakeShim old(access_.socket);
  old.hello(access_.token, wire::kOldestShimVersion);
  ASSERT_TRUE(receive(old));
  EXPECT_EQ(old.page()->version, wire::kOldestShimVersion);
  EXPECT_EQ(host_->measure(kId)->processes, 1u);
}

TEST_F(ShimHostTest, ProcessesComeBeforeTheySeeTheirPageAndLeaveWithTheirConnection) {
  start();
  auto shim = std::make_unique<FakeShim>(access_.socket);
  shim->hello(access_.token);
  ASSERT_TRUE(until([&] { return !came_.empty(); }));
  ASSERT_TRUE(receive(*shim));
  EXPECT_EQ(shim->page()->gate.load(), wire::kGateNode) << "closed by whoever heard of it, before the process knew";
  EXPECT_TRUE(left_.empty());
  const auto page = came_.begin()->second;
  const auto process = came_.begin()->first;
  shim.reset();
  EXPECT_TRUE(until([&] { return !left_.empty(); }));
  EXPECT_EQ(left_, std::vector<std::uint64_t>{process});
  host_.reset();
  page->gate.store(0);  // mapped for as long as somebody has it
}

TEST_F(ShimHostTest, TokensDifferBetweenInstances) {
  start();
  terms_.instance = InstanceId(8);
  const auto other = host_->add(terms_);
  ASSERT_TRUE(other);
  EXPECT_NE(other->token, access_.token);
  FakeShim intruder(other->socket);
  intruder.hello(access_.token);
  EXPECT_TRUE(closes(intruder));
  host_->remove(InstanceId(8));
  EXPECT_FALSE(std::filesystem::exists(other->socket));
}

TEST_F(ShimHostTest, FramesBeforeHelloAndASecondHelloEndTheConnection) {
  start();
  FakeShim early(access_.socket);
  early.need_room(1, 1);
  EXPECT_TRUE(closes(early));
  const auto shim = greeted();
  shim->hello(access_.token);
  EXPECT_TRUE(closes(*shim));
}

TEST_F(ShimHostTest, GarbageEndsTheConnectionAndNothingElse) {
  start();
  const auto shim = greeted();
  for (const std::string& garbage : {std::string("x"), std::string(39, 'x'), std::string(40, '\xff'),
                                     std::string(60'000, 'y'), std::string(packet_of(wire::make_frame({})))}) {
    FakeShim hostile(access_.socket);
    hostile.send_bytes(garbage);
    EXPECT_TRUE(closes(hostile)) << garbage.size();
  }
  shim->need_room(4096, 9);
  EXPECT_TRUE(until([&] { return !rooms_.empty(); }));
}

TEST_F(ShimHostTest, ConnectionsThatSayNothingPushOutEachOtherOnly) {
  start();
  const auto shim = greeted();
  std::vector<std::unique_ptr<FakeShim>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<FakeShim>(access_.socket));
  EXPECT_TRUE(closes(*silent.front()));
  shim->need_room(1, 1);
  EXPECT_TRUE(until([&] { return !rooms_.empty(); }));
  EXPECT_FALSE((silent.back()->receive(), silent.back()->closed()));
}

TEST_F(ShimHostTest, AProcessThatConnectsAgainReplacesItself) {
  start();
  auto first = greeted();
  first->page()->held = 100;
  first->page()->resident = 100;
  first->page()->gpu_time_ns = 50;
  EXPECT_EQ(host_->measure(kId)->held, Bytes(100));
  const auto second = greeted();
  EXPECT_EQ(host_->measure(kId)->processes, 1u);
  EXPECT_EQ(host_->measure(kId)->held, Bytes(100)) << "until it says otherwise";
  second->page()->held = 70;
  second->page()->gpu_time_ns = 0;
  EXPECT_EQ(host_->measure(kId)->held, Bytes(70));
  EXPECT_EQ(host_->measure(kId)->gpu_time, Duration(50)) << "never falls";
  EXPECT_TRUE(closes(*first));
}

TEST_F(ShimHostTest, WhatAProcessHadStagedBeforeItConnectedAgainStaysUntilItIsDead) {
  start();
  const pid_t pid = fork_shim(8 * kG, true);
  ASSERT_TRUE(until([&] { return host_->staging().granted() == mib(4); })) << "before and after it connected again";
  EXPECT_EQ(host_->measure(kId)->processes, 1u);
  kill_child(pid);
  EXPECT_TRUE(until([&] { return host_->staging().used() == Bytes(0); }));
}

// ---- accounting

TEST_F(ShimHostTest, UseIsTheSumOfTheProcessesAndFallsWhenOneIsKilled) {
  start();
  const pid_t pid = fork_shim(1000);
  const auto shim = greeted();
  shim->page()->held = 30;
  shim->page()->resident = 20;
  shim->page()->away = 10;
  shim->page()->fixed = 5;
  shim->page()->gpu_time_ns = 7;
  shim->page()->launches = 3;
  shim->page()->passed_through = 2;
  auto use = host_->measure(kId);
  EXPECT_EQ(use->held, Bytes(1030));
  EXPECT_EQ(use->resident, Bytes(1020));
  EXPECT_EQ(use->away, Bytes(10));
  EXPECT_EQ(use->fixed, Bytes(5));
  EXPECT_EQ(use->gpu_time, Duration(1007));
  EXPECT_EQ(use->processes, 2u);

  const int before = usage_changes_;
  kill_child(pid);
  EXPECT_TRUE(until([&] { return usage_changes_ > before; }));
  use = host_->measure(kId);
  EXPECT_EQ(use->held, Bytes(30));
  EXPECT_EQ(use->processes, 1u);
  EXPECT_EQ(use->gpu_time, Duration(1007)) << "what it had used stays used";
  EXPECT_EQ(use->calls.launches, 3u);
  EXPECT_EQ(use->calls.passed_through, 2u);
  shim->page()->launches = 1;
  EXPECT_EQ(host_->measure(kId)->calls.launches, 3u) << "never falls";
}

TEST_F(ShimHostTest, AClosedSocketIsNotADeadProcess) {
  start();
  auto shim = greeted();
  shim->page()->resident = 64;
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  ASSERT_TRUE(receive(*shim));
  ::shutdown(shim->fd(), SHUT_RDWR);
  EXPECT_TRUE(until([&] { return !outcomes_.empty(); }));
  EXPECT_EQ(outcomes_[0].result, MoveResult::kBusy);
  EXPECT_EQ(host_->measure(kId)->resident, Bytes(64)) << "this process lives: it still has its memory";
  host_->swap_in(kId);
  EXPECT_TRUE(until([&] { return outcomes_.size() == 2; }));
  EXPECT_EQ(outcomes_[1].result, MoveResult::kNothing) << "nobody can be asked";
}

TEST_F(ShimHostTest, NobodyCanClaimMoreThanTheDeviceHas) {
  start();
  const auto shim = greeted();
  shim->page()->held = UINT64_MAX;
  shim->page()->resident = UINT64_MAX;
  shim->page()->away = UINT64_MAX;
  shim->page()->fixed = UINT64_MAX;
  shim->page()->gpu_time_ns = UINT64_MAX;
  const auto use = host_->measure(kId);
  EXPECT_EQ(use->held, gib(4));
  EXPECT_EQ(use->resident, gib(4));
  EXPECT_EQ(use->fixed, gib(4));
  EXPECT_GT(use->gpu_time, Duration(0));
  shim->page()->gate_waits = UINT64_MAX;
  EXPECT_LT(host_->measure(kId)->calls.gate_waits, UINT64_MAX) << "sums do not overflow";
}

TEST_F(ShimHostTest, TheCapIsSharedByTheProcessesAndReturnsWhenOneEnds) {
  terms_.cap = Bytes(1'000'000);
  start();
  const auto shim = greeted();
  EXPECT_EQ(shim->page()->memory_cap.load(), 1'000'000u);
  shim->page()->held = 200'000;
  const pid_t pid = fork_shim(100'000);
  host_->measure(kId);
  EXPECT_EQ(shim->page()->memory_cap.load(), 550'000u);
  kill_child(pid);
  EXPECT_TRUE(until([&] { return shim->page()->memory_cap.load() == 1'000'000u; }));
}

// ---- moves

TEST_F(ShimHostTest, AMoveIsSpreadAndItsAnswersAreJoined) {
  start();
  const auto shim = greeted();
  shim->page()->resident = 64;
  shim->page()->fixed = 14;
  host_->swap_out(kId, 40, std::chrono::milliseconds(3));
  auto order = receive(*shim);
  ASSERT_TRUE(order && order->kind == FrameKind::kSwapOut);
  EXPECT_EQ(order->body.swap_out.bytes, 40u);
  EXPECT_EQ(order->body.swap_out.deadline_ns, 3'000'000u);
  shim->moved(FrameKind::kSwapOut, MoveResult::kDone, 48);
  EXPECT_TRUE(until([&] { return !outcomes_.empty(); }));
  EXPECT_EQ(outcomes_[0],
            (SwapOutcome{SwapDirection::kOut, MoveResult::kDone, Bytes(48), Duration(100), Duration(200)}));
  shim->page()->away = 48;
  host_->swap_in(kId);
  order = receive(*shim);
  ASSERT_TRUE(order && order->kind == FrameKind::kSwapIn);
}

TEST_F(ShimHostTest, WithNothingToMoveTheAnswerComesWithoutTheShim) {
  start();
  host_->swap_out(kId, 40, std::chrono::seconds(1));
  EXPECT_THAT(outcomes_, IsEmpty()) << "never from inside the call";
  EXPECT_TRUE(until([&] { return !outcomes_.empty(); }));
  EXPECT_EQ(outcomes_[0].result, MoveResult::kNothing);
}

TEST_F(ShimHostTest, AnAnswerNobodyAskedForEndsTheConnection) {
  start();
  const auto shim = greeted();
  shim->moved(FrameKind::kSwapOut, MoveResult::kDone, 1);
  EXPECT_TRUE(closes(*shim));
  EXPECT_THAT(outcomes_, IsEmpty());
}

TEST_F(ShimHostTest, KilledInTheMiddleOfAMoveItCountsAsEmpty) {
  start();
  const pid_t pid = fork_shim(1000);
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  EXPECT_THAT(outcomes_, IsEmpty());
  kill_child(pid);
  EXPECT_TRUE(until([&] { return !outcomes_.empty() && host_->measure(kId)->processes == 0; }));
  EXPECT_NE(outcomes_[0].result, MoveResult::kDone);
  EXPECT_EQ(outcomes_[0].bytes, Bytes(0));
  EXPECT_EQ(host_->measure(kId)->resident, Bytes(0));
}

// ---- room and wishes

TEST_F(ShimHostTest, RoomIsAnsweredToWhoAskedWithItsOwnNumber) {
  start();
  const auto shim = greeted();
  shim->need_room(4096, 77);
  shim->need_room(8192, 78);
  ASSERT_TRUE(until([&] { return rooms_.size() == 2; }));
  EXPECT_EQ(rooms_[0].second, 4096);
  host_->grant_room(kId, rooms_[1].first, true);
  auto room = receive(*shim);
  ASSERT_TRUE(room && room->kind == FrameKind::kRoom);
  EXPECT_EQ(room->body.room.request, 78u);
  EXPECT_NE(room->body.room.granted, 0u);
  host_->grant_room(kId, rooms_[0].first, false);
  host_->grant_room(kId, rooms_[0].first, false);
  host_->grant_room(kId, 12345, true);
  room = receive(*shim);
  EXPECT_EQ(room->body.room.request, 77u);
  EXPECT_EQ(room->body.room.granted, 0u);
}

TEST_F(ShimHostTest, TooManyRoomRequestsAreRefusedAtOnce) {
  start();
  const auto shim = greeted();
  for (std::uint64_t i = 0; i < 70; ++i) shim->need_room(4096, i);
  for (std::uint64_t i = 64; i < 70; ++i) {
    const auto refusal = receive(*shim);
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->body.room.request, i);
    EXPECT_EQ(refusal->body.room.granted, 0u);
  }
  EXPECT_EQ(rooms_.size(), 64u);
}

TEST_F(ShimHostTest, AWaitingThreadIsReported) {
  start();
  const auto shim = greeted();
  shim->send(wire::make_frame(FrameKind::kWantMemory));
  EXPECT_TRUE(until([&] { return wants_ == 1; }));
}

// ---- staging

TEST_F(ShimHostTest, StagingIsGrantedOutOfTheOwnArenaAndReused) {
  start();
  const auto shim = greeted();
  shim->page()->resident = 8 * kG;
  shim->need_staging(3 * kG, 1);
  auto staging = receive(*shim);
  ASSERT_TRUE(staging && staging->kind == FrameKind::kStaging);
  EXPECT_EQ(staging->body.staging.request, 1u);
  EXPECT_EQ(staging->body.staging.offset, 0u);
  EXPECT_EQ(staging->body.staging.bytes, 3 * kG);
  struct stat arena {};
  ::fstat(shim->fds()[1].get(), &arena);
  EXPECT_EQ(static_cast<std::uint64_t>(arena.st_blocks) * 512, 3 * kG) << "the node made the pages";
  EXPECT_EQ(jobs_, 1);

  shim->return_staging(0, 3 * kG);
  shim->need_staging(2 * kG, 2);
  staging = receive(*shim);
  EXPECT_EQ(staging->body.staging.bytes, 2 * kG);
  EXPECT_EQ(jobs_, 1) << "its pages were still there";
  EXPECT_EQ(host_->staging().granted(), mib(4));
}

TEST_F(ShimHostTest, MoreStagingThanThereIsIsNone) {
  start();
  const auto shim = greeted();
  shim->page()->resident = 8 * kG;
  for (const std::uint64_t bytes : {9 * kG, wire::kMaxFrameBytes}) {
    shim->need_staging(bytes, 3);
    const auto staging = receive(*shim);
    ASSERT_TRUE(staging);
    EXPECT_EQ(staging->body.staging.bytes, 0u);
  }
  EXPECT_EQ(host_->staging().used(), Bytes(0));
}

TEST_F(ShimHostTest, AFunctionThatHoldsNothingCannotTakeTheNodesStaging) {
  options_.host_memory = gib(1);
  start();
  const auto shim = greeted();
  shim->need_staging(65 * kG, 1);
  EXPECT_EQ(receive(*shim)->body.staging.bytes, 0u) << "it holds no device memory";
  shim->need_staging(64 * kG, 1);
  EXPECT_EQ(receive(*shim)->body.staging.bytes, 64 * kG) << "the slack";
  shim->need_staging(kG, 1);
  EXPECT_EQ(receive(*shim)->body.staging.bytes, 0u);
  shim->page()->resident = 4 * kG;
  shim->need_staging(4 * kG, 1);
  EXPECT_EQ(receive(*shim)->body.staging.bytes, 4 * kG);
}

TEST_F(ShimHostTest, ReturningWhatWasNeverGrantedEndsTheConnection) {
  start();
  const auto shim = greeted();
  shim->return_staging(0, kG);
  EXPECT_TRUE(closes(*shim));
}

TEST_F(ShimHostTest, StagingIsFreeWhenTheInstanceIsGone) {
  start();
  const auto shim = greeted();
  shim->page()->resident = 8 * kG;
  shim->need_staging(8 * kG, 1);
  EXPECT_EQ(receive(*shim)->body.staging.bytes, 8 * kG);
  host_->remove(kId);
  EXPECT_EQ(host_->staging().used(), Bytes(0));
  struct stat arena {};
  EXPECT_TRUE(until([&] { return (::fstat(shim->fds()[1].get(), &arena), arena.st_blocks == 0); }))
      << "dropped, although it is still mapped here";
  host_->swap_in(kId);
  EXPECT_TRUE(closes(*shim));
}

// ---- floods

TEST_F(ShimHostTest, AFloodIsReadAtItsRateAndTheNodeGoesOn) {
  start();
  const auto shim = greeted();
  const auto begin = std::chrono::steady_clock::now();
  const Frame want = wire::make_frame(FrameKind::kWantMemory);
  for (int sent = 0; sent < 12'000;) {
    shim->send(want);
    if (shim->last_error() == 0) {
      ++sent;
    } else {
      ASSERT_EQ(shim->last_error(), EAGAIN);
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double most = ShimConnection::kFramesPerSecond * (took.count() + 0.3);
  EXPECT_LT(12'000, most + 2000) << "12,000 frames passed in " << took.count() << " s";
  EXPECT_LE(wants_, 200 + static_cast<int>(1000 * (took.count() + 0.1))) << "the core hears of it rarely";
}

TEST_F(ShimHostTest, AShimThatDoesNotReadIsCutOff) {
  start();
  const auto shim = greeted();
  shim->page()->resident = 64;
  for (int i = 0; i < 3000; ++i) host_->swap_out(kId, 1, std::chrono::seconds(1));
  EXPECT_TRUE(until([&] { return outcomes_.size() == 3000; })) << outcomes_.size();
  EXPECT_EQ(outcomes_[0].result, MoveResult::kBusy);
}

// ---- whole processes, moved by the node

class CheckpointHostTest : public ShimHostTest {
 protected:
  void SetUp() override {
    ShimHostTest::SetUp();
    options_.backend = wire::MemoryBackend::kCheckpoint;
    options_.host_memory = Bytes(0);
    ProcessMover::Devices devices{.free = [](GpuId) { return gib(4); }, .used_by = [](GpuId, pid_t) { return mib(3); }};
    options_.mover = std::make_shared<const ProcessMover>(driver_, std::move(devices));
    options_.run_move = [this](GpuId, std::function<void()> job, std::function<void()> done) {
      orders_.emplace_back(std::move(job), std::move(done));
    };
  }
  // The oldest move that was ordered runs.
  void run_move() {
    ASSERT_FALSE(orders_.empty());
    const auto [job, done] = std::move(orders_.front());
    orders_.erase(orders_.begin());
    job();
    done();
  }
  std::unique_ptr<FakeShim> holding(std::uint64_t bytes) {
    auto shim = greeted();
    driver_->states[::getpid()] = ProcessCheckpoints::State::kRunning;
    shim->page()->held = bytes;
    shim->page()->resident = bytes;
    shim->page()->fixed = bytes;  // as the shim sees it
    return shim;
  }

  std::shared_ptr<FakeCheckpoints> driver_ = std::make_shared<FakeCheckpoints>();
  std::vector<std::pair<std::function<void()>, std::function<void()>>> orders_;
};

TEST_F(CheckpointHostTest, ProcessesMoveWithoutTheirShims) {
  start();
  FakeShim shim(access_.socket);
  shim.hello(access_.token);
  EXPECT_EQ(receive(shim)->body.welcome.backend, wire::MemoryBackend::kNone);
  const auto same = holding(2u << 20);
  EXPECT_EQ(host_->measure(kId)->fixed, Bytes(0)) << "all of it can leave";
  host_->swap_out(kId, 1, std::chrono::seconds(1));
  EXPECT_EQ(host_->measure(kId)->resident, mib(2)) << "not yet";
  run_move();
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_EQ(outcomes_[0].result, MoveResult::kDone);
  EXPECT_EQ(outcomes_[0].bytes, mib(2));
  EXPECT_EQ(host_->measure(kId)->held, mib(2));
  EXPECT_EQ(host_->measure(kId)->resident, Bytes(0));
  EXPECT_EQ(host_->measure(kId)->away, mib(3)) << "its context, too";

  host_->swap_in(kId);
  run_move();
  EXPECT_EQ(outcomes_[1].direction, SwapDirection::kIn);
  EXPECT_EQ(outcomes_[1].result, MoveResult::kDone);
  EXPECT_EQ(host_->measure(kId)->resident, mib(2));
  EXPECT_EQ(host_->measure(kId)->away, Bytes(0));
  EXPECT_FALSE(same->receive()) << "no order is for the shim";
}

TEST_F(CheckpointHostTest, AMoveThatFailsChangesNothing) {
  start();
  const auto shim = holding(2u << 20);
  driver_->answers["checkpoint"] = ProcessCheckpoints::Outcome::kRefused;
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  run_move();
  EXPECT_EQ(outcomes_[0].result, MoveResult::kFailed);
  EXPECT_EQ(host_->measure(kId)->resident, mib(2));
}

TEST_F(CheckpointHostTest, ACutProcessMovesAndOneThatConnectsAgainIsStillAway) {
  start();
  auto shim = holding(2u << 20);
  shim.reset();
  EXPECT_TRUE(until([&] { return io_.poll() == 0; }));
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  run_move();
  EXPECT_EQ(outcomes_[0].result, MoveResult::kDone);
  const auto again = greeted();
  EXPECT_EQ(host_->measure(kId)->resident, Bytes(0));
  EXPECT_EQ(host_->measure(kId)->away, mib(3));
  host_->swap_in(kId);
  run_move();
  EXPECT_EQ(host_->measure(kId)->resident, mib(2));
}

TEST_F(CheckpointHostTest, AProcessMayConnectAgainWhileItMoves) {
  start();
  const auto shim = holding(2u << 20);
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  const auto again = greeted();
  const int changes = usage_changes_;
  run_move();
  EXPECT_EQ(host_->measure(kId)->away, mib(3));
  EXPECT_EQ(outcomes_.size() + static_cast<std::size_t>(usage_changes_ - changes), 2u) << "the core hears of it";
}

TEST_F(CheckpointHostTest, WhoDiesWhileAwayOrOnTheWayIsGone) {
  start();
  const pid_t pid = fork_shim(2u << 20);
  driver_->states[pid] = ProcessCheckpoints::State::kRunning;
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  run_move();
  EXPECT_EQ(host_->measure(kId)->away, mib(3));
  host_->swap_in(kId);
  kill_child(pid);
  driver_->states.clear();
  EXPECT_TRUE(until([&] { return outcomes_.size() == 2; }));
  EXPECT_EQ(outcomes_[1].result, MoveResult::kNothing);
  run_move();
  EXPECT_EQ(outcomes_.size(), 2u);
  EXPECT_EQ(host_->measure(kId)->away, Bytes(0));
}

TEST_F(CheckpointHostTest, AShimCannotAnswerForTheNode) {
  start();
  const auto shim = holding(2u << 20);
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  shim->moved(FrameKind::kSwapOut, MoveResult::kDone, 2u << 20);
  EXPECT_TRUE(closes(*shim));
  EXPECT_TRUE(outcomes_.empty());
  run_move();
  EXPECT_EQ(outcomes_[0].result, MoveResult::kDone);
}

TEST_F(CheckpointHostTest, AnInstanceThatIsRemovedLeavesItsMoveBehind) {
  start();
  const auto shim = holding(2u << 20);
  host_->swap_out(kId, ShimHost::kEverything, std::chrono::seconds(1));
  host_->remove(kId);
  run_move();
  EXPECT_TRUE(outcomes_.empty());
}

}  // namespace
}  // namespace fairlead
