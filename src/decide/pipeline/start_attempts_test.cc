// Planted and caught: a wait that does not grow, or grows without bound; one that is broken and tried all the same; one that nobody can ask for.
#include "decide/pipeline/start_attempts.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(StartAttempts, WaitDoublesToItsBound) {
  StartAttempts one({.failures = 100});
  Instant now(1000s);
  EXPECT_TRUE(one.may(now));
  for (const Duration wait : {1s, 2s, 4s, 8s, 10s, 10s}) {
    one.failed(now, "x");
    EXPECT_FALSE(one.may(now + wait - 1ns));
    now += wait;
    EXPECT_TRUE(one.may(now));
  }
  one.reset();
  one.failed(now, "x");
  EXPECT_TRUE(one.may(now + 1s)) << "it started meanwhile";
}

TEST(StartAttempts, BrokenItIsTriedOnlyForWhoAsksOnceEachWait) {
  StartAttempts one({.failures = 2, .asked = 60s});
  Instant now(1000s);
  one.failed(now, "first");
  EXPECT_FALSE(one.is_broken());
  one.failed(now += 1s, "second");
  EXPECT_TRUE(one.is_broken());
  EXPECT_EQ(one.why(), "second");
  EXPECT_FALSE(one.may(now + 10h));
  one.ask(now + 59s);
  EXPECT_FALSE(one.may(now + 10h)) << "too early";
  one.ask(now + 60s);
  EXPECT_TRUE(one.may(now + 60s));
  one.failed(now += 60s, "third");
  EXPECT_FALSE(one.may(now + 10h)) << "it was asked for once";
  one.reset();
  EXPECT_TRUE(one.may(now));
  EXPECT_FALSE(one.is_broken());
}

TEST(StartAttempts, WhatIsPutOffHasNotFailed) {
  StartAttempts one({.failures = 1});
  one.put_off(Instant(5s));
  EXPECT_FALSE(one.may(Instant(4s)));
  EXPECT_TRUE(one.may(Instant(5s)));
  EXPECT_EQ(one.failures(), 0u);
}

}  // namespace
}  // namespace fairlead
