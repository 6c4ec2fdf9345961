#include "decide/scaling/neighbour_watch.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr Instant at(Duration passed) {
  return Instant(1h) + passed;
}

TEST(NeighbourWatch, TheLongestSilenceIsKeptThoughItAnswersAgain) {
  NeighbourWatch watch;
  watch.begin(at(0s));
  watch.answered(at(3s));
  watch.answered(at(4s));
  EXPECT_EQ(watch.silence(at(4s)), 3s);
  EXPECT_EQ(watch.silence(at(9s)), 5s) << "that which goes on is one";
  EXPECT_EQ(watch.last(), at(4s));
}

TEST(NeighbourWatch, WhatWasBeforeTheBeginDoesNotCount) {
  NeighbourWatch watch;
  watch.answered(at(0s));
  watch.answered(at(10s));
  watch.begin(at(11s));
  EXPECT_EQ(watch.silence(at(12s)), 1s);
  EXPECT_EQ(watch.answers(), 2u);
}

}  // namespace
}  // namespace fairlead
