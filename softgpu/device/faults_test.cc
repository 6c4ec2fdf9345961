#include "softgpu/device/faults.h"

#include <gtest/gtest.h>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Client;
using testing::kSmall;
using testing::Observer;
using testing::TemporaryHome;

class FaultsTest : public ::testing::Test {
 protected:
  const TemporaryHome home_{kSmall};
  const Observer observer_;
  Faults faults_ = observer_.view->faults();
};

TEST_F(FaultsTest, XidsAreCountedAndClearingForgetsNone) {
  EXPECT_EQ(faults_.xid_count(), 0U);
  faults_.raise_xid(31);
  faults_.raise_xid(31);
  EXPECT_EQ(faults_.xid_count(), 2U);
  EXPECT_EQ(faults_.last_xid(), 31U);
  EXPECT_FALSE(faults_.lost());
  faults_.clear();
  EXPECT_EQ(faults_.xid_count(), 2U);
}

TEST_F(FaultsTest, Xid79LosesTheDeviceUntilCleared) {
  faults_.raise_xid(79);
  EXPECT_TRUE(faults_.lost());
  faults_.clear();
  EXPECT_FALSE(faults_.lost());
}

TEST_F(FaultsTest, AllocationsFailAfterThoseSkippedAndAsOftenAsTold) {
  faults_.fail_allocations(2, 3);
  std::string seen;
  for (int i = 0; i < 7; ++i) seen += faults_.take_allocation_failure() ? 'x' : '.';
  EXPECT_EQ(seen, "..xxx..");
}

TEST_F(FaultsTest, EveryProcessTakesFromTheSameFailures) {
  faults_.fail_allocations(0, 2);
  for (const bool works : {false, false, true}) {
    as_client([&](Client& client) { EXPECT_EQ(client.device->make_heap()->allocate(100) != 0, works); });
  }
  EXPECT_EQ(faults_.allocation_failures(), 0U);
}

TEST_F(FaultsTest, LinkFactorIsOneUntilSet) {
  EXPECT_EQ(faults_.link_factor(), 1);
  faults_.slow_link(2.5);
  EXPECT_EQ(faults_.link_factor(), 2.5);
  faults_.clear();
  EXPECT_EQ(faults_.link_factor(), 1);
}

TEST_F(FaultsTest, AHangLastsUntilCleared) {
  faults_.hang();
  EXPECT_TRUE(faults_.hung());
  faults_.clear();
  EXPECT_FALSE(faults_.hung());
  faults_.wait_while_hung(10'000);  // returns at once
}

}  // namespace
}  // namespace softgpu
