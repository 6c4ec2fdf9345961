// The worked example of every policy's head, and what holds for all policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "decide/queueing/mqfq_sticky.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::FakePlaceable;

constexpr FlowId kA(1), kB(2), kC(3);

// One slot; letters are flows.
class Bench {
 public:
  explicit Bench(std::string_view name, PolicyOptions options = {}) : policy_(*make_policy(name, options)) {}

  FlowQueue& policy() { return *policy_; }
  FakePlaceable& placeable() { return placeable_; }
  std::optional<FlowId> next_start(Duration at = 0s) { return policy_->next_start(Instant(at), placeable_); }
  void add(FlowId flow, FlowShare share = {}) { policy_->add_flow(flow, share); }
  void arrive(FlowId flow, int count = 1, Duration at = 0s) {
    for (int i = 0; i < count; ++i) policy_->on_arrival(Instant(at), flow, InvocationId(next_++));
  }
  // Serves one of the flow, so that its service time is known.
  void teach(FlowId flow, Duration service) {
    arrive(flow);
    const auto choice = policy_->choose(Instant{}, placeable_);
    ASSERT_TRUE(choice && choice->flow == flow);
    policy_->on_completion(Instant{}, flow, choice->invocation, service);
  }
  // One of the flow runs in a seat from now on.
  InvocationId seat(FlowId flow) {
    arrive(flow);
    placeable_.seated = flow;
    const auto choice = policy_->choose(Instant{}, placeable_);
    placeable_.seated = FlowId();
    EXPECT_TRUE(choice && choice->flow == flow);
    return choice ? choice->invocation : InvocationId();
  }
  std::string serve(int count, const std::map<FlowId, Duration>& service = {}) {
    std::string order;
    for (int i = 0; i < count; ++i) {
      const auto choice = policy_->choose(Instant{}, placeable_);
      if (!choice) break;
      order += static_cast<char>('A' + choice->flow.value() - 1);
      const auto known = service.find(choice->flow);
      policy_->on_completion(Instant{}, choice->flow, choice->invocation, known == service.end() ? 1s : known->second);
    }
    return order;
  }

 private:
  std::unique_ptr<FlowQueue> policy_;
  FakePlaceable placeable_;
  std::uint64_t next_ = 1;
};

TEST(Batch, ServesWhatWasQueuedWhenItsTurnCame) {
  Bench bench("batch");
  bench.add(kA);
  bench.add(kB);
  bench.arrive(kA, 3);
  bench.arrive(kB);
  EXPECT_EQ(bench.serve(1), "A");
  bench.arrive(kA);
  EXPECT_EQ(bench.serve(9), "AABA");
}

TEST(Batch, AnInterruptedBatchIsOvertakenAndGoesOn) {
  Bench bench("batch");
  bench.add(kA);
  bench.add(kB);
  bench.arrive(kA, 3);
  bench.arrive(kB, 2);
  EXPECT_EQ(bench.serve(1), "A");
  bench.placeable().blocked = {kA};
  EXPECT_EQ(bench.serve(1), "B");
  bench.placeable().blocked.clear();
  EXPECT_EQ(bench.serve(9), "AAB");
}

// Two slots: a batch is on one of them, so no flow runs beside itself while another waits.
TEST(Batch, ABatchBelongsToOneSlot) {
  Bench bench("batch");
  bench.add(kA);
  bench.add(kB);
  bench.add(kC);
  bench.arrive(kA, 4);
  bench.arrive(kB, 2);
  bench.arrive(kC, 1);
  const auto choose = [&] { return *bench.policy().choose(Instant{}, bench.placeable()); };
  const auto end = [&](const FlowQueue::Choice& choice) {
    bench.policy().on_completion(Instant{}, choice.flow, choice.invocation, 1s);
  };
  const auto first = choose(), other = choose();
  EXPECT_EQ(first.flow, kA);
  EXPECT_EQ(other.flow, kB);
  end(first);
  const auto second = choose();
  EXPECT_EQ(second.flow, kA) << "the slot goes on with its batch";
  end(other);
  const auto last_of_b = choose();
  EXPECT_EQ(last_of_b.flow, kB);
  end(last_of_b);
  const auto c = choose();
  EXPECT_EQ(c.flow, kC);
  end(c);
  EXPECT_EQ(choose().flow, kA) << "nothing else can run, so the free slot helps";
}

