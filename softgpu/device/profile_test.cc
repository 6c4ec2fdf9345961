#include "softgpu/device/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "softgpu/device/key_value.h"

namespace softgpu {
namespace {

using ::testing::HasSubstr;

TEST(Profile, EveryCompiledInProfileParses) {
  const auto names = builtin_profile_names();
  EXPECT_GE(names.size(), 6U);
  for (const std::string_view name : names) {
    const auto profile = parse_profile(*load_profile_text(std::string(name)));
    ASSERT_TRUE(profile) << name << ": " << profile.error();
    EXPECT_FALSE(profile->name.empty());
  }
}

TEST(Profile, UnknownNameSaysWhatExists) {
  const auto text = load_profile_text("v1000");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error(), HasSubstr("v100-16"));
}

TEST(Profile, MissingForeignAndBadKeysAreNamed) {
  const std::string good = *load_profile_text("a30");
  EXPECT_THAT(parse_profile(good + "wheels = 4\n").error(), HasSubstr("wheels"));
  EXPECT_THAT(parse_profile("name = x\n").error(), HasSubstr("compute_capability"));
  std::string bad = good;
  bad.replace(bad.find("sm_count = 56"), 13, "sm_count = 0 ");
  EXPECT_THAT(parse_profile(bad).error(), HasSubstr("between 1 and 1024"));
}

TEST(KeyValue, CommentsAndBlanksAreSkippedAndDuplicatesRefused) {
  const auto values = parse_key_values("# head\n a = 1 # tail\n\nb=2\n");
  ASSERT_TRUE(values);
  EXPECT_EQ(values->at("a"), "1");
  EXPECT_EQ(values->at("b"), "2");
  EXPECT_THAT(parse_key_values("a=1\na=2\n").error(), HasSubstr("line 2"));
  EXPECT_THAT(parse_key_values("nonsense\n").error(), HasSubstr("line 1"));
}

TEST(Profile, OptionalKeysHaveDefaults) {
  const Profile plain = *parse_profile(*load_profile_text("a30"));
  EXPECT_EQ(plain.time_slice_us, 2000U);
  EXPECT_EQ(plain.page_fault_us, 20U);
  EXPECT_EQ(parse_profile(*load_profile_text("a30") + "time_slice_us = 500\n")->time_slice_us, 500U);
}

}  // namespace
}  // namespace softgpu
