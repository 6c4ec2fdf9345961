#include "base/lifetime.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <system_error>

namespace fairlead {
namespace {

TEST(LifetimeTest, AWatchEndsWithTheObject) {
  EXPECT_TRUE(Lifetime::Watch().ended()) << "of nothing";
  std::optional<Lifetime> life(std::in_place);
  const Lifetime::Watch watch = life->watch();
  const Lifetime::Watch copy = watch;
  EXPECT_FALSE(watch.ended());
  life.reset();
  EXPECT_TRUE(watch.ended());
  EXPECT_TRUE(copy.ended());
}

TEST(LifetimeTest, EndsEarlyWhereAsked) {
  Lifetime life;
  const Lifetime::Watch watch = life.watch();
  life.end();
  EXPECT_TRUE(watch.ended());
  EXPECT_TRUE(life.watch().ended());
}

TEST(LifetimeTest, AGuardedCallPassesItsArgumentsWhileTheObjectLives) {
  std::optional<Lifetime> life(std::in_place);
  int sum = 0;
  std::function<void(int, int)> call = life->guarded([&](int a, int b) { sum += a + b; });
  call(1, 2);
  EXPECT_EQ(sum, 3);
  life.reset();
  call(1, 2);
  EXPECT_EQ(sum, 3);
}

TEST(LifetimeTest, AHandlerIsCalledWithoutItsErrorCodeAndOnlyOnSuccess) {
  std::optional<Lifetime> life(std::in_place);
  int calls = 0;
  std::size_t bytes = 0;
  auto handler = life->on_success([&](std::size_t read) {
    ++calls;
    bytes = read;
  });
  handler(std::error_code(), 7u);
  EXPECT_EQ(bytes, 7u);
  handler(std::make_error_code(std::errc::operation_canceled), 8u);
  EXPECT_EQ(calls, 1);
  life.reset();
  handler(std::error_code(), 9u);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fairlead
