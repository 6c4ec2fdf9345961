#include "node/recent_replies.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::seconds;
constexpr Instant kStart{seconds(100)};

Outcome reply(std::string payload) {
  Outcome r;
  r.payload = std::move(payload);
  return r;
}

TEST(RecentReplies, ARepeatFindsTheFirstReply) {
  RecentReplies replies;
  replies.put(kStart, "tenant", "k", reply("first"));
  replies.put(kStart, "tenant", "k", reply("second"));
  ASSERT_NE(replies.find(kStart + seconds(120), "k"), nullptr);
  EXPECT_EQ(replies.find(kStart + seconds(120), "k")->payload, "first");
}

TEST(RecentReplies, ForgetsAfterTwiceTheReadTimeout) {
  RecentReplies replies;
  replies.put(kStart, "tenant", "k", reply("x"));
  EXPECT_EQ(replies.find(kStart + seconds(121), "k"), nullptr);
}

TEST(RecentReplies, StaysWithinItsBytesByDroppingTheOldest) {
  RecentReplies replies;
  const std::string large(RecentReplies::kMaxBytes / 2, 'x');
  replies.put(kStart, "tenant", "a", reply(large));
  replies.put(kStart, "tenant", "b", reply(large));
  EXPECT_EQ(replies.find(kStart, "a"), nullptr);
  EXPECT_NE(replies.find(kStart, "b"), nullptr);
}

TEST(RecentReplies, WhatIsKeptCountsInTheMemoryOfAll) {
  const auto memory = std::make_shared<ByteBudget>(1'000'000);
  RecentReplies replies;
  replies.count_in(memory);
  const std::string large(400'000, 'x');
  replies.put(kStart, "tenant", "a", reply(large));
  EXPECT_GE(memory->held_by("tenant"), 400'000U);
  replies.put(kStart, "tenant", "b", reply(large));
  replies.put(kStart, "tenant", "c", reply(large));
  EXPECT_NE(replies.find(kStart, "c"), nullptr) << "its repeat must not run again, though the memory is full";
  EXPECT_TRUE(memory->is_full());
  EXPECT_FALSE(memory->try_add("other", 1000)) << "a body";
  EXPECT_EQ(replies.find(kStart + seconds(121), "a"), nullptr);
  EXPECT_EQ(memory->used(), 0U);
}

TEST(RecentReplies, StaysWithinItsNumber) {
  RecentReplies replies;
  for (std::size_t i = 0; i <= RecentReplies::kMaxReplies; ++i)
    replies.put(kStart, "tenant", std::to_string(i), reply(""));
  EXPECT_EQ(replies.find(kStart, "0"), nullptr);
  EXPECT_NE(replies.find(kStart, std::to_string(RecentReplies::kMaxReplies)), nullptr);
}

TEST(RecentReplies, AnotherTenantsFloodPushesNoReplyOut) {
  RecentReplies replies;
  replies.put(kStart, "victim", "v", reply("kept"));
  const std::string large(RecentReplies::kMaxBytes / 3, 'x');
  for (int i = 0; i < 10; ++i) replies.put(kStart, "flooder", "l" + std::to_string(i), reply(large));
  for (std::size_t i = 0; i <= RecentReplies::kMaxReplies; ++i) {
    replies.put(kStart, "flooder", std::to_string(i), reply(""));
  }
  ASSERT_NE(replies.find(kStart, "v"), nullptr);
  EXPECT_EQ(replies.find(kStart, "v")->payload, "kept");
}

}  // namespace
}  // namespace fairlead
