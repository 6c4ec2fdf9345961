#include "base/spare_memory.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr std::size_t kMib = 1 << 20;

TEST(SpareMemory, IsReturnedOnceAfterEachFlood) {
  SpareMemory memory;
  memory.returned(24 * kMib);
  EXPECT_FALSE(memory.is_worth_returning(kMib, 25 * kMib));
  EXPECT_FALSE(memory.is_worth_returning(kMib, 60 * kMib)) << "all of it is in use";
  EXPECT_TRUE(memory.is_worth_returning(40 * kMib, 60 * kMib));
  memory.returned(26 * kMib);
  EXPECT_FALSE(memory.is_worth_returning(40 * kMib, 26 * kMib)) << "what was returned still counts as free";
  EXPECT_FALSE(memory.is_worth_returning(40 * kMib, 27 * kMib));
  EXPECT_TRUE(memory.is_worth_returning(40 * kMib, 50 * kMib)) << "a flood came and went between two looks";
}

TEST(SpareMemory, WhatTheProcessGaveUpByItselfIsNotCountedOnFor) {
  SpareMemory memory;
  memory.returned(60 * kMib);
  EXPECT_FALSE(memory.is_worth_returning(8 * kMib, 24 * kMib));
  EXPECT_TRUE(memory.is_worth_returning(8 * kMib, 30 * kMib));
}

TEST(SpareMemory, GrowsSlowlyAndIsReturnedAllTheSame) {
  SpareMemory memory;
  memory.returned(0);
  int returned = 0;
  for (std::size_t grown = 0, base = 0; grown <= 64 * kMib; grown += kMib) {
    if (!memory.is_worth_returning(grown, grown - base)) continue;
    base = grown;
    memory.returned(0);
    ++returned;
  }
  EXPECT_EQ(returned, 32);
}

}  // namespace
}  // namespace fairlead
