#include "model/tenant.h"

#include <gtest/gtest.h>

#include "model/function.h"

namespace fairlead {
namespace {

TEST(Tenant, IsSafeAsTheNameOfAFolder) {
  for (const char* good : {"a", "default", "Team_7-x"}) EXPECT_TRUE(validate_tenant(good)) << good;
  for (const char* bad : {"", ".", "..", "a/b", "a.b", "a b", "\xc3\xa4"}) EXPECT_FALSE(validate_tenant(bad)) << bad;
  EXPECT_TRUE(validate_tenant(std::string(kMaxTenantLength, 'a')));
  EXPECT_FALSE(validate_tenant(std::string(kMaxTenantLength + 1, 'a')));
}

TEST(Tenant, IsWhatTheTagSays) {
  EXPECT_EQ("default", tenant_of({}));
  EXPECT_EQ("acme", tenant_of({{"gpu:tenant", "acme"}}));
}

TEST(Tenant, AFunctionWithABadOneIsRefused) {
  FunctionConfig config;
  config.tags = {{"gpu:tenant", "../other"}};
  const auto settings = gpu_settings(config);
  ASSERT_FALSE(settings);
  EXPECT_NE(std::string::npos, settings.error().message.find("tag gpu:tenant")) << settings.error().message;
}

}  // namespace
}  // namespace fairlead
