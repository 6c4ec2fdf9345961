// How long the head of a flow can wait, under random workloads: never longer than docs/explanation/fairness.md derives, however
// long others take to start. The letters are that page's. One GPU; D slots; N flows; T; c the longest cold start.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "base/rng.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;

struct Function {
  Duration most{0};  // a run takes a tenth of it to all of it
  Duration cold_start{0};
  double weight = 1;
  bool is_warm = false;  // starts at once, before anything is measured
};

struct Setting {
  std::string_view policy = "mqfq-setup";
  Duration over_run = 10s;
  std::size_t slots = 1, starts = 1, pool = 64;
  std::vector<Function> functions;
};

class Model final : public InstanceModel {
 public:
  Model(const Setting& setting, std::uint64_t seed) : setting_(setting), rng_(seed) {}

  Start start(const StartInstance& a) override { return {.after = measuring ? of(a.flow).cold_start : Duration(0)}; }
  void run(FlowId flow, InvocationId, Run& run) override {
    const auto most = static_cast<std::uint64_t>(of(flow).most.count());
    run.after = Duration(most / 10 + rng_.below(most - most / 10 + 1));
  }

  bool measuring = false;

 private:
  const Function& of(FlowId flow) const { return setting_.functions[flow.value() - 1]; }
  const Setting& setting_;
  Rng rng_;
};

// Sends, and measures for each flow how long the head of its queue waited at most.
class Waiting {
 public:
  Waiting(const Setting& setting, std::uint64_t seed)
      : setting_(setting),
        model_(setting_, seed),
        node_(clock_,
              make_core({.slots_per_gpu = setting.slots,
                         .instances_per_gpu = setting.pool,
                         .queue_limit = 1'000'000,
                         .queue_limit_per_flow = 1'000'000,
                         .start_deadline = 24h,
                         .starts_per_gpu = setting.starts,
                         .no_cold_duplicates = true},
                        setting.policy, PolicyOptions().set(kOverRun, setting.over_run)),
              model_),
        longest_(setting.functions.size() + 1) {
    node_.core().add_gpu({.gpu = GpuId(1)});
    for (std::uint64_t i = 1; i <= setting_.functions.size(); ++i) {
      node_.core().add_function({.flow = FlowId(i), .weight = setting_.functions[i - 1].weight, .timeout = 24h});
    }
    warm_up();
    node_.observe([this](const Action& action) { on(action); });
    model_.measuring = true;
  }

  void send_at(Duration at, std::uint64_t flow, std::uint64_t count) {
    node_.schedule(node_.now() + at, [this, flow, count] {
      for (std::uint64_t i = 0; i < count; ++i) {
        queues_[flow].push_back(node_.now());
        FL_CHECK(node_.arrive(FlowId(flow)).has_value());
      }
    });
  }

  void run() {
    while (clock_.step()) {
      RC_ASSERT(node_.core().counters().idle_slots[static_cast<std::size_t>(IdleReason::kUnnamed)] == 0s);
    }
  }

  double longest_s(std::uint64_t flow) const { return to_seconds(longest_[flow]); }

 private:
  void warm_up() {
    for (std::uint64_t i = 1; i <= setting_.functions.size(); ++i) {
      if (setting_.functions[i - 1].is_warm) FL_CHECK(node_.arrive(FlowId(i)).has_value());
    }
    clock_.run();
  }

  // A head is dispatched; the next becomes the head, or became so when it arrived.
  void on(const Action& action) {
    const auto* done = std::get_if<Complete>(&action);
    const auto* deliver = std::get_if<Deliver>(&action);
    if (done != nullptr) RC_ASSERT(done->outcome == OutcomeKind::kSuccess);
    if (deliver == nullptr) return;
    for (const InstanceView& instance : node_.core().instances()) {
      if (instance.instance == deliver->instance) dispatched(instance.flow.value());
    }
  }

  void dispatched(std::uint64_t flow) {
    const Instant since = std::max(queues_[flow].front(), head_since_[flow]);
    queues_[flow].pop_front();
    longest_[flow] = std::max(longest_[flow], node_.now() - since);
    head_since_[flow] = node_.now();
  }

  const Setting setting_;
  Model model_;
  VirtualClock clock_;
  VirtualNode node_;
  std::map<std::uint64_t, std::deque<Instant>> queues_;  // arrivals of what waits
  std::map<std::uint64_t, Instant> head_since_;
  std::vector<Duration> longest_;
};

// What one flow may be ahead by before a correction: D runs at once, each charged too little.
double step(const Setting& setting, const Function& f) {
  const double charge = std::max(to_seconds(setting.over_run) / 10, 0.001);
  return static_cast<double>(setting.slots) * std::max(to_seconds(f.most), charge) / f.weight;
}

