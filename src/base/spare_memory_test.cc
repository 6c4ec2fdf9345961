#include "base/spare_memory.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr std::size_t kMib = 1 << 20;

TEST(SpareMemory, IsReturnedOnceAfterEachFlood) {
  SpareMemory memory;
  EXPECT_FALSE(memory.is_worth_returning(kMib));
  EXPECT_TRUE(memory.is_worth_returning(40 * kMib));
  EXPECT_FALSE(memory.is_worth_returning(40 * kMib)) << "what was returned still counts as free";
  EXPECT_FALSE(memory.is_worth_returning(41 * kMib));
  EXPECT_FALSE(memory.is_worth_returning(5 * kMib)) << "the next flood uses it";
  EXPECT_TRUE(memory.is_worth_returning(40 * kMib)) << "and is over";
}

TEST(SpareMemory, GrowsSlowlyAndIsReturnedAllTheSame) {
  SpareMemory memory;
  int returned = 0;
  for (std::size_t spare = 0; spare <= 64 * kMib; spare += kMib) returned += memory.is_worth_returning(spare) ? 1 : 0;
  EXPECT_EQ(returned, 32);
}

}  // namespace
}  // namespace fairlead
