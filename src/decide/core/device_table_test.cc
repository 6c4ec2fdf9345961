#include "decide/core/device_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr GpuId kOne(1), kTwo(2);

class DeviceTableTest : public ::testing::Test {
 protected:
  DeviceTableTest() {
    table.add({.gpu = kOne}, 2);
    table.add({.gpu = kTwo, .is_dynamic = true}, 3);
  }
  std::optional<GpuRemedy> fails(GpuId gpu) { return table.step(now, DeviceSample{.gpu = gpu, .failure = "lost"}); }
  std::optional<GpuRemedy> answers(GpuId gpu) { return table.step(now, DeviceSample{.gpu = gpu}); }
  // A device that has failed is drained, emptied, and answers for a while.
  void heal(GpuId gpu) {
    table.step(now, DeviceEmptied{gpu});
    for (int second = 0; second < 5 && table.state(gpu) != GpuState::kServing; ++second) {
      now += 1s;
      answers(gpu);
    }
    ASSERT_EQ(table.state(gpu), GpuState::kServing);
  }

  DeviceTable table;
  Instant now{};
};

TEST_F(DeviceTableTest, ADeviceThatFailsServesAgainWhenItIsHealthy) {
  EXPECT_TRUE(table.may_serve(kOne));
  EXPECT_EQ(fails(kOne), GpuRemedy::kDrain);
  EXPECT_FALSE(table.may_serve(kOne));
  EXPECT_EQ(table.reason(kOne), "lost");
  EXPECT_TRUE(table.may_serve(kTwo));
  heal(kOne);
  EXPECT_TRUE(table.may_serve(kOne));
}

TEST_F(DeviceTableTest, WhoWithholdsADeviceGivesItBackForHimselfAlone) {
  table.withhold(kOne);
  fails(kOne);
  table.give_back(kOne);
  EXPECT_FALSE(table.may_serve(kOne)) << "it has failed meanwhile";
  table.withhold(kOne);
  heal(kOne);
  EXPECT_FALSE(table.may_serve(kOne)) << "it is withheld";
  table.give_back(kOne);
  EXPECT_TRUE(table.may_serve(kOne));
}

TEST_F(DeviceTableTest, WhatGoesDoesNotComeBackWhateverIsSaidOfIt) {
  EXPECT_TRUE(table.leave(kOne));
  EXPECT_FALSE(table.leave(kOne));
  EXPECT_FALSE(table.leave(GpuId(9)));
  EXPECT_EQ(fails(kOne), std::nullopt);
  EXPECT_EQ(table.step(now, DeviceFault{kOne, 79}), std::nullopt);
  EXPECT_EQ(table.step(now, DaemonSeen{kOne, MpsDaemonState::kGone}), std::nullopt);
  EXPECT_EQ(table.step(now, DaemonStarted{kOne, true}), std::nullopt);
  EXPECT_EQ(table.step(now, DeviceEmptied{kOne}), std::nullopt);
  EXPECT_FALSE(table.may_serve(kOne));
  EXPECT_EQ(table.state(kOne), GpuState::kDraining);
  EXPECT_EQ(table.reason(kOne), "it is no longer there");
  EXPECT_TRUE(table.contains(kOne)) << "until nothing is left on it";
}

TEST_F(DeviceTableTest, WhatIsNotThereIsNobody) {
  EXPECT_EQ(fails(GpuId(9)), std::nullopt);
  EXPECT_FALSE(table.is_present(GpuId(9)));
}

TEST_F(DeviceTableTest, WhatGoesIsForgottenOnceItIsEmptyAndNotBefore) {
  EXPECT_FALSE(table.some_leave());
  table.leave(kTwo);
  table.leave(kOne);
  EXPECT_THAT(table.forget_empty([](GpuId) { return false; }), IsEmpty());
  EXPECT_TRUE(table.some_leave());
  EXPECT_THAT(table.forget_empty([](GpuId gpu) { return gpu == kOne; }), ElementsAre(kOne));
  EXPECT_THAT(table.forget_empty([](GpuId) { return true; }), ElementsAre(kTwo));
  EXPECT_FALSE(table.contains(kTwo));
  EXPECT_FALSE(table.some_leave());
}

TEST_F(DeviceTableTest, OnlyADynamicDFollowsTheLoad) {
  const DynamicSlots::Sample busy{.utilisation = 0.1, .slots_in_use = 1, .waiting = true};
  EXPECT_EQ(table.follow_load(now, kOne, busy), std::nullopt);
  std::optional<std::size_t> slots;
  for (int i = 0; i < 100; ++i)
    slots = table.follow_load(now += 200ms, kTwo, {busy.utilisation, slots.value_or(1), true});
  EXPECT_EQ(slots, 3u) << "up to the D that it was added with";
}

TEST(DeviceTableDeathTest, ADeviceComesOnce) {
  DeviceTable table;
  table.add({.gpu = kOne}, 1);
  EXPECT_DEATH(table.add({.gpu = kOne}, 1), "GPU 1 is there already");
}

}  // namespace
}  // namespace fairlead