TEST(Sjf, ServesTheShortestUntilAnotherIsOwedTooMuch) {
  Bench bench("sjf");
  bench.add(kA);
  bench.add(kB);
  bench.teach(kA, 1s);
  bench.teach(kB, 9s);
  bench.arrive(kA, 200);
  bench.arrive(kB, 200);
  const std::string order = bench.serve(60, {{kA, 1s}, {kB, 9s}});
  EXPECT_EQ(order.find('B'), 52u) << order;  // half a turn was spent when it was taught
  EXPECT_EQ(order.substr(52), "BABABABA");
}

TEST(Sjf, AFlowWithoutWorkEarnsItsPartsOfATurn) {
  Bench bench("sjf");
  bench.add(kA);
  bench.add(kB);
  bench.add(kC);
  bench.teach(kA, 1s);
  bench.teach(kB, 9s);
  bench.arrive(kA, 500);
  bench.serve(54, {{kA, 1s}});
  bench.arrive(kB, 5);
  EXPECT_EQ(bench.serve(5, {{kB, 9s}}), "BBBAB");  // owed 26 turns and a half, half a turn less after each
  bench.arrive(kC, 1);
  EXPECT_EQ(bench.serve(2), "CB")
      << "C is owed nothing for the time before its first call, and B now a third of a turn more";
}

TEST(Sjf, AFlowThatGoesTakesItsPartsAlong) {
  Bench bench("sjf");
  bench.add(kA);
  bench.add(kB);
  bench.add(kC);
  for (const auto& [flow, service] : {std::pair(kA, 1s), {kB, 9s}, {kC, 2s}}) bench.teach(flow, service);
  bench.policy().remove_flow(kC);
  bench.arrive(kA, 200);
  bench.arrive(kB, 200);
  EXPECT_NEAR(static_cast<double>(bench.serve(70).find('B')), 52, 1);
}

TEST(Eevd, AColdStartInFrontPutsAFlowBack) {
  Bench bench("eevd");
  bench.add(kA);
  bench.add(kB);
  bench.teach(kA, 4s);
  bench.teach(kB, 200ms);
  bench.arrive(kA, 1, 10s);
  bench.arrive(kB, 1, 12s);
  bench.policy().set_setup(kB, 10s);
  EXPECT_EQ(bench.serve(1), "A");
  bench.arrive(kA, 1, 10s);
  bench.policy().set_setup(kB, 0s);
  EXPECT_EQ(bench.serve(2), "BA");
}

TEST(MqfqSetup, WaitsUntilEnoughIsQueuedForTheStart) {
  Bench bench("mqfq-setup");
  bench.add(kA);
  bench.add(kB);
  bench.teach(kA, 2s);
  bench.teach(kB, 300ms);
  bench.policy().set_setup(kB, 9s);
  bench.arrive(kA, 2);
  bench.arrive(kB, 1);
  EXPECT_EQ(bench.serve(1, {{kA, 2s}}), "A");
  bench.arrive(kB, 5);
  EXPECT_EQ(bench.serve(1, {{kB, 300ms}}), "B");
}

TEST(MqfqSetup, TheWindowHoldsWhateverTheOrderWithinIt) {
  Bench bench("mqfq-setup");
  bench.add(kA);
  bench.add(kB);
  bench.policy().set_setup(kB, 100s);
  bench.arrive(kA, 30);
  bench.arrive(kB, 30);
  const std::string order = bench.serve(12, {{kA, 1s}, {kB, 1s}});
  EXPECT_EQ(order.find('B'), 11u) << order;  // A is more than 10 s ahead
}

// The example of mqfq_warm.cc.
TEST(MqfqWarm, WarmFlowsGoBeforeAStart) {
  Bench bench("mqfq-warm");
  bench.add(kA);
  bench.add(kB);
  bench.policy().set_setup(kA, 9s);
  bench.arrive(kA, 3);
  bench.arrive(kB, 2);
  EXPECT_EQ(bench.serve(5, {{kA, 1s}, {kB, 2s}}), "BBAAA");
}

TEST(MqfqWarm, ObjectivesGoFirstByDueTime) {
  Bench bench("mqfq-warm");
  bench.add(kA);
  bench.add(kB, {.objective = 5s});
  bench.add(kC, {.objective = 1s});
  for (const FlowId flow : {kA, kB, kC}) bench.arrive(flow, 1, 10s);
  EXPECT_EQ(bench.serve(3), "CBA");
}

