#include "decide/queueing/indexed_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/rng.h"

namespace fairlead {
namespace {

std::vector<std::uint32_t> drain(IndexedHeap<int> heap) {
  std::vector<std::uint32_t> order;
  while (!heap.empty()) {
    order.push_back(heap.top());
    heap.erase(heap.top());
  }
  return order;
}

TEST(IndexedHeap, GivesRowsInKeyOrder) {
  IndexedHeap<int> heap;
  heap.set(0, 30);
  heap.set(1, 10);
  heap.set(2, 20);
  EXPECT_EQ(drain(heap), (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST(IndexedHeap, ChangedKeyMovesItsRowEitherWay) {
  IndexedHeap<int> heap;
  for (int i = 0; i < 8; ++i) heap.set(i, i * 10);
  heap.set(0, 35);
  heap.set(7, -1);
  EXPECT_EQ(drain(heap), (std::vector<std::uint32_t>{7, 1, 2, 3, 0, 4, 5, 6}));
}

TEST(IndexedHeap, ErasingAnAbsentRowHasNoEffect) {
  IndexedHeap<int> heap;
  heap.set(3, 1);
  heap.erase(2);
  heap.erase(99);
  EXPECT_EQ(heap.size(), 1u);
  EXPECT_FALSE(heap.contains(2));
  EXPECT_TRUE(heap.contains(3));
}

TEST(IndexedHeap, FindFirstSkipsRefusedAndKeepsThem) {
  IndexedHeap<int> heap;
  for (int i = 0; i < 5; ++i) heap.set(i, i);
  EXPECT_EQ(heap.find_first([](std::uint32_t row) { return row >= 3; }), 3u);
  EXPECT_EQ(heap.find_first([](std::uint32_t) { return false; }), std::nullopt);
  EXPECT_EQ(drain(heap), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

// Against a map that is searched for its least value.
TEST(IndexedHeap, AgreesWithASearchUnderRandomChanges) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    using Key = std::pair<std::uint64_t, std::uint32_t>;
    IndexedHeap<Key> heap;
    std::map<std::uint32_t, Key> model;
    for (int i = 0; i < 2000; ++i) {
      const auto row = static_cast<std::uint32_t>(rng.below(50));
      if (rng.below(3) == 0) {
        heap.erase(row);
        model.erase(row);
      } else {
        model[row] = {rng.below(100), row};
        heap.set(row, model[row]);
      }
      ASSERT_EQ(heap.size(), model.size());
      if (model.empty()) continue;
      const auto least = std::min_element(model.begin(), model.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
      ASSERT_EQ(heap.top(), least->first);
      ASSERT_EQ(heap.top_key(), least->second);
    }
  }
}

}  // namespace
}  // namespace fairlead
