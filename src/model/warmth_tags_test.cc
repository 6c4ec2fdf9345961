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
