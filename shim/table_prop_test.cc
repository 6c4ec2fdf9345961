#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "shim/table.h"

namespace fairlead::shim {
namespace {

// Few keys, so that chains of probes collide, wrap round and are broken by erasures.
RC_GTEST_PROP(Table, HoldsWhatAMapHolds, ()) {
  Table<int> table;
  std::map<std::uint64_t, int> model;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 600), rc::gen::inRange(0, 3)));
  for (const auto& [number, what] : steps) {
    const std::uint64_t key = static_cast<std::uint64_t>(number) << 21;
    if (what == 0) {
      table.erase(key);
      model.erase(key);
    } else {
      RC_ASSERT(table.insert(key, number * what));
      model[key] = number * what;
    }
  }
  RC_ASSERT(table.size() == model.size());
  for (std::uint64_t number = 1; number < 600; ++number) {
    const auto found = model.find(number << 21);
    const int* const value = table.find(number << 21);
    RC_ASSERT((value != nullptr) == (found != model.end()));
    if (value != nullptr) RC_ASSERT(*value == found->second);
  }
  table.clear();
}

TEST(Table, GrowsAndShrinksByTheThousands) {
  Table<std::uint64_t> table;
  for (std::uint64_t key = 1; key <= 20000; ++key) ASSERT_TRUE(table.insert(key << 9, key));
  for (std::uint64_t key = 1; key <= 20000; key += 2) table.erase(key << 9);
  EXPECT_EQ(table.size(), 10000U);
  for (std::uint64_t key = 1; key <= 20000; ++key) {
    const std::uint64_t* const value = table.find(key << 9);
    ASSERT_EQ(value != nullptr, key % 2 == 0) << key;
    if (value != nullptr) {
      EXPECT_EQ(*value, key);
    }
  }
  EXPECT_EQ(table.find_if([](std::uint64_t value) { return value == 4; }), 4U << 9);
  EXPECT_EQ(table.find_if([](std::uint64_t value) { return value == 3; }), 0U);
  table.clear();
}

}  // namespace
}  // namespace fairlead::shim
