#include "decide/pacing/live_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Kind = PageOrder::Kind;
const InstanceId kA(1), kB(2);
constexpr ProcessPage kPageA = 10, kPageB = 20, kSecondOfA = 11;

// Two instances as wide as the device, with a process each, and a clock.
class LivePlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    share(kA, 50);
    share(kB, 30);
    places_.add_page(kA, kPageA);
    places_.add_page(kB, kPageB);
  }
  void share(InstanceId id, int request, int limit = 100) {
    ASSERT_TRUE(places_.set_share(now_, id, {.request_percent = request, .limit_percent = limit}));
  }
  Instant at(Duration time) { return Instant() + 10s + time; }
  PageOrders see(Duration time, ProcessPage page, const PageReading& reading) {
    now_ = at(time);
    places_.observe(now_, page, reading);
    places_.decide(now_);
    return places_.take_orders();
  }
  PageOrders tick(Duration time) {
    now_ = at(time);
    places_.decide(now_);
    return places_.take_orders();
  }
  DeliveredService of(InstanceId id) {
    for (const DeliveredService& one : places_.delivered(now_)) {
      if (one.instance == id) return one;
    }
    ADD_FAILURE() << "instance " << id.value() << " is not known";
    return {};
  }

  LivePlaces places_{PlaceOptions()};
  Instant now_ = at(0s);
};

TEST_F(LivePlacesTest, WhoAsksOnAnIdleDeviceIsLetInAtOnce) {
  EXPECT_THAT(see(0ms, kPageA, {.asks = true}), ElementsAre(PageOrder{Kind::kOpen, kPageA, 1, at(2ms)}));
  EXPECT_EQ(of(kA).state, PlaceState::kOpen);
  EXPECT_EQ(of(kA).waits.count(), 1u);
}

TEST_F(LivePlacesTest, APlaceThatIsHeldOnIsAStoreAndNoWake) {
  see(0ms, kPageA, {.asks = true});
  EXPECT_THAT(see(1ms, kPageA, {.is_open = true}), IsEmpty());
  EXPECT_THAT(tick(2ms), ElementsAre(PageOrder{Kind::kExtend, kPageA, 1, at(4ms)}));
}

TEST_F(LivePlacesTest, WhoIsNextWaitsUntilTheOtherHasDrained) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true});
  EXPECT_THAT(see(1ms, kPageB, {.asks = true}), IsEmpty());
  PageOrders orders = tick(2ms);
  for (int frame = 2; orders.empty() || orders[0].kind != Kind::kClose; ++frame) {
    ASSERT_LT(frame, 10) << "A was promised half of the time and keeps all of it";
    orders = tick(2ms * frame);
  }
  EXPECT_EQ(orders[0].page, kPageA);
  const Duration end = now_ - at(0s);
  EXPECT_THAT(see(end + 100us, kPageA, {}), IsEmpty()) << "it has not drained";
  const PageOrders let_in = see(end + 300us, kPageA, {.drained = 1, .gpu_time = 2ms});
  ASSERT_EQ(let_in.size(), 1u);
  EXPECT_EQ(let_in[0].page, kPageB);
  EXPECT_EQ(let_in[0].kind, Kind::kOpen);
}

TEST_F(LivePlacesTest, APlaceThatIsGivenBackIsAnothersAtOnce) {
  see(0ms, kPageA, {.asks = true});
  see(100us, kPageB, {.asks = true});
  EXPECT_THAT(see(500us, kPageA, {.drained = 1, .gpu_time = 300us}),
              ElementsAre(PageOrder{Kind::kOpen, kPageB, 1, at(2ms)}));
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
  EXPECT_EQ(of(kA).total, 300us) << "what it told, not what it held";
}

