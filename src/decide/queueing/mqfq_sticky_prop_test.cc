// MqfqSticky against the algorithm written down plainly: no heaps, every flow looked at for every choice.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "base/rng.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using std::chrono::milliseconds;

// Weights are 1, 2 or 4, so that divisions are exact and both sides agree to the nanosecond.
class NaiveMqfq {
 public:
  struct NaiveFlow {
    int weight = 1;
    std::size_t limit = 0;
    Duration vt{0}, tau{0};
    bool known = false, was_runnable = false;
    std::deque<InvocationId> queue;
    std::map<InvocationId, Duration> running;
    bool runnable() const { return !queue.empty() && running.size() < limit; }
  };

  explicit NaiveMqfq(Duration over_run) : over_run_(over_run) {}

  // Call after every change of a flow.
  void update() {
    for (auto& [id, f] : flows) {
      if (f.runnable() && !f.was_runnable) f.vt = std::max(f.vt, global);
      f.was_runnable = f.runnable();
    }
    std::optional<Duration> least;
    for (auto& [id, f] : flows) {
      if (f.runnable() && (!least || f.vt < *least)) least = f.vt;
    }
    if (least) global = std::max(global, *least);
  }

  std::optional<FlowQueue::Choice> choose(const Placeable& placeable) {
    using Order = std::tuple<std::size_t, std::ptrdiff_t, Duration, FlowId>;
    std::optional<Order> best;
    for (auto& [id, f] : flows) {
      if (!f.runnable() || f.vt - global > over_run_ || !placeable.can_run(id)) continue;
      const Order order{f.running.size(), -std::ssize(f.queue), f.vt, id};
      if (!best || order < *best) best = order;
    }
    if (!best) return std::nullopt;
    NaiveFlow& f = flows[std::get<FlowId>(*best)];
    const Duration charge = (f.known ? f.tau : std::max(over_run_ / 10, Duration(milliseconds(1)))) / f.weight;
    const InvocationId invocation = f.queue.front();
    f.queue.pop_front();
    f.running[invocation] = charge;
    f.vt += charge;
    update();
    return FlowQueue::Choice{std::get<FlowId>(*best), invocation};
  }

  void end(FlowId flow, InvocationId invocation, Duration service, bool measured) {
    NaiveFlow& f = flows[flow];
    f.vt += service / f.weight - f.running[invocation];
    f.running.erase(invocation);
    if (measured) f.tau = f.known ? f.tau + (service - f.tau) / 10 : service;
    f.known |= measured;
    update();
  }

  std::map<FlowId, NaiveFlow> flows;
  Duration global{0};

 private:
  const Duration over_run_;
};

// Both driven by the same random events.
class Pair {
 public:
  Pair(std::uint64_t seed, Duration over_run, std::size_t flows)
      : rng_(seed), naive_(over_run), policy_(mqfq_sticky_policy, PolicyOptions().set(kOverRun, over_run)) {
    for (std::size_t i = 1; i <= flows; ++i) {
      NaiveMqfq::NaiveFlow& flow = naive_.flows[FlowId(i)];
      flow.weight = 1 << rng_.below(3);
      flow.limit = rng_.below(4) == 0 ? 1 : 1000;
      policy_.add_flow(FlowId(i), {.weight = static_cast<double>(flow.weight)});
      policy_.set_max_concurrency(FlowId(i), flow.limit);
    }
  }

  void random_event() {
    const FlowId flow(rng_.below(naive_.flows.size()) + 1);
    const std::uint64_t event = rng_.below(20);
    if (event < 8) return arrive(flow);
    if (event < 9) return cancel(flow);
    if (event < 10) return block(flow);
    if (event < 15) return choose();
    end_one(event);
  }

  void check() const {
    RC_ASSERT(policy_.global_virtual_time() == naive_.global);
    std::size_t queued = 0;
    for (const auto& [id, f] : naive_.flows) {
      queued += f.queue.size();
      const FlowView view = policy_.view(id);
      RC_ASSERT(view.virtual_time == f.vt);
      RC_ASSERT(view.queued == f.queue.size());
      RC_ASSERT(view.in_flight == f.running.size());
    }
    RC_ASSERT(policy_.queued() == queued);
  }

 private:
  void arrive(FlowId flow) {
    const InvocationId invocation(next_++);
    policy_.on_arrival(Instant{}, flow, invocation);
    naive_.flows[flow].queue.push_back(invocation);
    naive_.update();
  }

  void cancel(FlowId flow) {
    auto& queue = naive_.flows[flow].queue;
    if (queue.empty()) return;
    const std::size_t index = rng_.below(queue.size());
    RC_ASSERT(policy_.cancel(Instant{}, flow, queue[index]));
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
    naive_.update();
  }

  void block(FlowId flow) {
    if (placeable_.short_of_memory.erase(flow) == 0) placeable_.short_of_memory.insert(flow);
  }

  void choose() {
    const auto expected = naive_.choose(placeable_);
    const auto chosen = policy_.choose(Instant{}, placeable_);
    RC_ASSERT(expected.has_value() == chosen.has_value());
    if (!chosen) return;
    RC_ASSERT(chosen->flow == expected->flow);
    RC_ASSERT(chosen->invocation == expected->invocation);
    running_.push_back(*chosen);
  }

  void end_one(std::uint64_t event) {
    if (running_.empty()) return;
    const std::size_t index = rng_.below(running_.size());
    const auto [flow, invocation, gpu] = running_[index];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    const Duration time = milliseconds(4 * rng_.below(2000));
    if (event == 15) {
      policy_.on_failed_start(Instant{}, flow, invocation, time);
      naive_.end(flow, invocation, time, false);
    } else if (event == 16) {
      policy_.on_requeue(Instant{}, flow, invocation);
      naive_.flows[flow].queue.push_front(invocation);
      naive_.end(flow, invocation, Duration(0), false);
    } else {
      policy_.on_completion(Instant{}, flow, invocation, time);
      naive_.end(flow, invocation, time, true);
    }
  }

  Rng rng_;
  NaiveMqfq naive_;
  FlowQueue policy_;
  testing::FakePlaceable placeable_;
  std::vector<FlowQueue::Choice> running_;
  std::uint64_t next_ = 1;
};

TEST(MqfqProperty, AgreesWithTheNaiveAlgorithm) {
  EXPECT_TRUE(rc::check("same choices, virtual times and Global_VT", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto over_run_ms = *rc::gen::inRange(0, 5000);
    const auto flows = *rc::gen::inRange<std::size_t>(1, 12);
    Pair pair(seed, milliseconds(over_run_ms), flows);
    for (int i = 0; i < 400; ++i) {
      pair.random_event();
      pair.check();
    }
  }));
}

}  // namespace
}  // namespace fairlead