TEST(MqfqSticky, TheWindowCanFollowTheMeanService) {
  PolicyOptions options;
  options.set(kOverRun, 0s).set(kOverRunServices, 5);
  Bench bench("mqfq-sticky", options);
  bench.add(kA);
  bench.add(kB);
  bench.arrive(kA, 20);
  bench.arrive(kB, 10);
  // 5 services of 1 s: A runs until it is more than 5 s ahead.
  EXPECT_EQ(bench.serve(7).find('B'), 6u);
}

TEST(MqfqRandom, ChoosesEveryEligibleFlowSoonerOrLater) {
  Bench bench("mqfq");
  for (const FlowId flow : {kA, kB, kC}) bench.add(flow);
  for (const FlowId flow : {kA, kB, kC}) bench.arrive(flow, 20);
  const std::string order = bench.serve(20, {{kA, 1ms}, {kB, 1ms}, {kC, 1ms}});
  EXPECT_EQ(std::set<char>(order.begin(), order.end()).size(), 3u) << order;
}

PolicyOptions by_tenant() {
  PolicyOptions options;
  options.by_tenant = true;
  return options;
}

TEST(TenantQueues, AFloodOfFunctionsIsStillOneTenant) {
  Bench bench("mqfq-sticky", by_tenant());
  for (std::uint64_t i = 1; i <= 20; ++i) bench.add(FlowId(i), {.tenant = TenantId(1)});
  bench.add(FlowId(26), {.tenant = TenantId(2)});
  for (std::uint64_t i = 1; i <= 20; ++i) bench.arrive(FlowId(i), 20);
  bench.serve(50);
  bench.arrive(FlowId(26), 3);
  EXPECT_LE(bench.serve(3).find('Z'), 1u);
}

// Two slots, both the flood's, whose calls are short, or turn out a thousand times shorter than those before them.
TEST(TenantQueues, WhoJoinsAFloodHasTheNextFreeSlot) {
  for (const Duration learnt : {Duration(200us), Duration(200ms)}) {
    Bench bench("mqfq-sticky", by_tenant());
    bench.add(kA, {.tenant = TenantId(1)});
    bench.add(kB, {.tenant = TenantId(2)});
    bench.teach(kA, learnt);
    bench.teach(kB, 200us);
    bench.arrive(kA, 100);
    const auto choose = [&] { return *bench.policy().choose(Instant{}, bench.placeable()); };
    const auto end = [&](const FlowQueue::Choice& choice) {
      bench.policy().on_completion(Instant{}, choice.flow, choice.invocation, 200us);
    };
    auto one = choose(), other = choose();
    for (int i = 0; i < 20; ++i) {
      end(std::exchange(one, std::exchange(other, choose())));
    }
    bench.arrive(kB);
    end(one);
    EXPECT_EQ(choose().flow, kB) << learnt.count();
  }
}

