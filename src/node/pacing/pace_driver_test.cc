// The thread against pages that the test writes as shims would; processes under a shim are in tests/pacing.
#include "node/pacing/pace_driver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

const InstanceId kA(1), kB(2);

template <typename Condition>
bool until(Condition condition) {
  const Instant give_up = monotonic_now() + 2min;
  while (!condition()) {
    if (monotonic_now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

bool is_open(const PaceDriver::Page& page) {
  return (page->gate.load() & wire::kGateNode) == 0;
}
void ask(const PaceDriver::Page& page) {
  page->asking.store(1);
  Bells::ring(page->bell);
}
// A shim that has let its thread in.
void take_place(const PaceDriver::Page& page) {
  page->asking.store(0);
}
void give_back(const PaceDriver::Page& page) {
  page->gate.fetch_or(wire::kGateNode);
  page->drained.store(page->grant.load());
  Bells::ring(page->bell);
}

class PaceDriverTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    driver_ = std::make_unique<PaceDriver>(PaceDriverOptions{
        .waits_for_bells = GetParam(), .named = [this](InstanceId, const std::string&) { ++named_; }});
    ASSERT_TRUE(driver_->set_share(kA, {.request_percent = 50}));
    ASSERT_TRUE(driver_->set_share(kB, {.request_percent = 30}));
    ASSERT_TRUE(driver_->add_page(kA, 1, a_));
    ASSERT_TRUE(driver_->add_page(kB, 2, b_));
  }
  PlaceState state_of(InstanceId id) {
    for (const DeliveredService& one : driver_->snapshot().instances) {
      if (one.instance == id) return one.state;
    }
    return PlaceState::kIdle;
  }

  std::atomic<int> named_{0};
  PaceDriver::Page a_ = std::make_shared<wire::ShimPage>(), b_ = std::make_shared<wire::ShimPage>();
  std::unique_ptr<PaceDriver> driver_;
};

TEST_P(PaceDriverTest, ABellIsHeardAndAnswered) {
  EXPECT_FALSE(is_open(a_));
  ask(a_);
  EXPECT_TRUE(until([&] { return is_open(a_); }));
  EXPECT_EQ(a_->grant.load(), 1u);
  EXPECT_GT(a_->open_until_ns.load(), 0u);
  EXPECT_FALSE(is_open(b_));
}

TEST_P(PaceDriverTest, WhoNeverDrainsIsRevokedAndTheOtherGoesOn) {
  ask(a_);
  ASSERT_TRUE(until([&] { return is_open(a_); }));
  take_place(a_);
  ask(b_);
  EXPECT_TRUE(until([&] { return is_open(b_); }));
  EXPECT_FALSE(is_open(a_));
  EXPECT_EQ(state_of(kA), PlaceState::kRevoked);
}

TEST_P(PaceDriverTest, TwoThatKeepToItHaveTurns) {
  std::atomic<bool> stop{false};
  const auto run = [&](const PaceDriver::Page& page) {
    while (!stop.load()) {
      ask(page);
      while (!is_open(page) && !stop.load()) {
        if (page->drained.load() != page->grant.load()) give_back(page);  // over before it was seen
        std::this_thread::yield();
      }
      take_place(page);
      while (is_open(page) && !stop.load()) std::this_thread::yield();
      give_back(page);
    }
  };
  std::thread a(run, a_), b(run, b_);
  EXPECT_TRUE(until([&] { return a_->grant.load() > 20 && b_->grant.load() > 20; }));
  stop.store(true);
  a.join();
  b.join();
}

TEST_P(PaceDriverTest, APageThatRingsWithoutEndIsNotHeardWithoutEnd) {
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    while (!stop.load()) Bells::ring(a_->bell);
  });
  const std::uint64_t before = driver_->snapshot().wakes;
  const Instant began = monotonic_now();
  ask(b_);
  EXPECT_TRUE(until([&] { return is_open(b_); })) << "another is heard all the same";
  EXPECT_TRUE(until([&] { return monotonic_now() - began > 200ms; }));
  const double per_ms = static_cast<double>(driver_->snapshot().wakes - before) / to_ms(monotonic_now() - began);
  stop.store(true);
  flood.join();
  EXPECT_LT(per_ms, 40);
}

TEST_P(PaceDriverTest, GatesAreOpenWithoutIt) {
  driver_.reset();
  EXPECT_TRUE(is_open(a_) && is_open(b_));
  EXPECT_EQ(a_->pace.load() | b_->pace.load(), 0u);
}

TEST_P(PaceDriverTest, APageThatHasLostItsConnectionIsLeftAlone) {
  a_->pace.store(0);
  a_->gate.fetch_and(~wire::kGateNode);
  const std::uint64_t before = driver_->snapshot().wakes;
  ask(a_);
  EXPECT_TRUE(until([&] { return driver_->snapshot().wakes > before; }));
  ASSERT_TRUE(driver_->set_share(kB, {.limit_percent = 40}));
  EXPECT_TRUE(is_open(a_));
  EXPECT_EQ(a_->pace.load(), 0u);
}

TEST_P(PaceDriverTest, WhoOpensItsGateItselfIsNamed) {
  EXPECT_TRUE(until([&] {
    a_->gate.fetch_and(~wire::kGateNode);
    Bells::ring(a_->bell);
    return named_.load() > 0;
  }));
  EXPECT_TRUE(driver_->snapshot().instances[0].is_disbelieved);
}

TEST_P(PaceDriverTest, AShimWithoutPlacesIsRefusedByName) {
  const auto old = std::make_shared<wire::ShimPage>();
  old->version = wire::kOldestShimVersion;
  const Status added = driver_->add_page(kA, 3, old);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, "the shim of instance 1 is of version 2, places need 3: its work is not paced");
  EXPECT_FALSE(driver_->add_page(InstanceId(9), 3, b_));
}

TEST_P(PaceDriverTest, WhatWasDrainedUnderAnotherDriverIsNothingHere) {
  const auto page = std::make_shared<wire::ShimPage>();
  page->grant.store(1);
  page->drained.store(1);
  ASSERT_TRUE(driver_->add_page(kA, 3, page));
  EXPECT_EQ(page->drained.load(), 0u) << "its first place would have drained before it ended";
}

TEST_P(PaceDriverTest, PagesComeAndGoUnderIt) {
  for (ProcessPage number = 10; number < 400; ++number) {  // more at a time than one wait takes
    ASSERT_TRUE(driver_->add_page(kB, number, std::make_shared<wire::ShimPage>()));
  }
  ask(a_);
  EXPECT_TRUE(until([&] { return is_open(a_); }));
  for (ProcessPage number = 10; number < 400; ++number) driver_->remove_page(number);
  driver_->remove_instance(kB);
  EXPECT_TRUE(is_open(b_));
  EXPECT_EQ(driver_->snapshot().instances.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Waits, PaceDriverTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "WithFutexWaitv" : "ByLooking"; });

}  // namespace
}  // namespace fairlead
