#include "node/peers/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fairlead {
namespace {

using ::testing::ElementsAre;

TEST(Turns, AreByTenant) {
  Turns turns(2, 10);
  std::vector<std::string> begun;
  const auto begin = [&](const std::string& tenant, const std::string& name) {
    EXPECT_TRUE(turns.begin(tenant, [&begun, name] { begun.push_back(name); }));
  };
  for (const char* name : {"a1", "a2", "a3", "a4", "a5"}) begin("a", name);
  begin("b", "b1");
  begin("c", "c1");
  EXPECT_THAT(begun, ElementsAre("a1", "a2"));
  for (int i = 0; i < 5; ++i) turns.end();
  EXPECT_THAT(begun, ElementsAre("a1", "a2", "a3", "b1", "c1", "a4", "a5"));
  turns.end();
  turns.end();
  begin("a", "a6");
  EXPECT_EQ(begun.back(), "a6") << "there is room again";
}

TEST(Turns, OfOneTenantSoManyWait) {
  Turns turns(1, 2);
  std::size_t begun = 0;
  const auto begin = [&](const std::string& tenant) { return turns.begin(tenant, [&] { ++begun; }); };
  EXPECT_TRUE(begin("a") && begin("a") && begin("a"));
  EXPECT_FALSE(begin("a"));
  EXPECT_TRUE(begin("b"));
  for (int i = 0; i < 4; ++i) turns.end();
  EXPECT_EQ(begun, 4u);
}

}  // namespace
}  // namespace fairlead
