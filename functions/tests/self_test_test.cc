// The functions' self-tests are only worth something if they can fail.
#include <gtest/gtest.h>

#include <cmath>

#include "common/workload.h"

namespace fairlead::sample {
namespace {

TEST(SelfTest, PassesWithinTheTolerance) {
  SelfTest test;
  test.compare("close", {1.0f, 100.0f}, {1.0f, 100.05f}, 1e-3);
  test.compare_exact("equal", {1, 2}, {1, 2});
  EXPECT_TRUE(test.passed());
}

TEST(SelfTest, FailsOutsideTheTolerance) {
  SelfTest test;
  test.compare("far", {1.0f, 100.0f}, {1.0f, 100.2f}, 1e-3);
  EXPECT_FALSE(test.passed());
}

TEST(SelfTest, FailsOnNotANumber) {
  SelfTest test;
  test.compare("nan first", {NAN, 1.0f}, {1.0f, 1.0f}, 1e-3);
  EXPECT_FALSE(test.passed());
}

TEST(SelfTest, FailsOnMissingValues) {
  SelfTest floats;
  floats.compare("short", {1.0f}, {1.0f, 1.0f}, 1e-3);
  EXPECT_FALSE(floats.passed());
  SelfTest integers;
  integers.compare_exact("short", {}, {0});
  EXPECT_FALSE(integers.passed());
}

TEST(SelfTest, FailsOnOneDifference) {
  SelfTest test;
  test.compare_exact("one", {1, 2, 3}, {1, 0, 3});
  EXPECT_FALSE(test.passed());
}

TEST(SelfTest, FailsWhenNothingWasChecked) {
  EXPECT_FALSE(SelfTest().passed());
}

}  // namespace
}  // namespace fairlead::sample
