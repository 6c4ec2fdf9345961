// Spans that come and go.
#include "softgpu/device/memory/page_cache.h"

#include <gtest/gtest.h>

namespace softgpu {
namespace {

constexpr std::uint64_t kBase = 16 * kPageBytes;

std::uint64_t at(std::uint64_t page) {
  return kBase + page * kPageBytes;
}

TEST(PageCache, NeighboursBecomeOneSpan) {
  PageCache cache;
  cache.give({at(0), 2, {{10, 2}}});
  cache.give({at(4), 1, {{30, 1}}});
  EXPECT_EQ(cache.take(3).count, 0U);
  cache.give({at(2), 2, {{20, 2}}});
  EXPECT_EQ(cache.page_count(), 5U);
  const Span all = cache.take(5);
  EXPECT_EQ(all.address, at(0));
  ASSERT_EQ(all.runs.size(), 3U);
  EXPECT_EQ(all.runs[1].first, 20U);
  EXPECT_EQ(cache.page_count(), 0U);
}

TEST(PageCache, WhatIsGivenTwiceEndsTheProcess) {
  PageCache cache;
  cache.give({at(4), 2, {{10, 2}}});
  EXPECT_DEATH(cache.give({at(4), 2, {{10, 2}}}), "does not hold");
  EXPECT_DEATH(cache.give({at(5), 1, {{11, 1}}}), "does not hold");
}

TEST(PageCache, TheSmallestSpanThatFitsIsCut) {
  PageCache cache;
  cache.give({at(0), 8, {{10, 3}, {50, 5}}});
  cache.give({at(20), 4, {{30, 4}}});
  EXPECT_EQ(cache.take(4).address, at(20));
  const Span cut = cache.take(4);
  EXPECT_EQ(cut.address, at(0));
  ASSERT_EQ(cut.runs.size(), 2U);
  EXPECT_EQ(cut.runs[1].first, 50U);
  EXPECT_EQ(cut.runs[1].count, 1U);
  const Span rest = cache.take(4);
  EXPECT_EQ(rest.address, at(4));
  ASSERT_EQ(rest.runs.size(), 1U);
  EXPECT_EQ(rest.runs[0].first, 51U);
}

TEST(PageCache, TrimmingLeavesExactlyWhatIsKept) {
  PageCache cache;
  cache.give({at(0), 3, {{10, 3}}});
  cache.give({at(10), 3, {{20, 3}}});
  std::uint64_t taken = 0;
  for (const Span& span : cache.trim(2)) taken += span.count;
  EXPECT_EQ(taken, 4U);
  EXPECT_EQ(cache.page_count(), 2U);
  EXPECT_EQ(cache.take(2).address, at(0));
  EXPECT_TRUE(cache.trim(0).empty());
}

}  // namespace
}  // namespace softgpu
