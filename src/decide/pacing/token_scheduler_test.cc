// The schedulers that ours is compared with.
#include "decide/pacing/token_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/pacing/pacing_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// A (50, 60 %), B (60, 40 %), C (30, 20 %), which ask while Z holds all: who is let in when Z has drained.
std::vector<std::uint64_t> let_in(TokenRule rule) {
  TokenScheduler tokens(rule, {});
  PlaceActions actions;
  const InstanceId z(9);
  EXPECT_TRUE(tokens.set_share(Instant(), z, {}, actions));
  const PacedShare shares[] = {{.width_percent = 50, .request_percent = 60},
                               {.width_percent = 60, .request_percent = 40},
                               {.width_percent = 30, .request_percent = 20}};
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(tokens.set_share(Instant(), InstanceId(i + 1), shares[i], actions));
  tokens.asks(Instant(1ms), z, std::nullopt, actions);
  for (std::uint64_t i = 3; i > 0; --i) tokens.asks(Instant(1ms), InstanceId(i), std::nullopt, actions);
  tokens.tick(Instant(3ms), actions);
  actions.clear();
  tokens.drained(Instant(3ms), z, actions);
  std::vector<std::uint64_t> opened;
  for (const PlaceAction& action : actions) {
    EXPECT_EQ(action.until, Instant(5ms));
    opened.push_back(action.instance.value());
  }
  return opened;
}

TEST(TokenScheduler, TheHeadThatDoesNotFitStopsTheGrant) {
  EXPECT_THAT(let_in(TokenRule::kHeadFirst), testing::ElementsAre(1));
}
TEST(TokenScheduler, BackfillGoesPastIt) {
  EXPECT_THAT(let_in(TokenRule::kBackfill), testing::ElementsAre(1, 3));
}
TEST(TokenScheduler, OneAtATimeIsOne) {
  EXPECT_THAT(let_in(TokenRule::kOneAtATime), testing::ElementsAre(1));
}

TEST(TokenScheduler, AWindowsLimitHoldsUntilTheNextWindow) {
  TokenScheduler tokens(TokenRule::kHeadFirst, {});
  BusyDevice device(tokens, {{.width_percent = 50, .request_percent = 10, .limit_percent = 20}},
                    [](std::size_t) { return 0us; });
  device.run_until(Instant(1900ms));
  EXPECT_NEAR(to_ms(device.busy[InstanceId(1)].total), 200, 2);
  device.run_until(Instant(2900ms));
  EXPECT_NEAR(to_ms(device.busy[InstanceId(1)].total), 400, 2);
}

TEST(TokenScheduler, WithTokensThatEndOnTimeEverybodyIsServed) {
  TokenScheduler tokens(TokenRule::kBackfill, {});
  BusyDevice device(tokens,
                    {{.width_percent = 50, .request_percent = 60}, {.width_percent = 50, .request_percent = 60}},
                    [](std::size_t) { return 0us; });
  device.run_until(Instant(3s));
  EXPECT_GE(device.busy[InstanceId(1)].total, 1200ms);
  EXPECT_GE(device.busy[InstanceId(2)].total, 1200ms);
}

TEST(PlaceScheduler, TheFourAreKnownByName) {
  for (const std::string_view name : place_scheduler_names()) EXPECT_TRUE(make_place_scheduler(name, {}));
  EXPECT_EQ(make_place_scheduler("tokens", {}).error().message,
            "scheduler is \"tokens\", it must be one of pacer, paper, backfill, one");
  EXPECT_EQ(make_place_scheduler("pacer", {.shortest_frame = 20ms}).error().message,
            "the shortest frame is 20000 us, it must be 10 to the longest, 10000");
  EXPECT_EQ(make_place_scheduler("pacer", {.window = 50ms}).error().message,
            "the window is 50000 us, it must be at least 10 of the longest frames, 100000");
}

}  // namespace
}  // namespace fairlead
