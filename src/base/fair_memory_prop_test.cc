// What is forgotten when much is kept. Planted and caught: the oldest of all goes first; bytes are not looked at; what is removed
// stays counted.
#include "base/fair_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

namespace fairlead {
namespace {

// Items that are there, by owner.
class Model {
 public:
  explicit Model(FairMemory::Limits limits) : memory(limits) {}

  void add(const std::string& owner, std::size_t bytes) {
    memory.add(owner, ++last, bytes);
    held[owner][last] = bytes;
    while (const auto item = memory.to_forget()) forget(*item);
  }
  void forget(FairMemory::Item item) {
    memory.remove(item);
    for (auto& [owner, items] : held) {
      if (items.erase(item) == 1) lost.insert(owner);
    }
  }
  std::size_t bytes_of(const std::string& owner) {
    std::size_t sum = 0;
    for (const auto& [item, bytes] : held[owner]) sum += bytes;
    return sum;
  }

  FairMemory memory;
  FairMemory::Item last = 0;
  std::map<std::string, std::map<FairMemory::Item, std::size_t>> held;
  std::set<std::string> lost;  // who something was forgotten of
};

TEST(FairMemory, AFloodForgetsItsOwn) {
  Model model({.items = 1000, .bytes = 1 << 20});
  for (int i = 0; i < 3; ++i) model.add("victim", 10);
  for (int i = 0; i < 1500; ++i) model.add("flooder", 10);
  EXPECT_EQ(model.held["victim"].size(), 3U);
  EXPECT_EQ(model.held["flooder"].size(), 997U);
  EXPECT_EQ(model.held["flooder"].begin()->first, 3U + 503 + 1) << "the oldest ones went";
}

TEST(FairMemory, FewLargeItemsAreAFloodToo) {
  Model model({.items = 1000, .bytes = 1000});
  for (int i = 0; i < 5; ++i) model.add("victim", 10);
  for (int i = 0; i < 10; ++i) model.add("flooder", 400);
  EXPECT_EQ(model.held["victim"].size(), 5U);
  EXPECT_EQ(model.held["flooder"].size(), 2U);
}

TEST(FairMemory, WhatIsTooLargeGoesAloneAndAtOnce) {
  Model model({.items = 10, .bytes = 100});
  model.add("a", 60);
  model.add("b", 101);
  EXPECT_EQ(model.held["a"].size(), 1U);
  EXPECT_EQ(model.held["b"].size(), 0U);
}

RC_GTEST_PROP(FairMemory, WhoKeepsToHisPartLosesNothingAndTheLimitsHold, ()) {
  const auto owners = *rc::gen::inRange<std::size_t>(1, 5);
  const FairMemory::Limits limits{.items = *rc::gen::inRange<std::size_t>(owners, 40),
                                  .bytes = *rc::gen::inRange<std::size_t>(100, 1000)};
  Model model(limits);
  for (int step = 0; step < 200; ++step) {
    const auto who = *rc::gen::inRange<std::size_t>(0, owners);
    const std::string name = std::to_string(who);
    const auto bytes = *rc::gen::inRange<std::size_t>(0, 100);
    // "0" keeps to a part of 1 / owners of both limits; the others do as they like.
    const bool is_too_much =
        (model.held[name].size() + 1) * owners > limits.items || (model.bytes_of(name) + bytes) * owners > limits.bytes;
    if (who == 0 && is_too_much) {
      if (!model.held[name].empty()) {
        const auto oldest = model.held[name].begin()->first;
        model.memory.remove(oldest);
        model.held[name].erase(oldest);
      }
      continue;
    }
    model.add(name, bytes);
    std::size_t items = 0, sum = 0;
    for (const auto& [owner, held] : model.held) {
      items += held.size();
      sum += model.bytes_of(owner);
    }
    RC_ASSERT(items == model.memory.items() && sum == model.memory.bytes());
    RC_ASSERT(items <= limits.items && sum <= limits.bytes);
    RC_ASSERT(!model.lost.contains("0"));
  }
}

}  // namespace
}  // namespace fairlead