TEST(TenantQueues, NobodyBanksCreditBeforeHeComes) {
  Bench bench("fcfs", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.add(kB, {.tenant = TenantId(2)});
  bench.arrive(kA, 200);
  bench.serve(100);
  bench.arrive(kB, 100);
  const std::string order = bench.serve(20);
  EXPECT_NEAR(std::count(order.begin(), order.end(), 'B'), 10, 1) << order;
}

// Inside of a tenant virtual times begin at 0 whenever it does; people compare them with the node's.
TEST(TenantQueues, AFlowShowsAsFarAheadAsItIsOfItsTenants) {
  Bench bench("mqfq-sticky", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.arrive(kA, 50);
  bench.serve(40);
  bench.add(kB, {.tenant = TenantId(2)});
  bench.arrive(kB, 5);
  const FlowQueue& policy = bench.policy();
  EXPECT_GT(policy.global_virtual_time(), Duration(0));
  EXPECT_EQ(policy.global_virtual_time(), policy.view(kB).virtual_time);
}

TEST(TenantQueues, SharesFollowWeights) {
  Bench bench("fcfs", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.add(kB, {.tenant = TenantId(2)});
  bench.policy().set_tenant(TenantId(1), {.weight = 3});
  bench.arrive(kA, 100);
  bench.arrive(kB, 100);
  const std::string order = bench.serve(80);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'A'), 60) << order;
}

TEST(TenantQueues, AQuotaHoldsBackNobodyElse) {
  Bench bench("fcfs", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.add(kB, {.tenant = TenantId(2)});
  bench.policy().set_tenant(TenantId(1), {.max_concurrency = 1});
  bench.arrive(kA, 5);
  bench.arrive(kB, 2);
  std::string order;
  while (const auto choice = bench.policy().choose(Instant{}, bench.placeable())) {
    order += static_cast<char>('A' + choice->flow.value() - 1);
  }
  EXPECT_EQ(order, "ABB");
}

TEST(TenantQueues, ATenantDoesNotContendWhoseFlowsAreAtTheirLimits) {
  Bench bench("fcfs", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.policy().set_max_concurrency(kA, 1);
  bench.arrive(kA, 2);
  EXPECT_TRUE(bench.policy().contends());
  ASSERT_TRUE(bench.policy().choose(Instant{}, bench.placeable()));
  EXPECT_FALSE(bench.policy().contends()) << "its second call waits for its first, and for nobody else";
}

// ---- seats

// A waits for its own seat, or for its first instance beside it.
void hold_a_seat(Bench& bench, Supply supply) {
  bench.policy().set_supply(kA, supply);
  bench.placeable().blocked = {kA};
  bench.seat(kA);
  bench.arrive(kA);
}

TEST(Seats, ATenantInSeatsDoesNotHoldTheClockOfTenants) {
  for (const Supply supply : {Supply::kSeats, Supply::kNone}) {
    Bench bench("fcfs", by_tenant());
    for (const FlowId flow : {kA, kB, kC}) bench.add(flow, {.tenant = TenantId(flow.value())});
    hold_a_seat(bench, supply);
    bench.arrive(kB, 100);
    bench.serve(50);
    bench.arrive(kC, 100);
    const std::string order = bench.serve(20);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'C'), 10) << order << ": nobody banks credit before it comes";
  }
}

TEST(Seats, AFlowInSeatsDoesNotHoldTheClockOfFlows) {
  for (const std::string_view name : {"mqfq-sticky", "mqfq-setup", "resident-window"}) {
    for (const Supply supply : {Supply::kSeats, Supply::kNone}) {
      Bench bench(name);
      bench.add(kA);
      bench.add(kB);
      hold_a_seat(bench, supply);
      bench.arrive(kB, 100);
      bench.serve(50);
      EXPECT_EQ(bench.policy().global_virtual_time(), 50s) << name;
    }
  }
}

// The clock stands still while A alone works, in its seat.
TEST(Seats, WhoLeavesThemIsNoFurtherAheadThanTheWindow) {
  Bench bench("mqfq-sticky", PolicyOptions{}.set(kOverRun, 10s));
  bench.add(kA);
  bench.add(kB);
  bench.policy().set_supply(kA, Supply::kSeats);
  for (int i = 0; i < 100; ++i) bench.policy().on_completion(Instant{}, kA, bench.seat(kA), 3s, 1s);
  EXPECT_EQ(bench.policy().view(kA).virtual_time, 10s);
  bench.policy().set_supply(kA, Supply::kReady);
  bench.arrive(kB, 50);
  bench.arrive(kA, 5);
  const std::string order = bench.serve(40);
  EXPECT_EQ(std::count(order.begin(), order.end(), 'A'), 5) << order;
}

TEST(Seats, WhatRunsInSeatsCountsForTheLimitOfItsTenant) {
  Bench bench("fcfs", by_tenant());
  bench.add(kA, {.tenant = TenantId(1)});
  bench.add(kB, {.tenant = TenantId(1)});
  bench.policy().set_tenant(TenantId(1), {.max_concurrency = 1});
  bench.policy().set_supply(kA, Supply::kSeats);
  const InvocationId in_seat = bench.seat(kA);
  bench.arrive(kB);
  EXPECT_EQ(bench.serve(1), "");
  bench.policy().on_completion(Instant{}, kA, in_seat, 1s, 1s);
  EXPECT_EQ(bench.serve(1), "B");
}

// ---- what holds for all

// ---- starting ahead

TEST(StartAhead, IsOfferedInThePolicysOrderAndTakesNothing) {
  for (const bool by_tenant : {false, true}) {
    for (const std::string_view name : policy_names()) {
      Bench bench(name, {.by_tenant = by_tenant});
      bench.add(kA);
      bench.add(kB);
      EXPECT_FALSE(bench.next_start()) << name;
      bench.arrive(kB);
      EXPECT_EQ(bench.next_start(), kB) << name;
      bench.arrive(kA);
      bench.placeable().blocked = {kB};
      EXPECT_EQ(bench.next_start(), kA) << name;
      EXPECT_EQ(bench.policy().queued(), 2u) << name;
      EXPECT_EQ(bench.policy().view(kA).virtual_time, 0s) << name;
    }
  }
}

TEST(StartAhead, AThrottledFlowIsNotOffered) {
  Bench bench("mqfq-warm");
  bench.add(kA);
  bench.add(kB);
  bench.teach(kA, 15s);
  bench.policy().set_supply(kA, Supply::kNone);
  bench.arrive(kB);
  bench.arrive(kA);
  bench.placeable().elsewhere = {kB};
  EXPECT_FALSE(bench.policy().choose(Instant{}, bench.placeable()));
  bench.placeable().slot_is_free = false;
  EXPECT_FALSE(bench.next_start()) << "A is 15 s ahead of B";
}

TEST(StartAhead, AFailedStartEndsTheHeadOfTheQueue) {
  for (const bool by_tenant : {false, true}) {
    for (const std::string_view name : policy_names()) {
      Bench bench(name, {.by_tenant = by_tenant});
      bench.add(kA);
      bench.arrive(kA, 2);
      EXPECT_EQ(bench.policy().fail_head(Instant(1s), kA, 1s), InvocationId(1)) << name;
      EXPECT_EQ(bench.policy().queued(), 1u) << name;
      EXPECT_EQ(bench.serve(9), "A") << name;
      EXPECT_EQ(bench.policy().fail_head(Instant(2s), kA, 1s), std::nullopt) << name;
    }
  }
}

TEST(StartAhead, AFailedStartIsChargedToItsFlowAndItsTenant) {
  Bench flows("mqfq-warm"), tenants("mqfq-warm", {.by_tenant = true});
  flows.add(kA, {.weight = 2});
  flows.arrive(kA, 2);
  flows.policy().fail_head(Instant(6s), kA, 6s);
  EXPECT_EQ(flows.policy().view(kA).virtual_time, 3s);
  tenants.add(kA, {.tenant = TenantId(1)});
  tenants.add(kB, {.tenant = TenantId(2)});
  tenants.arrive(kA, 2);
  tenants.arrive(kB);
  tenants.policy().fail_head(Instant(6s), kA, 6s);
  EXPECT_EQ(tenants.serve(1), "B");
}

TEST(MakePolicy, KnowsItsNamesAndListsThemForAnyOther) {
  for (const std::string_view name : policy_names()) {
    const auto policy = make_policy(name, PolicyOptions{});
    ASSERT_TRUE(policy);
    EXPECT_EQ((*policy)->policy().name, name);
  }
  const auto unknown = make_policy("lottery", PolicyOptions{});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "queueing policy \"lottery\" is unknown; known are mqfq-setup, mqfq-sticky, mqfq-warm, mqfq, sfq, "
            "fcfs, fcfs-naive, batch, sjf, eevd, resident-window, cfs-affinity, exclusive, longest-queue");
}

