#include "runtime/shim/process_mover.h"

#include <gmock/gmock.h>

#include "base/log.h"
#include "runtime/shim/fake_checkpoints.h"

namespace fairlead {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using wire::MoveResult;
using Outcome = ProcessCheckpoints::Outcome;
using State = ProcessCheckpoints::State;

constexpr pid_t kPid = 42;
constexpr Duration kPatience = std::chrono::seconds(1);  // wait: the fake driver is told it, and waits for nothing

class ProcessMoverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }

  MoveResult out() { return mover_.out(process_, kPatience).result; }
  MoveResult in(Bytes needed = mib(900)) { return mover_.in(process_, needed).result; }
  State state() const { return driver_->states.at(kPid); }

  std::shared_ptr<FakeCheckpoints> driver_ = [] {
    auto driver = std::make_shared<FakeCheckpoints>();
    driver->states[kPid] = State::kRunning;
    return driver;
  }();
  std::optional<Bytes> free_now() const {
    if (!free_ || state() != State::kCheckpointed) return free_;
    return *free_ + freed_;
  }
  std::optional<Bytes> free_ = gib(1);
  Bytes freed_{0};  // by a checkpoint
  bool alive_ = true;
  ProcessMover mover_{driver_,
                      {.free = [this](GpuId) { return free_now(); }, .used_by = [](GpuId, pid_t) { return mib(900); }}};
  ProcessMover::Process process_{kPid, GpuId(1), [this] { return alive_; }};
};

TEST_F(ProcessMoverTest, OutAndInAgain) {
  const ProcessMover::Outcome left = mover_.out(process_, kPatience);
  EXPECT_EQ(left.result, MoveResult::kDone);
  EXPECT_EQ(left.used, mib(900));
  EXPECT_EQ(state(), State::kCheckpointed);
  EXPECT_EQ(in(), MoveResult::kDone);
  EXPECT_EQ(state(), State::kRunning);
  EXPECT_THAT(driver_->calls, ElementsAre("lock", "checkpoint", "restore", "unlock"));
}

TEST_F(ProcessMoverTest, WorkThatDoesNotEndIsBusy) {
  driver_->answers["lock"] = Outcome::kTimedOut;
  EXPECT_EQ(out(), MoveResult::kBusy);
  EXPECT_EQ(state(), State::kRunning);
}

TEST_F(ProcessMoverTest, WhatTheDriverDoesNotCheckpointRunsOn) {
  driver_->answers["checkpoint"] = Outcome::kRefused;
  EXPECT_EQ(out(), MoveResult::kFailed);
  EXPECT_EQ(state(), State::kRunning);
}

// NVML says 900 MiB of the process. What else was freed at the same time may be another program's.
TEST_F(ProcessMoverTest, WhatAReturnNeedsIsWhatTheCheckpointFreed) {
  for (const auto& [freed, used] : std::vector<std::pair<int, int>>{{905, 905}, {900, 900}, {100, 900}, {5000, 964}}) {
    driver_->states[kPid] = State::kRunning;
    freed_ = mib(freed);
    EXPECT_EQ(mover_.out(process_, kPatience).used, mib(used)) << freed;
  }
}

// A restore that fails for want of room may be the process's last.
TEST_F(ProcessMoverTest, AFullDeviceIsNotAskedToRestore) {
  out();
  free_ = mib(899);
  EXPECT_EQ(in(), MoveResult::kNoRoom);
  EXPECT_THAT(driver_->calls, ElementsAre("lock", "checkpoint"));
  free_ = mib(900);
  EXPECT_EQ(in(), MoveResult::kDone);
}

TEST_F(ProcessMoverTest, WhereTheRoomIsNotKnownTheDriverSays) {
  out();
  free_.reset();
  driver_->answers["restore"] = Outcome::kNoMemory;
  EXPECT_EQ(in(), MoveResult::kNoRoom);
  EXPECT_EQ(state(), State::kCheckpointed);
  driver_->answers.clear();
  EXPECT_EQ(in(), MoveResult::kDone);
}

TEST_F(ProcessMoverTest, AMoveThatEndedHalfWayIsTakenOn) {
  driver_->states[kPid] = State::kLocked;
  EXPECT_EQ(out(), MoveResult::kDone);
  EXPECT_EQ(out(), MoveResult::kDone) << "away already";
  driver_->answers["unlock"] = Outcome::kRefused;
  EXPECT_EQ(in(), MoveResult::kFailed);
  EXPECT_EQ(state(), State::kLocked);
  driver_->answers.clear();
  EXPECT_EQ(in(), MoveResult::kDone);
  EXPECT_EQ(state(), State::kRunning);
}

TEST_F(ProcessMoverTest, WhatIsNotAwayHasNothingToBringBack) {
  EXPECT_EQ(in(), MoveResult::kNothing);
  driver_->states.clear();
  EXPECT_EQ(in(), MoveResult::kNothing);
  EXPECT_THAT(driver_->calls, IsEmpty());
}

TEST_F(ProcessMoverTest, AProcessThatFailedInTheDriverFails) {
  driver_->states[kPid] = State::kFailed;
  EXPECT_EQ(in(), MoveResult::kFailed);
  EXPECT_EQ(out(), MoveResult::kFailed);
}

// Its number may be another process's by then, which must not be left locked.
TEST_F(ProcessMoverTest, TheDeadAreNotMovedAndNeitherIsWhoHasTheirNumber) {
  alive_ = false;
  EXPECT_EQ(out(), MoveResult::kNothing);
  EXPECT_EQ(state(), State::kRunning);
  EXPECT_THAT(driver_->calls, Each(Not("checkpoint")));
  EXPECT_EQ(in(), MoveResult::kNothing);
  driver_->states.clear();
  EXPECT_EQ(out(), MoveResult::kNothing);
}

}  // namespace
}  // namespace fairlead
