#include "decide/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Batch = Batcher::Batch;

constexpr Instant at(Duration time) {
  return Instant(time);
}

TEST(Batcher, AloneARequestGoesAtOnce) {
  Batcher batcher(8);
  EXPECT_THAT(batcher.add(at(0ms), 1, 1, 5ms), ElementsAre(Batch{1}));
  EXPECT_EQ(batcher.next_tick(), std::nullopt);
  EXPECT_THAT(batcher.ended(at(10ms), at(0ms)), IsEmpty());
  EXPECT_TRUE(batcher.empty());
}

TEST(Batcher, WhatArrivesDuringACallGoesTogetherWhenItEnds) {
  Batcher batcher(8);
  batcher.add(at(0ms), 1, 1, 50ms);
  EXPECT_THAT(batcher.add(at(1ms), 2, 1, 50ms), IsEmpty());
  EXPECT_THAT(batcher.add(at(2ms), 3, 4, 38ms), IsEmpty());
  EXPECT_EQ(batcher.next_tick(), at(16ms)) << "a call and a half after the first";
  EXPECT_THAT(batcher.ended(at(10ms), at(0ms)), ElementsAre(Batch{2, 3}));
  EXPECT_EQ(batcher.under_way(), 1U);
}

TEST(Batcher, AFullCallWaitsForNothing) {
  Batcher batcher(4);
  batcher.add(at(0ms), 1, 1, 50ms);
  batcher.add(at(0ms), 2, 3, 50ms);
  EXPECT_THAT(batcher.add(at(1ms), 3, 1, 49ms), ElementsAre(Batch{2, 3}));
  EXPECT_EQ(batcher.under_way(), 2U);
  EXPECT_THAT(batcher.add(at(2ms), 4, 3, 48ms), IsEmpty());
  EXPECT_THAT(batcher.add(at(2ms), 5, 2, 48ms), ElementsAre(Batch{4})) << "which it does not fit beside, and before it";
  EXPECT_THAT(batcher.ended(at(3ms), at(0ms)), IsEmpty()) << "two are under way";
  EXPECT_THAT(batcher.ended(at(3ms), at(0ms)), IsEmpty());
  EXPECT_THAT(batcher.ended(at(3ms), at(0ms)), ElementsAre(Batch{5}));
}

TEST(Batcher, NobodyWaitsLongerThanItSaid) {
  Batcher batcher(8);
  batcher.add(at(0ms), 1, 1, 5ms);
  batcher.add(at(1ms), 2, 1, 8ms);
  batcher.add(at(1ms), 3, 1, 5ms);
  EXPECT_EQ(batcher.next_tick(), at(6ms));
  EXPECT_THAT(batcher.tick(at(5ms)), IsEmpty());
  EXPECT_THAT(batcher.tick(at(6ms)), ElementsAre(Batch{2, 3})) << "all that wait, in order of arrival";
  EXPECT_THAT(batcher.tick(at(20ms)), IsEmpty());
  EXPECT_THAT(batcher.add(at(20ms), 4, 1, 0ms), ElementsAre(Batch{4})) << "which cannot wait";
}

TEST(Batcher, WhoHasGoneIsNotCalled) {
  Batcher batcher(3);
  batcher.add(at(0ms), 1, 1, 50ms);
  batcher.add(at(0ms), 2, 2, 50ms);
  EXPECT_TRUE(batcher.gone(2));
  EXPECT_FALSE(batcher.gone(2));
  EXPECT_FALSE(batcher.gone(1)) << "it is under way";
  EXPECT_EQ(batcher.next_tick(), std::nullopt);
  EXPECT_THAT(batcher.add(at(1ms), 3, 2, 49ms), IsEmpty()) << "its rows are free";
  EXPECT_THAT(batcher.ended(at(2ms), at(0ms)), ElementsAre(Batch{3}));
}

TEST(Batcher, NobodyWaitsForMuchLongerThanCallsTake) {
  Batcher batcher(8);
  EXPECT_EQ(batcher.patience(), 15ms);
  for (int i = 0; i < 100; ++i) {
    batcher.add(at(0ms), 1, 1, 1h);
    batcher.ended(at(4ms), at(0ms));
  }
  EXPECT_LT(batcher.patience(), 7ms);
  batcher.add(at(10ms), 1, 1, 1h);
  batcher.add(at(10ms), 2, 1, 1h);
  EXPECT_LT(*batcher.next_tick(), at(17ms));
  EXPECT_THAT(batcher.tick(at(17ms)), ElementsAre(Batch{2})) << "beside a call that hangs";
  batcher.ended(at(1h), at(10ms));
  EXPECT_LT(batcher.patience(), 200ms) << "which counts as a second";
}

// Whatever happens: each request is called once, in order, no call is too large, and nothing waits beyond what
// it said, nor while nothing is under way.
TEST(BatcherProp, EachRequestIsCalledOnceAndInTime) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
    const std::size_t largest = static_cast<std::size_t>(pick(1, 9));
    Batcher batcher(largest);
    struct Asked {
      std::size_t rows;
      Instant latest;
    };
    std::map<Batcher::Request, Asked> waits;
    std::set<Batcher::Request> called;
    std::size_t under_way = 0;
    Instant now{};
    const auto call = [&](const Batcher::Batches& batches) {
      for (const Batch& batch : batches) {
        ASSERT_FALSE(batch.empty());
        std::size_t rows = 0;
        for (const Batcher::Request request : batch) {
          ASSERT_TRUE(waits.contains(request)) << "called twice, or gone";
          rows += waits[request].rows;
          waits.erase(request);
          called.insert(request);
        }
        ASSERT_TRUE(rows <= largest) << rows;
        ASSERT_TRUE(std::ranges::is_sorted(batch));
        ++under_way;
      }
    };
    for (Batcher::Request next = 1; next <= 300; ++next) {
      now += std::chrono::microseconds(pick(0, 2000));
      while (batcher.next_tick() && *batcher.next_tick() <= now) call(batcher.tick(now));
      const int what = pick(0, 9);
      if (what < 6) {
        const std::size_t rows = static_cast<std::size_t>(pick(1, static_cast<int>(largest)));
        const Duration most = std::chrono::microseconds(pick(-100, 5000));
        waits[next] = {rows, now + std::min(most, batcher.patience())};
        call(batcher.add(now, next, rows, most));
      } else if (what < 9 && under_way > 0) {
        --under_way;
        call(batcher.ended(now, now - std::chrono::microseconds(pick(0, 8000))));
      } else if (!waits.empty()) {
        const auto leaves = waits.begin()->first;
        ASSERT_TRUE(batcher.gone(leaves));
        waits.erase(leaves);
      }
      ASSERT_EQ(batcher.under_way(), under_way);
      ASSERT_EQ(batcher.waiting(), waits.size());
      ASSERT_TRUE(under_way > 0 || waits.empty()) << "nothing is under way, and something waits";
      std::size_t rows = 0;
      for (const auto& [request, asked] : waits) {
        rows += asked.rows;
        ASSERT_GT(asked.latest, now);
      }
      ASSERT_TRUE(rows < largest || waits.empty());
    }
  }
}

}  // namespace
}  // namespace fairlead
