#include "decide/core/dispatchable.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;

class DispatchableTest : public CoreParts {
 protected:
  DispatchableTest() {
    add_gpu(kGpu, 2, gib(8));
    add_gpu(kOther, 2, gib(8));
    add({.flow = kA, .expected_memory = gib(6)});
    add({.flow = kB, .expected_memory = gib(6)});
  }
};

TEST_F(DispatchableTest, AFlowRunsWhereItIsWarmOrWhereItFits) {
  EXPECT_TRUE(dispatchable.can_run(kA)) << "it starts with the dispatch";
  idle(kA);
  EXPECT_TRUE(dispatchable.can_run(kA));
  EXPECT_TRUE(dispatchable.answers().one_could_run());
}

TEST_F(DispatchableTest, WhatRunsHasTheMemory) {
  arrive(1, kA);
  arrive(2, kA);
  run(idle(kA, kGpu));
  run(idle(kA, kOther));
  EXPECT_FALSE(dispatchable.can_run(kB));
  EXPECT_EQ(dispatchable.obstacle(kB), Obstacle::kMemory);
  EXPECT_EQ(dispatchable.answers().run(), Obstacle::kMemory);
  EXPECT_EQ(dispatchable.answers().waits(), kB);
}

TEST_F(DispatchableTest, OnePlaceForEachGpuThatServes) {
  idle(kA, kOther);
  tables.pool.set_serves(kGpu, false);
  const auto places = dispatchable.places(kA);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].gpu, kOther);
  EXPECT_TRUE(places[0].free);
  EXPECT_EQ(dispatchable.place(kA, kGpu), std::nullopt);
}

TEST_F(DispatchableTest, FreeGpusComeInTheOrderOfWhatRunsThere) {
  arrive(1, kA);
  run(idle(kA, kGpu));
  EXPECT_THAT(dispatchable.free_gpus(), ElementsAre(kOther, kGpu));
}

TEST_F(DispatchableTest, EachChoiceBeginsWithoutAnswers) {
  dispatchable.is_kept(kA);
  dispatchable.note_start(kA, Obstacle::kStarts);
  EXPECT_TRUE(dispatchable.answers().one_is_kept());
  dispatchable.begin();
  EXPECT_FALSE(dispatchable.answers().one_is_kept());
  EXPECT_EQ(dispatchable.answers().start(), std::nullopt);
}

TEST(DispatchAnswers, TheFirstThatWaitsForMoreThanItselfIsTheOneWhoseTurnItIs) {
  DispatchAnswers answers;
  answers.note_run(kA, Obstacle::kItself);
  EXPECT_EQ(answers.waits(), kA);
  answers.note_run(kB, Obstacle::kMemory);
  answers.note_run(kC, Obstacle::kStarts);
  EXPECT_EQ(answers.run(), Obstacle::kMemory);
  EXPECT_EQ(answers.waits(), kB);
  EXPECT_FALSE(answers.one_could_run());
  answers.note_start(Obstacle::kNothing);
  EXPECT_EQ(answers.start(), std::nullopt) << "nothing keeps it";
}

}  // namespace
}  // namespace fairlead
