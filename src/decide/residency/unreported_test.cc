#include "decide/residency/unreported.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

void sample(Unreported& unreported, int times, Bytes used, Bytes reported) {
  for (int i = 0; i < times; ++i) unreported.sample(used, reported);
}

TEST(Unreported, IsBelievedAfterAWindow) {
  Unreported unreported;
  sample(unreported, Unreported::kWindow - 1, gib(5), gib(4));
  EXPECT_EQ(unreported.bytes(), Bytes(0));
  sample(unreported, 1, gib(6), gib(4));
  EXPECT_EQ(unreported.bytes(), gib(1));
}

TEST(Unreported, AMomentBetweenTwoReportsIsNone) {
  Unreported unreported;
  sample(unreported, Unreported::kWindow, gib(5), gib(4));
  sample(unreported, Unreported::kWindow - 1, gib(8), gib(4));
  EXPECT_EQ(unreported.bytes(), gib(1));
}

TEST(Unreported, WhatWentIsForgottenAtOnce) {
  Unreported unreported;
  sample(unreported, Unreported::kWindow, gib(8), gib(4));
  sample(unreported, 1, gib(3), gib(4));
  EXPECT_EQ(unreported.bytes(), Bytes(0)) << "reports may be ahead of the device";
}

}  // namespace
}  // namespace fairlead
