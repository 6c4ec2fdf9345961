#include "decide/queueing/tenant_entry.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

TEST(TenantEntry, AnOptionIsANameAWeightAndPerhapsALimit) {
  const auto plain = tenant_from("vision:2.5");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ("vision", plain->name);
  EXPECT_EQ(2.5, plain->share.weight);
  EXPECT_FALSE(plain->share.max_concurrency);
  EXPECT_EQ(3u, tenant_from("vision:1:3")->share.max_concurrency);
}

TEST(TenantEntry, AWrongOptionIsNamedWithItsBound) {
  EXPECT_THAT(tenant_from("a b:1").error().message, HasSubstr("'a b'; it must be 1 to 64 letters"));
  for (const char* bad : {"a", "a:", "a:0", "a:nan", "a:101", "a:1x"}) {
    EXPECT_THAT(tenant_from(bad).error().message, HasSubstr("a number between 0.01 and 100")) << bad;
  }
  for (const char* bad : {"a:1:", "a:1:0", "a:1:1025", "a:1:-1", "a:1:2:3"}) {
    EXPECT_THAT(tenant_from(bad).error().message, HasSubstr("a number between 1 and 1024")) << bad;
  }
}

}  // namespace
}  // namespace fairlead
