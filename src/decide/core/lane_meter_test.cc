#include "decide/core/lane_meter.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class LaneMeterTest : public CoreParts {
 protected:
  explicit LaneMeterTest(const CoreOptions& options = {.starts_per_gpu = 1, .most_task_lanes = 4})
      : CoreParts(options) {
    add_gpu();
    add({.flow = kA});
    add({.flow = kB, .is_kernel_task = true});
  }
  std::size_t lanes_there() const { return tables.pool.gpu(kGpu).lanes; }
};

TEST_F(LaneMeterTest, MeasuredLanesBeginAtD) {
  lanes.add({.gpu = kGpu});
  EXPECT_EQ(lanes_there(), 2u);
}

TEST_F(LaneMeterTest, AGpuOfSeatsOrWithoutLanesHasNone) {
  lanes.add({.gpu = kGpu, .has_task_lanes = false});
  EXPECT_EQ(lanes_there(), 0u);
  lanes.add({.gpu = kGpu, .only_seats = true});
  EXPECT_EQ(lanes_there(), 0u);
}

TEST_F(LaneMeterTest, AnotherDMeansMeasuringAnew) {
  lanes.add({.gpu = kGpu});
  lanes.slots_changed(kGpu, 6);
  EXPECT_EQ(tables.options.most_task_lanes, 6u) << "lanes go from D upwards";
  tables.pool.set_slots(kGpu, 6);
  lanes.slots_changed(kGpu, 6);
  EXPECT_EQ(lanes_there(), 6u);
  lanes.slots_changed(kOther, 9);
  EXPECT_EQ(tables.options.most_task_lanes, 6u) << "nothing is measured there";
}

TEST_F(LaneMeterTest, AProgramThatRunsOrHasWorkHasItsTurn) {
  lanes.add({.gpu = kGpu});
  Instance& program = idle(kA);
  lanes.tell_turns();
  EXPECT_FALSE(tables.pool.gpu(kGpu).is_for_programs) << "it has nothing to do";
  arrive(1, kA);
  lanes.tell_turns();
  EXPECT_TRUE(tables.pool.gpu(kGpu).is_for_programs);
  run(program);
  lanes.tell_turns();
  EXPECT_TRUE(tables.pool.gpu(kGpu).is_for_programs);
}

TEST_F(LaneMeterTest, ASessionIsNoProgram) {
  lanes.add({.gpu = kGpu});
  arrive(1, kB);
  run(idle(kB));
  lanes.tell_turns();
  EXPECT_FALSE(tables.pool.gpu(kGpu).is_for_programs);
}

// Calls of a task that take as long beside each other as alone: what a lane adds is measured, and one more is opened.
TEST_F(LaneMeterTest, LanesGrowWhileRunningTogetherCostsNothing) {
  lanes.add({.gpu = kGpu});
  std::vector<Instance*> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(&idle(kB));
  std::uint64_t last = 0;
  const auto together = [&](std::size_t calls) {
    std::vector<InvocationId> ids;
    for (std::size_t i = 0; i < calls; ++i) {
      arrive(++last, kB);
      ids.push_back(run(*sessions[i]));
    }
    pass(1s);
    for (std::size_t i = 0; i < calls; ++i) {
      runs.end(now, ids[i], OutcomeKind::kSuccess, std::nullopt, out);
      keeper.rest(now, *sessions[i]);
    }
  };
  for (int round = 0; round < 20; ++round) together(1);
  for (int round = 0; round < 20; ++round) together(2);
  EXPECT_GT(lanes_there(), 2u);
}

class NoLanes : public LaneMeterTest {
 protected:
  NoLanes() : LaneMeterTest({.starts_per_gpu = 0, .most_task_lanes = 4}) {}
};

TEST_F(NoLanes, WhereStartsHoldSlotsThereAreNone) {
  lanes.add({.gpu = kGpu});
  EXPECT_EQ(lanes_there(), 0u);
}

}  // namespace
}  // namespace fairlead
