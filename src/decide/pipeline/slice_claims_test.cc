// Planted and caught: idle pipelines that keep their slices; a tenant that loses what it needs to one that has more; two tenants that push each
// other out in turns; a pipeline that goes as soon as it came.
#include "decide/pipeline/slice_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

SliceHolder holder(const std::string& tenant, int slices, Duration idle, Duration held = 1h) {
  return {.tenant = tenant, .slices = slices, .idle = idle, .held = held};
}
SliceClaims claims(std::vector<SliceHolder> holders, std::map<std::string, double> weights = {}) {
  return {{.idle = 30s, .least_stay = 10s}, std::move(weights), std::move(holders)};
}

TEST(SliceClaims, LongestIdleGoesFirstWhoeverHasIt) {
  const auto all = claims({holder("a", 1, 30s), holder("a", 2, 60s), holder("a", 4, 29s), holder("a", 1, 0s)});
  EXPECT_THAT(all.leavers_for("a"), ElementsAre(1, 0));
}

TEST(SliceClaims, WhoHasMoreThanItsShareGivesUpWhatIsIdleThenWhatIsBusy) {
  const auto all = claims({holder("a", 4, 0s), holder("a", 2, 1s), holder("a", 1, 31s)});
  EXPECT_THAT(all.leavers_for("b"), ElementsAre(2, 1, 0));
  EXPECT_THAT(all.leavers_for("a"), ElementsAre(2)) << "its own busy ones it does not push out";
}

TEST(SliceClaims, NobodyEndsWithMoreForItsWeightThanTheOtherHad) {
  EXPECT_THAT(claims({holder("a", 4, 0s), holder("b", 3, 0s)}).leavers_for("b"), IsEmpty());
  EXPECT_THAT(claims({holder("a", 3, 0s), holder("b", 4, 0s)}).leavers_for("a"), IsEmpty()) << "and not back";
  EXPECT_THAT(claims({holder("a", 4, 0s)}).leavers_for("b"), IsEmpty()) << "it would have as much";
  EXPECT_THAT(claims({holder("a", 4, 0s)}, {{"b", 2}}).leavers_for("b"), ElementsAre(0)) << "4 / 2 is less than 4";
  EXPECT_DOUBLE_EQ(claims({holder("a", 4, 0s)}, {{"a", 2}}).load("a"), 2);
}

TEST(SliceClaims, WhoCameLatelyOrIsHotStays) {
  auto lately = holder("a", 7, 60s, 9s), hot = holder("a", 7, 60s);
  hot.may_leave = false;
  EXPECT_THAT(claims({lately, hot}).leavers_for("b"), IsEmpty());
}

}  // namespace
}  // namespace fairlead
