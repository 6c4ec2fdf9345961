// Which lane a call gets. Planted and caught: a lane that is given back and stays taken; more than kMost lanes; the first lane for
// everybody who finds none free.
#include "runtime/device_server/lane_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

TEST(LanePool, CallsShareNoLaneWhileThereAreEnough) {
  const auto pool = LanePool::create(software_gpu(SOFTGPU_FOLDER)).value();
  std::vector<LaunchLane*> taken;
  for (std::size_t i = 0; i < LanePool::kMost; ++i) taken.push_back(&pool->take());
  EXPECT_EQ(std::set<LaunchLane*>(taken.begin(), taken.end()).size(), LanePool::kMost);
  EXPECT_EQ(taken[0], &pool->first());

  std::set<LaunchLane*> shared;
  for (std::size_t i = 0; i < LanePool::kMost; ++i) shared.insert(&pool->take());
  EXPECT_EQ(shared, std::set<LaunchLane*>(taken.begin(), taken.end())) << "in turns, and no more of them";
  for (LaunchLane* const lane : taken) pool->give_back(*lane);
  for (LaunchLane* const lane : shared) pool->give_back(*lane);
  EXPECT_EQ(&pool->take(), taken[0]);
  EXPECT_EQ(&pool->take(), taken[1]);
}

TEST(LanePool, ALaneThatIsGivenBackIsTakenBeforeAnotherIsMade) {
  const auto pool = LanePool::create(software_gpu(SOFTGPU_FOLDER)).value();
  std::vector<LaunchLane*> taken;
  for (std::size_t i = 0; i < LanePool::kFirst; ++i) taken.push_back(&pool->take());
  pool->give_back(*taken[2]);
  EXPECT_EQ(&pool->take(), taken[2]);
}

TEST(LanePool, EventsAreThereOnLanesThatAreMadeLater) {
  const auto pool = LanePool::create(software_gpu(SOFTGPU_FOLDER)).value();
  ASSERT_TRUE(pool->need_events(3));
  ASSERT_TRUE(pool->need_events(1));
  for (std::size_t i = 0; i < LanePool::kFirst + 1; ++i) EXPECT_NE(pool->take().event(2), nullptr) << i;
}

}  // namespace
}  // namespace fairlead
