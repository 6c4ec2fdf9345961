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
  replies.put(kStart, "k", reply("first"));
  replies.put(kStart, "k", reply("second"));
  ASSERT_NE(replies.find(kStart + seconds(120), "k"), nullptr);
  EXPECT_EQ(replies.find(kStart + seconds(120), "k")->payload, "first");
}

TEST(RecentReplies, ForgetsAfterTwiceTheReadTimeout) {
  RecentReplies replies;
  replies.put(kStart, "k", reply("x"));
  EXPECT_EQ(replies.find(kStart + seconds(121), "k"), nullptr);
}

TEST(RecentReplies, StaysWithinItsBytesByDroppingTheOldest) {
  RecentReplies replies;
  const std::string large(RecentReplies::kMaxBytes / 2, 'x');
  replies.put(kStart, "a", reply(large));
  replies.put(kStart, "b", reply(large));
  EXPECT_EQ(replies.find(kStart, "a"), nullptr);
  EXPECT_NE(replies.find(kStart, "b"), nullptr);
}

TEST(RecentReplies, StaysWithinItsNumber) {
  RecentReplies replies;
  for (std::size_t i = 0; i <= RecentReplies::kMaxReplies; ++i) replies.put(kStart, std::to_string(i), reply(""));
  EXPECT_EQ(replies.find(kStart, "0"), nullptr);
  EXPECT_NE(replies.find(kStart, std::to_string(RecentReplies::kMaxReplies)), nullptr);
}

}  // namespace
}  // namespace fairlead
