#include "node/tenants.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(Tenants, WhoNamesNoneIsDefaultsAndEveryNameHasOneId) {
  Tenants tenants({{"default", {.weight = 3}}, {"vision", {.weight = 2}}});
  EXPECT_EQ(TenantId(), tenants.id_of("default"));
  EXPECT_EQ(3, tenants.all().at("default").share.weight);
  const TenantId vision = tenants.id_of("vision"), other = tenants.id_of("other");
  EXPECT_NE(vision, other);
  EXPECT_EQ(other, tenants.id_of("other"));
  EXPECT_EQ(1, tenants.all().at("other").share.weight);
}

TEST(Tenants, OtherSharesReplaceAllAndKeepTheIds) {
  Tenants tenants({{"vision", {.weight = 2}}, {"batch", {.weight = 0.5, .max_concurrency = 3}}});
  const TenantId vision = tenants.id_of("vision");
  tenants.set_shares({{"vision", {.weight = 4}}, {"new", {.weight = 7}}});
  EXPECT_EQ(4, tenants.all().at("vision").share.weight);
  EXPECT_EQ(vision, tenants.id_of("vision"));
  EXPECT_EQ(1, tenants.all().at("batch").share.weight) << "as one that was never named";
  EXPECT_EQ(std::nullopt, tenants.all().at("batch").share.max_concurrency);
  EXPECT_EQ(7, tenants.all().at("new").share.weight);
}

}  // namespace
}  // namespace fairlead
