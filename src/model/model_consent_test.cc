#include "model/model_consent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/function.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ModelConsent, NobodyIsNamedWithoutTags) {
  const auto consent = model_consent({});
  ASSERT_TRUE(consent);
  EXPECT_THAT(consent->lends_to, IsEmpty());
  EXPECT_THAT(consent->takes_of, IsEmpty());
}

TEST(ModelConsent, TagsNameTenants) {
  const auto consent = model_consent({{kLendsModelsTag, "shop  @all"}, {kTakesModelsTag, "vision audio"}});
  ASSERT_TRUE(consent);
  EXPECT_THAT(consent->lends_to, ElementsAre("@all", "shop"));
  EXPECT_THAT(consent->takes_of, ElementsAre("audio", "vision"));
}

TEST(ModelConsent, WhatIsNoTenantIsRefusedWhenTheFunctionIsDeployed) {
  for (const std::string& bad : {std::string(), std::string(" "), std::string("../x"), std::string("@all")}) {
    FunctionConfig config;
    config.tags = {{kTakesModelsTag, bad}};  // to take of all would be to trust all
    const auto settings = gpu_settings(config);
    ASSERT_FALSE(settings) << bad;
    EXPECT_THAT(settings.error().message, HasSubstr(kTakesModelsTag));
  }
  std::string many;
  for (std::size_t i = 0; i <= kMaxModelTenants; ++i) many += fmt::format("t{} ", i);
  EXPECT_FALSE(model_consent({{kLendsModelsTag, many}}));
}

}  // namespace
}  // namespace fairlead
