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

}  // namespace
}  // namespace fairlead
