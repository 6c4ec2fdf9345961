#include "decide/core/live_invocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "decide/core/core_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1);
constexpr TenantId kFirst(0), kSecond(1);
constexpr InvocationId kOne(1), kTwo(2);

class LiveInvocationsTest : public ::testing::Test {
 protected:
  void arrive(InvocationId id, Instant deadline = Instant::max(), TenantId tenant = kFirst) {
    live.arrive(Instant(1s), id, kA, tenant, deadline);
  }
  std::vector<std::string> taken() {
    std::vector<std::string> lines;
    for (const Action& action : out) lines.push_back(to_string(action));
    out.clear();
    return lines;
  }
  void bind(InvocationId id, Instant at, StartKind start = StartKind::kCold) {
    live.at(id).dispatched = at;
    live.at(id).instance = InstanceId(7);
    live.at(id).start = start;
  }

  LiveInvocations live;
  Actions out;
};

TEST_F(LiveInvocationsTest, ItsCompletionSaysWhereItsTimeWent) {
  arrive(kOne);
  bind(kOne, Instant(3s));
  live.deliver(Instant(6s), kOne, Instant(66s));
  live.at(kOne).instance_start = 2s;
  live.complete(Instant(8s), kOne, OutcomeKind::kSuccess, 1s, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::get<Complete>(out[0]), (Complete{kOne, kA, OutcomeKind::kSuccess, StartKind::kCold, 2s, 3s, 1s, 2s}));
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(live.counts().completed, 1u);
}

TEST_F(LiveInvocationsTest, WhatNeverRanHasQueuedAllItsTime) {
  arrive(kOne);
  live.complete(Instant(5s), kOne, OutcomeKind::kCancelled, 0s, out);
  EXPECT_EQ(std::get<Complete>(out.at(0)).queue_time, Duration(4s));
  EXPECT_EQ(std::get<Complete>(out.at(0)).start_time, Duration(0));
  EXPECT_EQ(live.counts().failed, 1u);
}

TEST_F(LiveInvocationsTest, WhatAnsweredEarlyIsCompletedOnceAndChargedOnce) {
  arrive(kOne);
  bind(kOne, Instant(1s), StartKind::kDeviceWarm);
  live.deliver(Instant(1s), kOne, Instant(60s));
  live.answer_early(Instant(2s), kOne, OutcomeKind::kSuccess, 1s, out);
  EXPECT_FALSE(live.empty());
  ASSERT_EQ(out.size(), 1u);
  out.clear();
  live.charge(kOne, 5s, out);
  EXPECT_EQ(std::get<Charge>(out.at(0)), (Charge{kOne, kA, 5s, 4s}));
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(live.counts().completed, 1u);
  EXPECT_EQ(live.counts().device_warm_starts, 1u);
}

TEST_F(LiveInvocationsTest, ACallersDeadlineIsGivenOnceTheLowerIdFirst) {
  arrive(kTwo, Instant(5s));
  arrive(kOne, Instant(5s));
  EXPECT_EQ(live.next_due(), Instant(5s));
  EXPECT_EQ(live.take_due(Instant(4s)), std::nullopt);
  EXPECT_EQ(live.take_due(Instant(5s)), kOne);
  EXPECT_EQ(live.take_due(Instant(5s)), kTwo);
  EXPECT_EQ(live.take_due(Instant(9s)), std::nullopt);
}

TEST_F(LiveInvocationsTest, ItsDeadlineCountsNoMoreOnceItIsDeliveredOrOver) {
  arrive(kOne, Instant(5s));
  arrive(kTwo, Instant(6s));
  bind(kOne, Instant(2s));
  live.deliver(Instant(2s), kOne, Instant(60s));
  EXPECT_EQ(live.next_due(), Instant(6s));
  live.complete(Instant(3s), kTwo, OutcomeKind::kCancelled, 0s, out);
  EXPECT_EQ(live.next_due(), Instant::max());
}

TEST_F(LiveInvocationsTest, OneThatExpiredIsNotCompletedTwice) {
  arrive(kOne, Instant(5s));
  bind(kOne, Instant(2s));
  live.expire(Instant(5s), kOne, out);
  EXPECT_THAT(taken(), ElementsAre("complete invocation=1 flow=1 outcome=expired start=cold queue_ns=1000000000 "
                                   "start_ns=3000000000 service_ns=0"));
  live.complete(Instant(9s), kOne, OutcomeKind::kStartFailed, 0s, out);
  EXPECT_THAT(out, IsEmpty());
  EXPECT_TRUE(live.empty());
}

TEST_F(LiveInvocationsTest, WhatIsQueuedAgainIsAsIfItHadNotBeenChosen) {
  arrive(kOne);
  bind(kOne, Instant(2s), StartKind::kHostWarm);
  live.requeue(kOne);
  EXPECT_FALSE(live.at(kOne).instance);
  live.complete(Instant(4s), kOne, OutcomeKind::kRemoved, 0s, out);
  EXPECT_EQ(std::get<Complete>(out.at(0)).start, StartKind::kCold);
  EXPECT_EQ(std::get<Complete>(out.at(0)).queue_time, Duration(3s));
}

TEST_F(LiveInvocationsTest, EachTenantHasAsManyAsAreNotOver) {
  live.know(kFirst);
  EXPECT_FALSE(live.has_several_tenants());
  live.know(kSecond);
  EXPECT_TRUE(live.has_several_tenants());
  EXPECT_EQ(live.of(TenantId(99)), 0u);
  // Compared with a plain list, whatever the order in which they end.
  std::mt19937 random(7);
  std::map<std::uint64_t, TenantId> there;
  for (std::uint64_t id = 1; id < 2000; ++id) {
    const TenantId tenant(random() % 3);
    arrive(InvocationId(id), Instant::max(), tenant);
    there[id] = tenant;
    if (random() % 2 == 0) {
      const auto ends = std::next(there.begin(), static_cast<std::ptrdiff_t>(random() % there.size()));
      live.complete(Instant(9s), InvocationId(ends->first), OutcomeKind::kCancelled, 0s, out);
      there.erase(ends);
    }
    for (std::uint64_t t = 0; t < 3; ++t) {
      const auto count =
          std::count_if(there.begin(), there.end(), [t](const auto& one) { return one.second.value() == t; });
      ASSERT_EQ(live.of(TenantId(t)), static_cast<std::size_t>(count));
    }
  }
}

TEST(LiveInvocationsDeathTest, AnIdIsUsedOnce) {
  LiveInvocations live;
  live.arrive(Instant(), kOne, kA, kFirst, Instant::max());
  EXPECT_DEATH(live.arrive(Instant(), kOne, kA, kFirst, Instant::max()), "invocation 1 arrived twice");
}

}  // namespace
}  // namespace fairlead
