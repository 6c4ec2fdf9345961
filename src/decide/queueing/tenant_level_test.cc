// Tenants whose weights a cluster multiplies by factors, and what each was served.
#include "decide/queueing/tenant_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/queue_tenants.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::FakePlaceable;

constexpr FlowId kA(1), kB(2);
constexpr TenantId kOfA(1), kOfB(2);

// Two tenants with a function each, and enough of both queued.
class TenantFactors : public ::testing::Test {
 protected:
  explicit TenantFactors(PolicyOptions options = {.by_tenant = true}) : queue_(*make_policy("fcfs", options)) {
    queue_->add_flow(kA, {.tenant = kOfA});
    queue_->add_flow(kB, {.tenant = kOfB});
    for (int i = 0; i < 600; ++i) {
      for (const FlowId flow : {kA, kB}) queue_->on_arrival(Instant{}, flow, InvocationId(++last_));
    }
  }
  FlowQueue::Choice begin() { return *queue_->choose(Instant{}, placeable_); }
  void end(const FlowQueue::Choice& choice, Duration service) {
    queue_->on_completion(Instant{}, choice.flow, choice.invocation, service);
  }
  std::string serve(int count, Duration service = 1s) {
    std::string order;
    for (int i = 0; i < count; ++i) {
      const auto choice = begin();
      order += choice.flow == kA ? 'A' : 'B';
      end(choice, service);
    }
    return order;
  }
  std::ptrdiff_t of_a(int count, Duration service = 1s) {
    const std::string order = serve(count, service);
    return std::count(order.begin(), order.end(), 'A');
  }

  std::unique_ptr<FlowQueue> queue_;
  FakePlaceable placeable_;
  std::uint64_t last_ = 0;
};

TEST_F(TenantFactors, AWeightCountsTimesItsFactor) {
  QueueTenants::set_factor(*queue_, kOfA, 0.25);
  EXPECT_NEAR(of_a(50), 10, 1);
}

TEST_F(TenantFactors, NeitherAShareNorAFactorTouchesTheOther) {
  QueueTenants::set_factor(*queue_, kOfA, 0.25);
  queue_->set_tenant(kOfA, {.weight = 4});
  EXPECT_NEAR(of_a(40), 20, 1) << "4 times 0.25";
  queue_->set_tenant(kOfA, {.weight = 4});        // settings are read again
  QueueTenants::set_factor(*queue_, kOfA, 0.25);  // and it is told again
  EXPECT_NEAR(of_a(40), 20, 1) << "nothing is multiplied twice";
  QueueTenants::set_factor(*queue_, kOfA, 1);
  EXPECT_NEAR(of_a(50), 40, 2) << "the weight alone";
}

TEST_F(TenantFactors, WhoIsAheadStaysAheadByTheSameService) {
  QueueTenants::set_factor(*queue_, kOfA, 1.0 / 1024);
  EXPECT_EQ(serve(2), "AB");  // A is 1,024 s ahead of who waits
  QueueTenants::set_factor(*queue_, kOfA, 1);
  EXPECT_NEAR(of_a(40), 20, 1);
}

TEST_F(TenantFactors, WhatIsInFlightIsReplacedByWhatItTookWhateverItWasChargedAt) {
  for (const double factor : {1.0 / 512, 512.0}) {
    serve(4, 10s);  // what a call is expected to take
    QueueTenants::set_factor(*queue_, kOfA, factor);
    std::deque<FlowQueue::Choice> running;
    do running.push_back(begin());
    while (running.back().flow != kA);
    QueueTenants::set_factor(*queue_, kOfA, 1);
    for (const auto& choice : running) end(choice, 1ms);
    EXPECT_NEAR(of_a(40, 1ms), 20, 2) << factor;
  }
}

TEST_F(TenantFactors, AreNothingWithoutTenants) {
  const auto flat = *make_policy("fcfs", {});
  QueueTenants::set_factor(*flat, kOfA, 0.001);
  EXPECT_EQ(QueueTenants::use(*flat, kOfA).served, 0s);
}

