#include "runtime/model_server/tenant_turns.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/model_server/frames.h"

namespace fairlead::model_server {
namespace {

TEST(TenantTurns, EachTenantInTurnAndNobodyWaitsForAllOfAnother) {
  TenantTurns<int> turns;
  for (int i = 0; i < 60; ++i) turns.add(1, 100 + i, false);
  turns.add(2, 200, false);
  EXPECT_EQ(*turns.next(), 100);
  EXPECT_EQ(*turns.next(), 200) << "behind one, not behind 60";
  EXPECT_EQ(*turns.next(), 100) << "a piece more of the same";
  turns.remove([](int work) { return work == 100 || work == 200; });
  EXPECT_EQ(*turns.next(), 101);
  EXPECT_EQ(*turns.next(), 101) << "nobody else has work";
}

TEST(TenantTurns, MemoryIsMadeBeforeAnythingOfTheTenantIsHashed) {
  TenantTurns<int> turns;
  turns.add(1, 7, false);
  turns.add(1, 8, true);
  EXPECT_EQ(*turns.next(), 8);
  turns.remove([](int work) { return work == 8; });
  EXPECT_EQ(*turns.next(), 7);
  turns.remove([](int) { return true; });
  EXPECT_TRUE(turns.empty());
  EXPECT_EQ(turns.next(), nullptr);
}

TEST(ModelServerFrames, SayTheirVersionWhateverElseTheyHave) {
  const Order order{.kind = OrderKind::kHash, .version = 7};
  EXPECT_EQ(version_of({reinterpret_cast<const char*>(&order), sizeof order}), 7u);
  EXPECT_EQ(version_of(std::string(8, '\1')), 0x01010101u);
  EXPECT_EQ(version_of("short"), std::nullopt);
}

}  // namespace
}  // namespace fairlead::model_server
