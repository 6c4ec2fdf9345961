#include "base/spelling.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(Spelling, TheNearestIsAtMostTwoLettersAway) {
  EXPECT_EQ(nearest_word("slotts", {"listen", "slots"}), "slots");
  EXPECT_EQ(nearest_word("stauts", {"list", "status"}), "status");
  EXPECT_EQ(nearest_word("", {"list", "a"}), "a");
  EXPECT_EQ(nearest_word("frobnicate", {"list", "status"}), "");
  EXPECT_EQ(nearest_word("tak", {"task", "talk"}), "task") << "the first of those that are equally near";
}

TEST(Spelling, TheQuestionIsLeftOutWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("invok", {"invoke"}), "; did you mean 'invoke'?");
  EXPECT_EQ(did_you_mean("frobnicate", {"invoke"}), "");
}

}  // namespace
}  // namespace fairlead
