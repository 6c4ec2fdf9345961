#include "runtime/spawner_restarts.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kBegin{std::chrono::hours(1)};

TEST(SpawnerRestarts, OneThatServedIsReplacedAtOnceHoweverOften) {
  SpawnerRestarts restarts;
  for (int i = 0; i < 20; ++i) {
    restarts.ready(kBegin + seconds(2 * i));
    EXPECT_EQ(restarts.ended(kBegin + seconds(2 * i + 1)), Duration(0));
  }
}

TEST(SpawnerRestarts, OneThatCannotLiveIsReplacedLessAndLessOften) {
  SpawnerRestarts restarts;
  restarts.ready(kBegin);
  for (const int wait_ms : {100, 200, 400, 800, 1600, 3200, 6400, 10'000, 10'000}) {
    EXPECT_EQ(restarts.ended(kBegin + milliseconds(999)), milliseconds(wait_ms));
  }
}

TEST(SpawnerRestarts, OneThatNeverBecameReadyHasNotServed) {
  SpawnerRestarts restarts;
  restarts.ready(kBegin);
  EXPECT_EQ(restarts.ended(kBegin + seconds(5)), Duration(0));
  EXPECT_EQ(restarts.ended(kBegin + seconds(50)), milliseconds(100));
  restarts.ready(kBegin + seconds(60));
  EXPECT_EQ(restarts.ended(kBegin + seconds(61)), Duration(0));
  EXPECT_EQ(restarts.ended(kBegin + seconds(62)), milliseconds(100)) << "a new series";
}

}  // namespace
}  // namespace fairlead
