#include "decide/residency/link_speed.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::milliseconds;

constexpr Bytes gib(std::int64_t n) {
  return Bytes(n << 30);
}

TEST(LinkSpeed, UnknownLinkMovesTenGibibytesInASecond) {
  EXPECT_EQ(LinkSpeed().time_of(gib(16)), milliseconds(1600));
  EXPECT_EQ(LinkSpeed().time_of(Bytes(0)), Duration(0));
}

TEST(LinkSpeed, FirstMoveIsTakenAsItIsAndTheNextOnesByATenth) {
  LinkSpeed link;
  link.learn(gib(4), milliseconds(400));
  EXPECT_EQ(link.time_of(gib(1)), milliseconds(100));
  link.learn(gib(1), milliseconds(300));
  EXPECT_EQ(link.time_of(gib(1)), milliseconds(120));
}

TEST(LinkSpeed, SmallMovesAndThoseThatTookNoTimeTeachNothing) {
  LinkSpeed link;
  link.learn(Bytes(4096), milliseconds(10));
  link.learn(gib(8), Duration(0));
  EXPECT_EQ(link.time_of(gib(1)), milliseconds(100));
}

// A terabyte over an hour: no overflow.
TEST(LinkSpeed, LargeMovesDoNotOverflow) {
  LinkSpeed link;
  link.learn(gib(1024), std::chrono::hours(1));
  EXPECT_EQ(link.time_of(gib(1024)), std::chrono::hours(1));
}

}  // namespace
}  // namespace fairlead
