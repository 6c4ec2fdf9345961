#include "node/peers/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fairlead {
namespace {

using ::testing::ElementsAre;

class TurnsTest : public ::testing::Test {
 protected:
  bool begin(Turns& turns, const std::string& tenant, const std::string& name) {
    return turns.begin(tenant, [this, name] { begun.push_back(name); });
  }
  std::vector<std::string> begun;
};

TEST_F(TurnsTest, NobodyHasMoreThanHalf) {
  Turns turns(4, 10);
  for (const char* name : {"a1", "a2", "a3", "a4"}) EXPECT_TRUE(begin(turns, "a", name));
  EXPECT_THAT(begun, ElementsAre("a1", "a2"));
  EXPECT_TRUE(begin(turns, "b", "b1"));
  EXPECT_EQ(begun.back(), "b1");
  turns.end("a");
  EXPECT_EQ(begun.back(), "a3");
  turns.end("b");
  EXPECT_EQ(begun.back(), "a3") << "b's place is not a's";
}

TEST_F(TurnsTest, WhatWaitsGoesByTenant) {
  Turns turns(2, 10);
  for (const char* name : {"a1", "a2", "a3"}) begin(turns, "a", name);
  for (const char* name : {"b1", "b2"}) begin(turns, "b", name);
  begin(turns, "c", "c1");
  EXPECT_THAT(begun, ElementsAre("a1", "b1"));
  turns.end("a");
  turns.end("a");
  turns.end("b");
  EXPECT_THAT(begun, ElementsAre("a1", "b1", "a2", "c1", "a3"));
}

TEST_F(TurnsTest, OfOneTenantSoManyWait) {
  Turns turns(2, 2);
  EXPECT_TRUE(begin(turns, "a", "1") && begin(turns, "a", "2") && begin(turns, "a", "3"));
  EXPECT_FALSE(begin(turns, "a", "4"));
  EXPECT_TRUE(begin(turns, "b", "5"));
  for (const char* tenant : {"a", "a", "a", "b"}) turns.end(tenant);
  EXPECT_EQ(begun.size(), 4u);
  EXPECT_TRUE(begin(turns, "a", "6"));
  EXPECT_EQ(begun.back(), "6") << "there is room again";
}

}  // namespace
}  // namespace fairlead