TEST(MakePolicy, RefusesAParameterThatNoPolicyHas) {
  PolicyOptions options;
  options.parameters["over_run"] = 3.0;
  const auto policy = make_policy("mqfq-sticky", options);
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message, "\"over_run\" is a parameter of no policy");
}

// What a policy says of itself is what help, settings and errors are made of.
TEST(PolicyParameters, EachHasOneMeaningAndAnInitialValueWithinItsBounds) {
  for (const Policy* policy : policies()) {
    EXPECT_FALSE(policy->next_is.empty()) << policy->name;
    for (const ParameterInfo* parameter : policy->parameters) {
      if (parameter == nullptr) continue;
      EXPECT_EQ(parameter, policy_parameter(parameter->name)) << parameter->name << " has two meanings";
      EXPECT_EQ(parameter->is_time, parameter->name.ends_with("_s")) << parameter->name;
      EXPECT_FALSE(parameter->meaning.empty()) << parameter->name;
      const double initial = parameter->initial.value_or(parameter->least);
      EXPECT_TRUE(parameter->least <= initial && initial <= parameter->most) << parameter->name;
    }
  }
}

TEST(MakePolicy, RefusesOptionsOutOfBounds) {
  PolicyOptions options;
  options.set(kOverRun, -1s);
  const auto policy = make_policy("mqfq-sticky", options);
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message, "policy parameter over_run_s is -1, it must be a number from 0 to 1000000000");
}

struct Setting {
  std::string policy;
  bool by_tenant;
};

// A policy beside the simplest model of what waits and what runs.
class RandomRun {
 public:
  static constexpr std::uint64_t kFlows = 6;