TEST_F(LivePlacesTest, AnOldNumberHasNotDrained) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.drained = 1});
  see(2ms, kPageA, {.asks = true, .drained = 1});  // grant 2
  see(3ms, kPageA, {.drained = 1, .is_open = true});
  see(4ms, kPageB, {.asks = true});
  tick(20ms);
  EXPECT_EQ(of(kA).state, PlaceState::kDraining);
  see(21ms, kPageA, {.drained = 1});
  EXPECT_EQ(of(kA).state, PlaceState::kDraining);
  see(22ms, kPageA, {.drained = 2});
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
}

TEST_F(LivePlacesTest, ASecondProcessIsLetInForTheRestOfThePlace) {
  places_.add_page(kA, kSecondOfA);
  see(0ms, kPageA, {.asks = true});
  EXPECT_THAT(see(1ms, kSecondOfA, {.asks = true}), testing::Contains(PageOrder{Kind::kOpen, kSecondOfA, 1, at(2ms)}));
  see(1500us, kPageA, {.drained = 1, .gpu_time = 1ms});
  EXPECT_EQ(of(kA).state, PlaceState::kOpen) << "the other has not drained";
  see(1600us, kSecondOfA, {.drained = 1, .gpu_time = 400us});
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
  EXPECT_EQ(of(kA).total, 1400us);
}

TEST_F(LivePlacesTest, WhoseProcessesAreGoneHoldsNothing) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageB, {.asks = true});
  now_ = at(1500us);
  places_.remove_page(now_, kPageA);
  EXPECT_THAT(places_.take_orders(), ElementsAre(PageOrder{Kind::kOpen, kPageB, 1, at(2ms)}));
}

TEST_F(LivePlacesTest, WhoAskedAndIsGoneIsNotLetIn) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageB, {.asks = true});
  places_.remove_page(at(1100us), kPageB);
  EXPECT_EQ(of(kB).state, PlaceState::kIdle);
}

TEST_F(LivePlacesTest, AProcessThatLostItsConnectionHoldsNothing) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true, .has_left = true});
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
  EXPECT_EQ(of(kA).own_gates, 0u);
}

TEST_F(LivePlacesTest, WhoNeverDrainsLosesItsPlaceAndIsChargedAllOfIt) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true});
  see(1ms, kPageB, {.asks = true});
  for (Duration time = 2ms; of(kA).state == PlaceState::kOpen; time += 2ms) tick(time);
  PageOrders orders;
  for (int i = 0; i < 300 && orders.empty(); ++i) orders = tick(now_ - at(0s) + 1ms);
  EXPECT_EQ(of(kA).state, PlaceState::kRevoked);
  EXPECT_EQ(of(kA).revoked, 1u);
  EXPECT_EQ(orders.front().page, kPageB);
  EXPECT_GE(of(kA).total, 200ms);
  EXPECT_TRUE(places_.spans().back().is_revoked);
  // It comes back.
  see(now_ - at(0s) + 1ms, kPageA, {.asks = true, .drained = 1});
  EXPECT_NE(of(kA).state, PlaceState::kRevoked);
}

// A capture that began while work was in flight: the shim cannot see that the work has ended.
TEST_F(LivePlacesTest, WhoNeverSaysThatItHasDrainedIsLetInAgainAllTheSame) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true});
  see(1ms, kPageB, {.asks = true});
  for (Duration time = 2ms; of(kA).state != PlaceState::kRevoked; time += 2ms) {
    ASSERT_LT(time, 1s);
    tick(time);
  }
  const Duration revoked = now_ - at(0s);
  see(revoked + 1ms, kPageB, {.drained = 1});
  EXPECT_THAT(see(revoked + 2ms, kPageA, {.asks = true}), IsEmpty());
  EXPECT_EQ(of(kA).state, PlaceState::kRevokedAsks);
  EXPECT_THAT(see(revoked + 999ms, kPageA, {.asks = true}), IsEmpty());
  EXPECT_THAT(see(revoked + 1s, kPageA, {.asks = true, .gpu_time = 1s}),
              ElementsAre(PageOrder{Kind::kOpen, kPageA, 2, at(revoked + 1002ms)}));
  // Its capture is over, and the new number drains for all that went before.
  const Duration before = of(kA).total;
  see(revoked + 1001ms, kPageA, {.drained = 2, .gpu_time = 1s});
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
  EXPECT_LT(of(kA).total - before, 1ms) << "the second was charged already";
}

