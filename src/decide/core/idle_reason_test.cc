#include "decide/core/idle_reason.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class IdleReasonTest : public CoreParts {
 protected:
  IdleReasonTest() : CoreParts({.starts_per_gpu = 1}) {
    add_gpu();
    add({.flow = kA});
    add({.flow = kB, .is_kernel_task = true});
  }
  IdleReason why(bool may_start = true) const { return why_slots_idle(tables, answers, may_start); }

  DispatchAnswers answers;
};

TEST_F(IdleReasonTest, MemoryComesBeforeStarts) {
  start(kA);
  answers.note_run(kA, Obstacle::kMemory);
  EXPECT_EQ(why(), IdleReason::kMemory);
}

TEST_F(IdleReasonTest, StartsThatHaveTheMemoryAreToBlame) {
  answers.note_start(Obstacle::kStarts);
  EXPECT_EQ(why(), IdleReason::kStartMemory);
}

TEST_F(IdleReasonTest, AStartIsWaitedForOrForItsTurnToStart) {
  start(kA);
  answers.note_run(kA, Obstacle::kItself);
  EXPECT_EQ(why(true), IdleReason::kStart);
  EXPECT_EQ(why(false), IdleReason::kStartLimit);
}

TEST_F(IdleReasonTest, ItsOwnInstanceIsBusy) {
  arrive(1, kA);
  run(idle(kA));
  answers.note_run(kA, Obstacle::kItself);
  EXPECT_EQ(why(), IdleReason::kOwnInstance);
}

TEST_F(IdleReasonTest, ItsDataComes) {
  tables.pool.set_loads_at_once(kGpu, 1);
  Instance& session = idle(kB);
  keeper.set_reload(session.id, 1s);
  arrive(1, kB);
  run(session);
  ASSERT_TRUE(session.life.loads());
  answers.note_run(kB, Obstacle::kItself);
  EXPECT_EQ(why(), IdleReason::kLoad);
}

TEST_F(IdleReasonTest, WhatCouldRunAndIsKeptIsPatience) {
  answers.note_run(kA, Obstacle::kNothing);
  answers.note_kept();
  EXPECT_EQ(why(), IdleReason::kPatience);
}

// A fault of the scheduler: work could run, nobody keeps it, and a slot idles.
TEST_F(IdleReasonTest, WhatCouldRunAndDoesNotHasNoName) {
  answers.note_run(kA, Obstacle::kNothing);
  EXPECT_EQ(why(), IdleReason::kUnnamed);
}

TEST_F(IdleReasonTest, WhoIsAtItsLimitContendsForNothing) {
  EXPECT_EQ(why(), IdleReason::kConcurrency);
}

TEST_F(IdleReasonTest, WhoStartsPaysForWhatIdlesBecauseOfItsMemory) {
  IdleSlots slots;
  Instance& first = start(kA);
  Instance& second = start(kA);
  arrive(1, kA);
  answers.note_start(Obstacle::kStarts);
  note_idle_slots(now, tables, answers, planner, slots);
  pass(3s);
  note_idle_slots(now, tables, {}, planner, slots);
  EXPECT_EQ(slots.seconds()[static_cast<std::size_t>(IdleReason::kStartMemory)], Duration(6s)) << "two slots";
  EXPECT_EQ(first.idled, Duration(3s));
  EXPECT_EQ(second.idled, Duration(3s));
}

}  // namespace
}  // namespace fairlead