  RandomRun(const Setting& setting, std::uint64_t seed) : rng_(seed) {
    PolicyOptions options;
    options.by_tenant = setting.by_tenant;
    options.set(kOverRun, std::chrono::seconds(rng_.below(4)));
    policy_ = *make_policy(setting.policy, options);
    for (std::uint64_t f = 1; f <= kFlows; ++f) policy_->add_flow(FlowId(f), {.tenant = TenantId(f % 2)});
  }

  void step() {
    now_ += std::chrono::milliseconds(rng_.below(100));
    const FlowId flow(rng_.below(kFlows) + 1);
    switch (rng_.below(7)) {
      case 0:
      case 1: arrive(flow); break;
      case 2: choose(); break;
      case 3: finish(); break;
      case 4: policy_->set_setup(flow, std::chrono::milliseconds(rng_.below(9000))); break;
      case 5: cancel(flow); break;
      default:
        placeable_.blocked.clear();
        if (rng_.below(2) == 0) placeable_.blocked.insert(flow);
        policy_->expire(now_);
    }
    ASSERT_EQ(policy_->queued(), waiting());
  }

  void run_out() {
    placeable_.blocked.clear();
    for (int i = 0; i < 4000 && (waiting() > 0 || !running_.empty()); ++i) {
      if (running_.empty()) choose();
      finish();
    }
    EXPECT_EQ(policy_->queued(), 0u);
  }

 private:
  void arrive(FlowId flow) {
    policy_->on_arrival(now_, flow, InvocationId(next_));
    waiting_[flow].push_back(InvocationId(next_++));
  }

  void cancel(FlowId flow) {
    if (waiting_[flow].empty() || rng_.below(3) != 0) return;
    EXPECT_TRUE(policy_->cancel(now_, flow, waiting_[flow].back()));
    waiting_[flow].pop_back();
  }

  void choose() {
    if (running_.size() == 3) return;
    const auto choice = policy_->choose(now_, placeable_);
    if (!choice) {
      // A window may be held by a flow that cannot run; otherwise nothing that can waits while nothing runs.
      EXPECT_TRUE(waiting() == 0 || !running_.empty() || !placeable_.blocked.empty());
      return;
    }
    EXPECT_TRUE(placeable_.can_run(choice->flow));
    auto& queue = waiting_[choice->flow];
    ASSERT_FALSE(queue.empty());
    EXPECT_EQ(queue.front(), choice->invocation);
    queue.pop_front();
    running_.push_back(*choice);
  }

  void finish() {
    if (running_.empty()) return;
    std::swap(running_[rng_.below(running_.size())], running_.back());
    const FlowQueue::Choice choice = running_.back();
    running_.pop_back();
    switch (rng_.below(8)) {
      case 0: policy_->on_failed_start(now_, choice.flow, choice.invocation, 5ms); break;
      case 1:
        policy_->on_requeue(now_, choice.flow, choice.invocation);
        waiting_[choice.flow].push_front(choice.invocation);
        break;
      default:
        policy_->on_completion(now_, choice.flow, choice.invocation, std::chrono::milliseconds(rng_.below(2000)));
    }
  }

  std::size_t waiting() const {
    std::size_t total = 0;
    for (const auto& [flow, queue] : waiting_) total += queue.size();
    return total;
  }

  Rng rng_;
  std::unique_ptr<FlowQueue> policy_;
  FakePlaceable placeable_;
  std::map<FlowId, std::deque<InvocationId>> waiting_;
  std::vector<FlowQueue::Choice> running_;
  std::uint64_t next_ = 1;
  Instant now_{};
};

class EveryPolicy : public ::testing::TestWithParam<Setting> {};

// Random arrivals, cancels, completions, failures and requeues: each invocation is chosen at most once at a time, in the
// order of its flow, never while its flow is blocked; and nothing is left while anything could run.
TEST_P(EveryPolicy, ServesEachInvocationOnceInOrderAndLeavesNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun run(GetParam(), seed);
    for (int i = 0; i < 600 && !HasFatalFailure(); ++i) run.step();
    run.run_out();
  }
}

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const std::string_view name : policy_names()) {
    settings.push_back({std::string(name), false});
    settings.push_back({std::string(name), true});
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, ::testing::ValuesIn(all_settings()), [](const auto& setting) {
  std::string name = setting.param.policy + (setting.param.by_tenant ? "_by_tenant" : "");
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace fairlead