TEST_F(LivePlacesTest, WhoDoesNotAskAnyMoreAfterItWasRevokedGetsNothing) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true});
  see(1ms, kPageB, {.asks = true});
  for (Duration time = 2ms; of(kA).state != PlaceState::kRevoked; time += 2ms) {
    ASSERT_LT(time, 1s);
    tick(time);
  }
  const Duration revoked = now_ - at(0s);
  for (Duration time = revoked; time <= revoked + 2s; time += 2ms) tick(time);
  EXPECT_EQ(of(kA).state, PlaceState::kIdle);
  EXPECT_EQ(of(kA).revoked, 1u);
}

TEST_F(LivePlacesTest, WhoOpensItsGateItselfIsClosedAgainAndInTheEndPromisedNothing) {
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(see(i * 1ms, kPageA, {.is_open = true}), ElementsAre(PageOrder{Kind::kClose, kPageA, 0, at(i * 1ms)}));
    EXPECT_EQ(of(kA).is_disbelieved, i == 3);
  }
  EXPECT_EQ(of(kA).share.request_percent, 0);
  EXPECT_EQ(places_.take_findings().size(), 1u);
  share(kA, 80);
  EXPECT_EQ(of(kA).share.request_percent, 0) << "nor later";
}

TEST_F(LivePlacesTest, WhoTellsLessThanTheDeviceIsNamedAndThenDisbelieved) {
  for (int second = 0; second <= 6; ++second) {
    see(second * 1s, kPageA, {.gpu_time = second * 10ms});
    places_.device_says(now_, kA, second * 400ms);
    places_.device_says(now_, kB, second * 1ms);
  }
  EXPECT_TRUE(of(kA).is_disbelieved);
  EXPECT_FALSE(of(kB).is_disbelieved);
  const auto findings = places_.take_findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].text, "used 1200 ms of the device, as that says, and tells of 30 ms");
  EXPECT_FALSE(findings[0].is_over);
  EXPECT_EQ(findings[1].text, "used 2400 ms of the device, as that says, and tells of 60 ms; it is stopped");
  EXPECT_TRUE(findings[1].is_over);
}

TEST_F(LivePlacesTest, WhoComputesWithoutTheShimIsStoppedAndTheNextOfItsKindSooner) {
  const PacedShare share{.flow = FlowId(5), .request_percent = 10};
  const auto seconds_until_it_is_over = [&](InstanceId id, int begin) {
    EXPECT_TRUE(places_.set_share(now_, id, share));
    for (int second = 0; second < 20; ++second) {
      tick((begin + second) * 1s);
      places_.device_says(now_, id, second * 900ms);
      for (const auto& finding : places_.take_findings()) {
        if (finding.is_over) return second;
      }
    }
    return -1;
  };
  EXPECT_EQ(seconds_until_it_is_over(InstanceId(3), 0), 6);
  places_.remove_instance(now_, InstanceId(3));
  EXPECT_EQ(seconds_until_it_is_over(InstanceId(4), 10), 2);
}

// It writes 0 where its page says that it needs places, and claims what it uses.
TEST_F(LivePlacesTest, WhoHasNoPlacesAndTellsOfAllThatItUsesIsStoppedToo) {
  bool is_over = false;
  for (int second = 0; second <= 6; ++second) {
    see(second * 1s, kPageA, {.gpu_time = second * 400ms});
    places_.device_says(now_, kA, second * 400ms);
    for (const auto& finding : places_.take_findings()) is_over |= finding.is_over;
  }
  EXPECT_TRUE(is_over);
}

