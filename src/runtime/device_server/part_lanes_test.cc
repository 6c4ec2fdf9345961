// Which SMs a call has that is kept to a part of them. Planted and caught: the same groups for two that run together, a lane for each call, the oldest lane
// whoever is on it, groups of a call that rests as good as taken.
#include "runtime/device_server/part_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/check.h"
#include "runtime/device_server/lane_pool.h"
#include "runtime/device_server/testing/software_gpu.h"

namespace fairlead {
namespace {

// A V100: 40 groups of 2 SMs. What the driver says of a lane's streams.
struct PartLanesTest : testing::Test {
  LaunchLane& take(std::uint32_t groups) {
    auto lane = lanes.take(groups);
    FL_CHECK(lane.has_value(), "{}", lane.error().message);
    return **lane;
  }
  template <typename Function>
  Function* ask(const char* name) const {
    Function* found = nullptr;
    FL_CHECK(gpu.driver().bind(found, name).has_value(), "{}", name);
    return found;
  }
  CUgreenCtx context_of(CUstream stream) const {
    CUgreenCtx context = nullptr;
    EXPECT_EQ(ask<decltype(cuStreamGetGreenCtx)>("cuStreamGetGreenCtx")(stream, &context), CUDA_SUCCESS);
    return context;
  }
  // 0: there is no such context any more. A later one may have its handle, and has another number.
  std::uint64_t number_of(CUgreenCtx context) const {
    unsigned long long id = 0;
    return ask<decltype(cuGreenCtxGetId)>("cuGreenCtxGetId")(context, &id) == CUDA_SUCCESS ? id : 0;
  }
  unsigned sms_of(CUstream stream) const {
    CUdevResource sms{};
    const auto resource = ask<decltype(cuGreenCtxGetDevResource)>("cuGreenCtxGetDevResource");
    EXPECT_EQ(resource(context_of(stream), &sms, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    return sms.sm.smCount;
  }

  CudaContext& gpu = software_gpu(SOFTGPU_FOLDER);
  PartLanes lanes{gpu};
};

TEST_F(PartLanesTest, AllStreamsOfALaneAreOnItsSms) {
  LaunchLane& lane = take(10);
  for (std::uint32_t i = 0; i < LaunchLane::kStreams; ++i) EXPECT_EQ(sms_of(lane.stream(i)), 20u);
}

TEST_F(PartLanesTest, CallsThatRunTogetherHaveLanesOfTheirOwnWhichAreKept) {
  LaunchLane& first = take(20);
  LaunchLane& second = take(20);
  EXPECT_NE(context_of(first.main()), context_of(second.main()));
  lanes.give_back(first);
  EXPECT_EQ(&take(20), &first) << "the groups that nobody is on";
  LaunchLane& third = take(20);
  EXPECT_NE(&third, &first);
  EXPECT_NE(&third, &second);
  lanes.give_back(first);
  lanes.give_back(second);
  lanes.give_back(third);
  const std::set<LaunchLane*> again = {&take(20), &take(20)};
  EXPECT_EQ(again.size(), 2u);
  EXPECT_TRUE(std::ranges::all_of(again, [&](const LaunchLane* one) {
    return one == &first || one == &second || one == &third;
  })) << "none is made";
}

TEST_F(PartLanesTest, ALaneIsTakenAgainWhereverNobodyIsOnItsGroups) {
  LaunchLane& first = take(10);   // 0 to 9
  LaunchLane& second = take(10);  // 10 to 19
  lanes.give_back(first);
  lanes.give_back(second);
  take(4);  // 0 to 3
  EXPECT_EQ(&take(10), &second) << "and not 4 to 13, for which one would have to be made";
}

TEST_F(PartLanesTest, ACallThatRestsIsInNobodysWay) {
  take(20);                      // 0 to 19
  LaunchLane& rests = take(20);  // 20 to 39
  rests.rest(true);
  LaunchLane& third = take(20);  // 20 to 39, where nothing runs
  lanes.give_back(rests);
  EXPECT_FALSE(rests.rests()) << "its next call runs";
  lanes.give_back(third);
  EXPECT_EQ(&take(20), &third) << "which was used last, and has the groups that nobody is on";
}

TEST_F(PartLanesTest, OneCallAfterTheOtherMakesNoContexts) {
  LaunchLane& rests = take(24);  // 0 to 23 of 40
  rests.rest(true);
  LaunchLane& first = take(24);  // 8 of them, there being no others
  const std::uint64_t number = number_of(context_of(first.main()));
  lanes.give_back(first);
  for (int i = 0; i < 100; ++i) {
    LaunchLane& again = take(24);
    ASSERT_EQ(number_of(context_of(again.main())), number) << "call " << i;
    lanes.give_back(again);
  }
}

TEST_F(PartLanesTest, LanesThatWereIdleLongestGoAndThoseInUseStay) {
  LaunchLane& kept = take(1);
  LaunchLane& idle = take(2);
  lanes.give_back(idle);
  const CUgreenCtx of_kept = context_of(kept.main()), of_idle = context_of(idle.main());
  const std::uint64_t number_of_kept = number_of(of_kept), number_of_idle = number_of(of_idle);
  for (std::uint32_t groups = 3; groups < 3 + PartLanes::kMost; ++groups) lanes.give_back(take(groups));
  EXPECT_EQ(number_of(of_kept), number_of_kept);
  EXPECT_NE(number_of(of_idle), number_of_idle);
  lanes.give_back(kept);
}

TEST_F(PartLanesTest, MoreCallsThanThereAreSmsShareThem) {
  std::set<LaunchLane*> taken;
  for (int i = 0; i < 40; ++i) taken.insert(&take(30));
  EXPECT_EQ(taken.size(), 40u);
}

TEST_F(PartLanesTest, EventsAreThereOnLanesThatAreMadeLater) {
  LaunchLane& before = take(4);
  ASSERT_TRUE(lanes.need_events(3));
  EXPECT_NE(before.event(2), nullptr);
  EXPECT_NE(take(4).event(2), nullptr);
}

TEST_F(PartLanesTest, ComeBackThroughThePoolToo) {
  const auto pool = LanePool::create(gpu).value();
  LaunchLane& lane = **pool->parts().take(10);
  EXPECT_EQ(context_of(pool->take().main()), nullptr);
  pool->give_back(lane);
  EXPECT_EQ(*pool->parts().take(10), &lane);
}

}  // namespace
}  // namespace fairlead
