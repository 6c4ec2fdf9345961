// Planted and caught: another profile of the same compute slices taken for the one that was named; whole GPUs taken for a slice.
#include "model/mig_tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using testing::HasSubstr;

TEST(MigTag, NamesAProfileOrItsComputeSlices) {
  EXPECT_EQ(mig_profile_in({}).value(), "");
  for (const auto* good : {"3g.40gb", "3g", "1g.10gb+me", "1g.12gb-me", "1g.10gb+me.all", "7g.141gb"}) {
    EXPECT_EQ(mig_profile_in({{kMigProfileTag, good}}).value(), good);
  }
  for (const std::string bad :
       {"", "g", "0g", "3", "3g.", "3g.gb", "3g.40", "3gb", "33g", "3g.40000gb", "3g.4xgb", "3g.40gb+", "3g.40gb+7",
        "3g.40gb+ME", "MIG 3g.40gb", "3g.40gb 3g.40gb", "1g.10gb+mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"}) {
    const auto refused = mig_profile_in({{kMigProfileTag, bad}});
    ASSERT_FALSE(refused) << bad;
    EXPECT_THAT(refused.error().message, HasSubstr("tag gpu:mig-profile is '" + bad + "'"));
  }
}

TEST(MigTag, ADeviceIsOfTheProfileOrOfItsComputeSlices) {
  EXPECT_TRUE(is_of_profile("3g.40gb", "3g.40gb"));
  EXPECT_TRUE(is_of_profile("3g.40gb", "3g"));
  EXPECT_TRUE(is_of_profile("3g.40gb", ""));
  EXPECT_TRUE(is_of_profile("", "")) << "a whole GPU";
  EXPECT_FALSE(is_of_profile("", "3g"));
  EXPECT_FALSE(is_of_profile("3g.20gb", "3g.40gb"));
  EXPECT_FALSE(is_of_profile("1g.20gb", "1g.10gb"));
  EXPECT_FALSE(is_of_profile("1g.10gb+me", "1g.10gb"));
  EXPECT_TRUE(is_of_profile("1g.10gb+me", "1g"));
}

}  // namespace
}  // namespace fairlead