// While flow j is throttled (A), and while it waits within the window (B), with an instance all along.
double waits_throttled(const Setting& setting, std::size_t j) {
  double service = 0, longest = 0;
  for (std::size_t i = 0; i < setting.functions.size(); ++i) {
    const Function& f = setting.functions[i];
    longest = std::max(longest, to_seconds(f.most));
    if (i == j) continue;
    service += f.weight * (to_seconds(setting.over_run) + step(setting, f) + step(setting, setting.functions[j]));
  }
  return service / static_cast<double>(setting.slots) + longest;
}

double waits_in_window(const Setting& setting, std::size_t j) {
  double service = 0, longest = 0;
  for (std::size_t i = 0; i < setting.functions.size(); ++i) {
    const Function& f = setting.functions[i];
    longest = std::max(longest, to_seconds(f.most));
    if (i != j) service += f.weight * (2 * to_seconds(setting.over_run) + step(setting, f));
  }
  return service / static_cast<double>(setting.slots) + longest;
}

double warm_bound(const Setting& setting, std::size_t j) {
  return waits_throttled(setting, j) + waits_in_window(setting, j);
}

double bound(const Setting& setting, std::size_t j) {
  double longest_start = 0;
  for (const Function& f : setting.functions) longest_start = std::max(longest_start, to_seconds(f.cold_start));
  const bool all_have_a_place = setting.pool >= setting.functions.size() + setting.slots + setting.starts;
  const double place = all_have_a_place ? 0 : waits_in_window(setting, j);
  const std::size_t at_once = all_have_a_place ? setting.starts : std::min(setting.starts, setting.slots);
  const double turns = std::ceil(static_cast<double>(setting.functions.size() - 1) / static_cast<double>(at_once)) + 2;
  const double start = waits_throttled(setting, j) + to_seconds(setting.over_run) + turns * (longest_start + place);
  return (all_have_a_place ? 1 : 2) * (start + warm_bound(setting, j));
}

Setting random_setting(Rng& rng, std::string_view policy) {
  Setting setting;
  setting.policy = policy;
  setting.over_run = std::chrono::milliseconds(rng.below(4) == 0 ? 0 : rng.below(10'000));
  setting.slots = 1 + rng.below(4);
  setting.starts = 1 + rng.below(4);
  const std::uint64_t functions = 2 + rng.below(8);
  for (std::uint64_t i = 0; i < functions; ++i) {
    const std::uint64_t most_ms = rng.below(3) == 0 ? 5000 : 200;
    setting.functions.push_back({.most = std::chrono::milliseconds(10 + rng.below(most_ms)),
                                 .cold_start = std::chrono::milliseconds(rng.below(rng.below(3) == 0 ? 300'000 : 4000)),
                                 .weight = 0.5 * static_cast<double>(1 << rng.below(4)),
                                 .is_warm = rng.below(2) == 0});
  }
  return setting;
}

void send_bursts(Waiting& run, const Setting& setting, Rng& rng) {
  for (std::uint64_t i = 1; i <= setting.functions.size(); ++i) {
    Duration at{0};
    for (int burst = 0; burst < 6; ++burst) {
      at += std::chrono::milliseconds(rng.below(3) == 0 ? 0 : rng.below(100'000));
      const Duration work = std::chrono::milliseconds(rng.below(30'000));
      const auto count = static_cast<std::uint64_t>(work / setting.functions[i - 1].most);
      run.send_at(at, i, std::min<std::uint64_t>(200, 1 + count));
    }
  }
}

void check_waiting(std::string_view policy) {
  double worst_warm = 0, worst = 0;
  EXPECT_TRUE(rc::check("no head waits beyond its bound", [&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    Setting setting = random_setting(rng, policy);
    if (rng.below(2) == 0) setting.pool = setting.slots + setting.starts + rng.below(3);
    const bool keeps_warm = setting.pool >= setting.functions.size() + setting.slots + setting.starts;
    Waiting run(setting, rng.next());
    send_bursts(run, setting, rng);
    run.run();
    for (std::size_t j = 0; j < setting.functions.size(); ++j) {
      const bool is_warm = keeps_warm && setting.functions[j].is_warm;
      const double share = run.longest_s(j + 1) / (is_warm ? warm_bound(setting, j) : bound(setting, j));
      (is_warm ? worst_warm : worst) = std::max(is_warm ? worst_warm : worst, share);
      RC_ASSERT(share <= 1.0);
    }
  }));
  EXPECT_GT(worst_warm, 0.2) << "the bound is not idle";
  EXPECT_GT(worst, 0.1);
}

TEST(Waiting, NoHeadWaitsBeyondItsBoundUnderTheDefault) {
  check_waiting("mqfq-setup");
}
TEST(Waiting, NoHeadWaitsBeyondItsBoundUnderMqfqSticky) {
  check_waiting("mqfq-sticky");
}
TEST(Waiting, NoHeadWaitsBeyondItsBoundUnderMqfqWarm) {
  check_waiting("mqfq-warm");
}

}  // namespace
}  // namespace fairlead::sim
