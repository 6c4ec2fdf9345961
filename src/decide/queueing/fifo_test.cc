#include "decide/queueing/fifo.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"

namespace fairlead {
namespace {

TEST(Fifo, IsFirstInFirstOut) {
  Fifo<int> fifo;
  for (int i = 0; i < 5; ++i) fifo.push_back(i);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fifo.pop_front(), i);
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, PutsBackInFront) {
  Fifo<int> fifo;
  fifo.push_back(2);
  fifo.push_front(1);
  EXPECT_EQ(fifo.front(), 1);
  EXPECT_EQ(fifo.size(), 2u);
}

TEST(Fifo, AgreesWithADequeUnderRandomCalls) {
  Rng rng(7);
  Fifo<std::uint64_t> fifo;
  std::deque<std::uint64_t> model;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t call = rng.below(10);
    if (call < 4) {
      fifo.push_back(i);
      model.push_back(i);
    } else if (call < 5) {
      fifo.push_front(i);
      model.push_front(i);
    } else if (call < 9) {
      if (model.empty()) continue;
      ASSERT_EQ(fifo.pop_front(), model.front());
      model.pop_front();
    } else {
      const std::uint64_t item = i - rng.below(20);
      const auto found = std::find(model.begin(), model.end(), item);
      ASSERT_EQ(fifo.remove_first([&](std::uint64_t x) { return x == item; }), found != model.end());
      if (found != model.end()) model.erase(found);
    }
    ASSERT_EQ(fifo.size(), model.size());
  }
}

}  // namespace
}  // namespace fairlead