// A kernel of eight seconds was let in; what it takes is told when it has ended. Alone it holds its place, beside others it is revoked.
class LongKernel : public LivePlacesTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(AloneAndBesideAnother, LongKernel, testing::Bool());

TEST_P(LongKernel, IsChargedAndNotStopped) {
  see(0ms, kPageA, {.asks = true});
  bool is_open = true;
  const auto orders_at = [&](Duration time, const PageReading& reading) {
    for (const PageOrder& order : see(time, kPageA, reading)) {
      if (order.page == kPageA && order.kind == Kind::kClose) is_open = false;
    }
  };
  for (Duration time = 10ms; time < 8s; time += 10ms) {
    if (GetParam()) places_.observe(at(time), kPageB, {.asks = true});
    orders_at(time, {.is_open = is_open});
    if (time % 200ms == 0ms) places_.device_says(now_, kA, time);
  }
  EXPECT_EQ(is_open, !GetParam());
  orders_at(8s, {.drained = 1, .gpu_time = 8s});
  for (Duration time = 8s; time < 20s; time += 200ms) {
    orders_at(time, {.drained = 1, .gpu_time = 8s});
    places_.device_says(now_, kA, 8s);
  }
  EXPECT_THAT(places_.take_findings(), IsEmpty());
  EXPECT_EQ(of(kA).revoked, GetParam() ? 1u : 0u);
}

TEST_F(LivePlacesTest, WhoComputesInItsPlacesIsNeverStopped) {
  Duration used{0};
  see(0ms, kPageA, {.asks = true});
  for (Duration time = 1ms; time < 30s; time += 1ms, used += 990us) {
    see(time, kPageA, {.is_open = true, .gpu_time = used});
    if (time % 200ms == 0ms) places_.device_says(now_, kA, used);
  }
  EXPECT_THAT(places_.take_findings(), IsEmpty());
}

TEST_F(LivePlacesTest, GarbageInAPageIsBounded) {
  see(0ms, kPageA, {.asks = true});
  see(1ms, kPageA, {.is_open = true, .gpu_time = Duration::max()});
  see(2ms, kPageA, {.drained = 0xffffffff, .gpu_time = Duration(0)});
  EXPECT_EQ(of(kA).state, PlaceState::kOpen) << "that is no number of ours";
  see(3ms, kPageA, {.drained = 1, .gpu_time = Duration::max()});
  EXPECT_EQ(of(kA).total, 3ms);
}

TEST_F(LivePlacesTest, ClaimsDoNotAddUpToMoreThanThereIs) {
  see(0ms, kPageA, {.asks = true});
  for (int time = 0; time < 2'600'000; ++time) {  // an hour each: more nanoseconds than 63 bits hold
    places_.observe(now_, kPageA, {.is_open = true, .gpu_time = 1h});
    places_.observe(now_, kPageA, {.is_open = true});
  }
  see(1ms, kPageA, {.drained = 1});
  EXPECT_EQ(of(kA).total, 1ms);
}

TEST_F(LivePlacesTest, ServiceOfTheLastSecondIsThatOfTheLastSecond) {
  share(kB, 0);
  see(0ms, kPageA, {.asks = true});
  for (Duration time = 2ms; time <= 3s; time += 2ms) see(time, kPageA, {.is_open = true});
  EXPECT_NEAR(to_ms(of(kA).last_second), 1000, 30);
  EXPECT_NEAR(to_ms(of(kA).last_minute), 3000, 10);
  see(3002ms, kPageA, {.drained = 1, .gpu_time = 3002ms});
  for (Duration time = 3s; time <= 5s; time += 100ms) tick(time);
  EXPECT_EQ(of(kA).last_second, Duration(0));
  EXPECT_EQ(of(kA).total, 3002ms);
}

}  // namespace
}  // namespace fairlead
