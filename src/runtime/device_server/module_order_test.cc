#include "runtime/device_server/module_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace fairlead {
namespace {

using Keys = std::vector<std::string>;

void use_and_leave(ModuleOrder& order, const std::string& key, Bytes bytes = Bytes(1)) {
  if (order.has(key)) {
    order.use(key);
  } else {
    order.add(key, bytes);
  }
  order.leave(key);
}

TEST(ModuleOrder, TheOneThatWasLeftLongestAgoGoesFirst) {
  ModuleOrder order({.count = 2, .bytes = Bytes(1000)});
  for (const char* key : {"a", "b", "c", "a", "d"}) use_and_leave(order, key);
  EXPECT_EQ(order.take_surplus(1), (Keys{"b", "c"}));
  EXPECT_EQ(order.take_surplus(1), Keys{});
  EXPECT_EQ(order.size(), 2u);
}

TEST(ModuleOrder, WhatIsUsedStaysHoweverMuchItIs) {
  ModuleOrder order({.count = 1, .bytes = Bytes(10)});
  for (const char* key : {"a", "b", "c"}) order.add(key, Bytes(100));
  EXPECT_EQ(order.take_surplus(1), Keys{});
  order.leave("b");
  EXPECT_EQ(order.take_surplus(1), Keys{"b"});  // larger than what may stay at all
}

TEST(ModuleOrder, WhileTheDeviceIsBusyTwiceAsManyMayStayAndThenAllOfThemGo) {
  ModuleOrder order({.count = 2, .bytes = Bytes(1000)});
  for (const char* key : {"a", "b", "c", "d"}) use_and_leave(order, key);
  EXPECT_EQ(order.take_surplus(2), Keys{});
  use_and_leave(order, "e");
  EXPECT_EQ(order.take_surplus(2), (Keys{"a", "b", "c"}));
}

// Beside a list that is searched: whatever is done, what goes is what such a list says, and what stays fits.
RC_GTEST_PROP(ModuleOrder, DoesWhatAListDoes, ()) {
  struct Entry {
    std::string key;
    std::int64_t bytes;
    int users;
  };
  const ModuleLimits limits{.count = *rc::gen::inRange<std::size_t>(0, 4),
                            .bytes = Bytes(*rc::gen::inRange<std::int64_t>(0, 30))};
  ModuleOrder order(limits);
  std::vector<Entry> list;  // the last that was left is the last
  for (int step = 0; step < 60; ++step) {
    const std::string key(1, static_cast<char>('a' + *rc::gen::inRange(0, 8)));
    const auto found = std::find_if(list.begin(), list.end(), [&](const Entry& entry) { return entry.key == key; });
    const int what = *rc::gen::inRange(0, 3);
    if (what == 0 && found == list.end()) {
      list.push_back({key, *rc::gen::inRange<std::int64_t>(1, 12), 1});
      order.add(key, Bytes(list.back().bytes));
    } else if (what == 0) {
      ++found->users;
      order.use(key);
    } else if (what == 1 && found != list.end() && found->users > 0) {
      --found->users;
      order.leave(key);
      std::rotate(found, found + 1, list.end());
    } else if (what == 2) {
      Keys expected;
      const auto is_over = [&] {
        std::size_t count = 0;
        std::int64_t bytes = 0;
        for (const Entry& entry : list) {
          if (entry.users == 0) ++count, bytes += entry.bytes;
        }
        return count > limits.count || bytes > limits.bytes.count();
      };
      while (is_over()) {
        const auto first = std::find_if(list.begin(), list.end(), [](const Entry& entry) { return entry.users == 0; });
        expected.push_back(first->key);
        list.erase(first);
      }
      RC_ASSERT(order.take_surplus(1) == expected);
    }
    RC_ASSERT(order.size() == list.size());
  }
}

}  // namespace
}  // namespace fairlead
