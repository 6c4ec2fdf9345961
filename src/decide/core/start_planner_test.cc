#include "decide/core/start_planner.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StartPlannerTest : public CoreParts {
 protected:
  StartPlannerTest()
      : CoreParts({.slots_per_gpu = 1, .instances_per_gpu = 2, .starts_per_gpu = 1, .no_cold_duplicates = true}) {
    add_gpu(kGpu, 1);
    add({.flow = kA});
    add({.flow = kB});
  }
};

TEST_F(StartPlannerTest, AFlowWithWorkAndNoInstanceStartsOne) {
  arrive(1, kA);
  const auto place = planner.place(kA);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->gpu, kGpu);
  EXPECT_THAT(place->evict, IsEmpty());
  EXPECT_EQ(planner.obstacle(kA), Obstacle::kNothing);
}

TEST_F(StartPlannerTest, NoMoreStartThanMayAtATime) {
  EXPECT_TRUE(planner.may_start());
  start(kB);
  EXPECT_FALSE(planner.may_start());
  arrive(1, kA);
  EXPECT_EQ(planner.place(kA), std::nullopt);
}

TEST_F(StartPlannerTest, OneMoreThanItMayHaveIsNotWanted) {
  add({.flow = kC, .most_instances = 1});
  EXPECT_TRUE(planner.may_have_more(kC));
  Instance& only = idle(kC);
  EXPECT_FALSE(planner.may_have_more(kC));
  arrive(1, kC);
  run(only);
  tables.pool.take(only, InstanceEvent::kRetired);
  EXPECT_TRUE(planner.may_have_more(kC)) << "what goes is none any more";
}

// Two functions could start in each other's place for ever.
TEST_F(StartPlannerTest, OneThatWaitsForItsFirstInvocationIsNotStoppedForAnother) {
  Instance& unused = idle(kA);
  EXPECT_TRUE(planner.may_go(unused)) << "nothing waits for it";
  arrive(1, kA);
  EXPECT_FALSE(planner.may_go(unused));
  EXPECT_FALSE(planner.may_go(*unused.on)) << "as many wait for their turn as the GPU has slots";
}

TEST_F(StartPlannerTest, ASecondInstanceStartsOnlyWhereASlotIdles) {
  Instance& first = idle(kA);
  arrive(1, kA);
  arrive(2, kA);
  run(first);
  EXPECT_FALSE(tables.pool.has_turn());
  EXPECT_EQ(planner.obstacle(kA), Obstacle::kItself) << "it could not run sooner";
}

// A start takes 9 s, a run 2 s, and one runs since 0.5 s: with three queued it is done with them in 5.5 s, with six in 11.5 s.
TEST_F(StartPlannerTest, ABusyInstanceIsWorthWaitingForWhileItIsSoonerThanAStart) {
  tables.functions.at(kA).cold_start.learn(9s);
  Instance& busy = idle(kA);
  arrive(1, kA);
  const InvocationId first = run(busy);
  pass(2s);
  runs.end(now, first, OutcomeKind::kSuccess, std::nullopt, out);
  keeper.rest(now, busy);
  for (std::uint64_t id = 2; id <= 5; ++id) arrive(id, kA);
  run(busy);
  pass(500ms);
  EXPECT_TRUE(planner.worth_waiting(kA));
  for (std::uint64_t id = 6; id <= 8; ++id) arrive(id, kA);
  EXPECT_FALSE(planner.worth_waiting(kA));
}

TEST_F(StartPlannerTest, AnInstanceThatIsLongOverdueIsNotWaitedFor) {
  tables.functions.at(kA).cold_start.learn(9s);
  Instance& busy = idle(kA);
  arrive(1, kA);
  run(busy);
  arrive(2, kA);
  EXPECT_TRUE(planner.worth_waiting(kA));
  pass(60s);
  EXPECT_FALSE(planner.worth_waiting(kA));
}

TEST_F(StartPlannerTest, ItIsAskedForWithoutColdDuplicatesAlone) {
  tables.options.no_cold_duplicates = false;
  start(kA);
  EXPECT_FALSE(planner.worth_waiting(kA));
}

TEST_F(StartPlannerTest, WhereAFreeInstanceWaitsForDataAnotherWouldWaitToo) {
  idle(kA).reload = 1s;
  EXPECT_THAT(planner.held_back_on(kA), IsEmpty()) << "its data does not stay there";
  tables.functions.at(kA).keeps_data = true;
  EXPECT_THAT(planner.held_back_on(kA), ElementsAre(kGpu));
}

TEST_F(StartPlannerTest, WhoNobodyHasCalledStartsInAFreePlaceAlone) {
  EXPECT_TRUE(planner.place_prepared(kA));
  idle(kB);
  idle(kB);
  EXPECT_EQ(planner.place_prepared(kA), std::nullopt) << "somebody would have to go";
  EXPECT_EQ(planner.place_prepared(kB), std::nullopt) << "it has one";
}

}  // namespace
}  // namespace fairlead