// 63 bits of nanoseconds are 292 years; at this weight and factor an hour of service is eleven.
TEST_F(TenantFactors, VirtualTimeBeginsAnewBeforeItEnds) {
  for (const TenantId tenant : {kOfA, kOfB}) {
    queue_->set_tenant(tenant, {.weight = 0.01});
    QueueTenants::set_factor(*queue_, tenant, 1.0 / 1024);
  }
  Duration most{0};
  bool began_anew = false;
  // What is charged for one call has a bound, 13 days of virtual time; 2^61 ns are 2,048 of these.
  for (int i = 0; i < 5000; ++i) {
    const auto choice = begin();
    end(choice, 1h);
    queue_->on_arrival(Instant{}, choice.flow, InvocationId(++last_));
    const Duration now = queue_->global_virtual_time();
    ASSERT_GE(now, 0s);
    began_anew = began_anew || now < most;
    most = std::max(most, now);
  }
  EXPECT_TRUE(began_anew);
  EXPECT_NEAR(of_a(40, 1h), 20, 1);
}

TEST_F(TenantFactors, WhatATenantWasServedDoesNotDependOnItsWeightAndDoesNotFall) {
  queue_->set_tenant(kOfA, {.weight = 10});
  QueueTenants::set_factor(*queue_, kOfA, 7);
  Duration before{0};
  for (int i = 0; i < 20; ++i) {
    serve(1, 3s);
    const Duration of_both = QueueTenants::use(*queue_, kOfA).served + QueueTenants::use(*queue_, kOfB).served;
    EXPECT_EQ(of_both - before, 3s);
    before = of_both;
  }
  queue_->remove_flow(kA);
  EXPECT_GT(QueueTenants::use(*queue_, kOfA).served, 3s) << "of functions that are gone, too";
  EXPECT_FALSE(QueueTenants::use(*queue_, kOfA).is_waiting);
  EXPECT_TRUE(QueueTenants::use(*queue_, kOfB).is_waiting);
  queue_->on_started(kB, 2s);
  EXPECT_EQ(QueueTenants::use(*queue_, kOfA).served + QueueTenants::use(*queue_, kOfB).served - before, 2s)
      << "starts, too";
}

TEST_F(TenantFactors, WhoIsAtItsOwnLimitWaitsForNobody) {
  queue_->set_tenant(kOfA, {.max_concurrency = 1});
  EXPECT_TRUE(QueueTenants::use(*queue_, kOfA).is_waiting);
  while (begin().flow != kA) {
  }
  EXPECT_FALSE(QueueTenants::use(*queue_, kOfA).is_waiting);
}

TEST_F(TenantFactors, WhoseFunctionIsAtItsReservedConcurrencyWaitsForNobody) {
  queue_->set_max_concurrency(kA, 1);
  EXPECT_TRUE(QueueTenants::use(*queue_, kOfA).is_waiting);
  while (begin().flow != kA) {
  }
  EXPECT_FALSE(QueueTenants::use(*queue_, kOfA).is_waiting);
}

TEST_F(TenantFactors, WhoseFunctionsAllStartWaitsForNobody) {
  queue_->set_supply(kA, Supply::kStarting);
  EXPECT_FALSE(QueueTenants::use(*queue_, kOfA).is_waiting);
  queue_->set_supply(kA, Supply::kReady);
  EXPECT_TRUE(QueueTenants::use(*queue_, kOfA).is_waiting);
}

// A guess at one factor is taken back at another.
TEST_F(TenantFactors, GuessesThatWereScaledLeaveNothingBehind) {
  serve(2, 7s);
  for (int i = 0; i < 500; ++i) {
    QueueTenants::set_factor(*queue_, kOfA, 1.0 + i % 7);
    const auto choice = begin();
    QueueTenants::set_factor(*queue_, kOfA, 1.0 / (1 + i % 11));
    end(choice, Duration(0));
  }
  QueueTenants::set_factor(*queue_, kOfA, 1);
  EXPECT_NEAR(of_a(40), 20, 1);
}

}  // namespace
}  // namespace fairlead
