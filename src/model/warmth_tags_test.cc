#include "model/warmth_tags.h"

#include <gtest/gtest.h>

#include "model/function.h"

namespace fairlead {
namespace {

TEST(WarmthTags, WhatIsKeptIsTheLeastOfReplicas) {
  EXPECT_EQ(*with_instances_kept({}, 2), (Tags{{"gpu:replicas", "2:1000"}}));
  EXPECT_EQ(*with_instances_kept({{"gpu:replicas", "1:3"}, {"team", "x"}}, 2),
            (Tags{{"gpu:replicas", "2:3"}, {"team", "x"}}));
  EXPECT_EQ(*with_instances_kept({{"gpu:replicas", "3"}}, 1), (Tags{{"gpu:replicas", "1:3"}}));
  EXPECT_EQ(*with_instances_kept({{"gpu:replicas", "1:3"}}, 5), (Tags{{"gpu:replicas", "5:5"}}));
}

TEST(WarmthTags, NoneKeptIsAsItWasBefore) {
  EXPECT_EQ(*with_instances_kept(*with_instances_kept({}, 2), 0), Tags());
  EXPECT_EQ(*with_instances_kept({{"gpu:replicas", "2:5"}}, 0), (Tags{{"gpu:replicas", "0:5"}}));
  EXPECT_EQ(instances_kept({}), 0);
  EXPECT_EQ(instances_kept({{"gpu:replicas", "2:5"}}), 2);
}

TEST(WarmthTags, BoundsAreNamed) {
  for (const int wrong : {-1, kMaxReplicas + 1}) {
    EXPECT_EQ(with_instances_kept({}, wrong).error().code, Errc::kInvalidArgument);
  }
}

TEST(WarmthTags, SayHowInstancesAreHeld) {
  using namespace std::chrono_literals;
  EXPECT_EQ(*held_as({}), WarmHold());
  EXPECT_EQ(*held_as({{"gpu:keep", "10m"}}), (WarmHold{PinKind::kHost, 10min}));
  EXPECT_EQ(*held_as({{"gpu:keep", "0"}, {"gpu:pin", "none"}}), (WarmHold{PinKind::kNone, 0s}));
  EXPECT_EQ(*held_as({{"gpu:pin", "device"}}), (WarmHold{PinKind::kDevice, std::nullopt}));
  EXPECT_EQ(held_as({{"gpu:pin", "gpu"}}).error().message, "tag gpu:pin is 'gpu'; it must be device, host or none");
}

TEST(WarmthTags, TimesHaveUnitsAndABound) {
  using namespace std::chrono_literals;
  for (const auto& [text, time] : std::map<std::string, std::chrono::seconds>{
           {"0", 0s}, {"90", 90s}, {"90s", 90s}, {"10m", 600s}, {"2h", 7200s}, {"365d", 365 * 24h}}) {
    ASSERT_TRUE(read_keep("--keep", text)) << text;
    EXPECT_EQ(*read_keep("--keep", text), time) << text;
  }
  EXPECT_EQ(read_keep("--keep", "36500d").error().message,
            "--keep is '36500d'; it must be a time from 0 to 365d such as 90s, 10m or 2h");
  for (const char* wrong :
       {"", "s", "-1", "-1s", "1.5h", "10 m", "10M", "10ms", "366d", "9223372036854775807h", "99999999999999999999"}) {
    EXPECT_FALSE(read_keep("--keep", wrong)) << wrong;
  }
  EXPECT_EQ(keep_text(0s), "0s");
  EXPECT_EQ(keep_text(90s), "90s");
  EXPECT_EQ(keep_text(5400s), "90m");
  EXPECT_EQ(keep_text(24h), "1d");
}

TEST(WarmthTags, ChangeNoProcess) {
  FunctionConfig held;
  held.tags = {{"gpu:keep", "10m"}, {"gpu:pin", "device"}};
  EXPECT_TRUE(is_same_process({}, held));
  held.tags["gpu:keep"] = "100y";
  EXPECT_FALSE(gpu_settings(held));
}

TEST(WarmthTags, AreValidTagsOfAFunction) {
  FunctionConfig config;
  config.tags = *with_instances_kept({{"gpu:unloaded-at", "1700000600"}}, 2);
  ASSERT_TRUE(gpu_settings(config)) << gpu_settings(config).error().message;
  EXPECT_EQ(gpu_settings(config)->replicas.least, 2u);
  for (const char* wrong : {"", "now", "-1", "99999999999999999999"}) {
    config.tags["gpu:unloaded-at"] = wrong;
    EXPECT_FALSE(gpu_settings(config)) << wrong;
  }
}

}  // namespace
}  // namespace fairlead
