#include "shim/place.h"

#include <gtest/gtest.h>

#include "shim/gate.h"

namespace fairlead::shim {
namespace {

constexpr std::uint64_t kUs = 1000, kNow = 1'000'000 * kUs;

class PlaceOfAProcess : public ::testing::Test {
 protected:
  PlaceOfAProcess() {
    page().pace.store(wire::kPacePlaces);
    page().open_until_ns.store(UINT64_MAX / 2);
    page().grant.fetch_add(1);
    page().gate.fetch_and(~wire::kGateNode);
  }
  ~PlaceOfAProcess() override {
    page().pace.store(0);
    open_gate(wire::kGateNode);
  }
  static bool is_open() { return (page().gate.load() & wire::kGateNode) == 0; }
};

TEST_F(PlaceOfAProcess, IsGivenBackWhereItIsNotUsed) {
  look_at_place(kNow);
  look_at_place(kNow + 100 * kUs);
  EXPECT_TRUE(is_open());
  look_at_place(kNow + 200 * kUs);
  EXPECT_FALSE(is_open());
  EXPECT_EQ(page().drained.load(), page().grant.load());
}

TEST_F(PlaceOfAProcess, IsKeptWhileALaunchWaitsForItsLeash) {
  {
    const LaunchAhead ahead;
    look_at_place(kNow);
    look_at_place(kNow + 1000 * kUs);
    EXPECT_TRUE(is_open());
  }
  look_at_place(kNow + 1100 * kUs);
  look_at_place(kNow + 1300 * kUs);
  EXPECT_FALSE(is_open());
}

}  // namespace
}  // namespace fairlead::shim
