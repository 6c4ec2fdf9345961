// The service gap of MQFQ-Sticky under random workloads stays within what docs/explanation/fairness.md derives; and the same
// measurement finds a bound broken where it should be. D counts the slots of all GPUs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"
#include "sim/fairness_meter.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;

constexpr double kLeastWeight = 0.5;

struct FunctionUnderTest {
  Duration service;
  Duration cold_start{0};
  double weight = 1.0;
  bool starts = true;                               // false: exits after `cold_start`
  std::optional<Duration> gpu_time = std::nullopt;  // as measured; empty: not measured
  Bytes memory{0};
  int width = 100;                // per cent of the SMs
  std::vector<GpuId> seats = {};  // with a request: not in the contest for slots
  int request = 0;
  std::optional<std::size_t> most_instances = std::nullopt;

  bool is_best_effort() const { return seats.empty(); }
  // GPU time counts times the width.
  double weight_of_time() const { return weight * 100 / width; }
};

// Each function takes its own time: constant, or from a tenth of that to all of it.
class SteadyModel final : public InstanceModel {
 public:
  explicit SteadyModel(const std::vector<FunctionUnderTest>& functions, bool varies = false)
      : functions_(functions), varies_(varies) {}
  Start start(const StartInstance& a) override {
    return {.end = of(a.flow).starts ? StartEnd::kReady : StartEnd::kExits, .after = of(a.flow).cold_start};
  }
  void run(FlowId flow, InvocationId, Run& run) override {
    const Duration most = of(flow).service;
    const auto tenths = static_cast<Duration::rep>(varies_ ? 1 + rng_.below(10) : 10);
    run.after = most * tenths / 10;
    run.gpu_time = of(flow).gpu_time;
  }

 private:
  const FunctionUnderTest& of(FlowId flow) const { return functions_[flow.value() - 1]; }
  const std::vector<FunctionUnderTest>& functions_;
  const bool varies_;
  Rng rng_{1};
};

struct Setting {
  std::string_view policy = "mqfq-sticky";
  Duration over_run = 10s;
  std::size_t slots_per_gpu = 1;
  std::uint64_t gpus = 1;
  std::size_t starts_per_gpu = 0;
  bool varies = false;
  std::vector<FunctionUnderTest> functions;  // flows 1, 2, ...
};

class Experiment {
 public:
  explicit Experiment(const Setting& setting)
      : setting_(setting),
        model_(setting_.functions, setting.varies),
        node_(clock_,
              make_core({.slots_per_gpu = setting.slots_per_gpu,
                         .queue_limit = 1'000'000,
                         .queue_limit_per_flow = 1'000'000,
                         .starts_per_gpu = setting.starts_per_gpu},
                        setting.policy, PolicyOptions().set(kOverRun, setting.over_run)),
              model_),
        meter_(node_.core(), weights_of(setting)) {
    for (std::uint64_t i = 1; i <= setting.gpus; ++i) node_.core().add_gpu({.gpu = GpuId(i)});
    for (std::uint64_t i = 1; i <= setting.functions.size(); ++i) {
      const FunctionUnderTest& f = setting.functions[i - 1];
      node_.core().add_function({.flow = FlowId(i),
                                 .weight = f.weight,
                                 .seats = f.seats,
                                 .most_instances = f.most_instances,
                                 .request_percent = f.request,
                                 .width_percent = f.width});
    }
    node_.observe([this](const Action& action) { meter_.on_action(node_.now(), action); });
  }

  // One invocation of each function, so that its service time is known. Not measured.
  void learn() {
    for (std::uint64_t i = 1; i <= setting_.functions.size(); ++i) send_at(Duration(0), FlowId(i), 1);
    clock_.run();
  }

  // `at` counts from now.
  void send_at(Duration at, FlowId flow, std::uint64_t count) {
    node_.schedule(node_.now() + at, [this, flow, count] {
      for (std::uint64_t i = 0; i < count; ++i) {
        meter_.on_arrival(InvocationId(next_invocation_++), flow);
        FL_CHECK(node_.arrive(flow).has_value());
      }
    });
  }

  // Takes a GPU out, and gives it back.
  void drain_at(Duration at, GpuId gpu, Duration lasts) {
    const auto apply = [this](auto call) { node_.apply([&](Actions& out) { call(node_.core(), out); }); };
    node_.schedule(node_.now() + at,
                   [=, this] { apply([&](Core& core, Actions& out) { core.drain_gpu(node_.now(), gpu, out); }); });
    node_.schedule(node_.now() + at + lasts,
                   [=, this] { apply([&](Core& core, Actions& out) { core.restore_gpu(node_.now(), gpu, out); }); });
  }

  void finish() {
    while (clock_.step()) meter_.sample(node_.now());
  }

  // The largest gap of any pair that contends for slots, as a share of that pair's bound.
  double worst_share_of(double (*bound_s)(double slots, double over_run, double tau_i, double tau_j)) const {
    const double slots = static_cast<double>(setting_.slots_per_gpu * setting_.gpus);
    double worst = 0;
    for (std::size_t i = 0; i < setting_.functions.size(); ++i) {
      for (std::size_t j = i + 1; j < setting_.functions.size(); ++j) {
        if (!setting_.functions[i].is_best_effort() || !setting_.functions[j].is_best_effort()) continue;
        const double bound = bound_s(slots, to_seconds(setting_.over_run), normalised(i), normalised(j));
        worst = std::max(worst, to_seconds(meter_.gap(FlowId(i + 1), FlowId(j + 1))) / bound);
      }
    }
    return worst;
  }

  Duration gap(std::uint64_t i, std::uint64_t j) const { return meter_.gap(FlowId(i), FlowId(j)); }

 private:
  static std::vector<double> weights_of(const Setting& setting) {
    std::vector<double> weights;
    for (const FunctionUnderTest& f : setting.functions) weights.push_back(f.weight_of_time());
    return weights;
  }

  double normalised(std::size_t i) const {
    return to_seconds(setting_.functions[i].service) / setting_.functions[i].weight_of_time();
  }

  const Setting setting_;
  SteadyModel model_;
  VirtualClock clock_;
  VirtualNode node_;
  FairnessMeter meter_;
  std::uint64_t next_invocation_ = 1;
};

double bound(double slots, double over_run, double tau_i, double tau_j) {
  return 2 * over_run + (slots + 1) * (tau_i + tau_j);
}

// While tau is unknown, an invocation is charged the first charge (T / 10, at least 1 ms) instead.
double bound_while_learning(double slots, double over_run, double tau_i, double tau_j) {
  const double first_charge = std::max(over_run / 10, 0.001) / kLeastWeight;
  return 2 * over_run + (4 * slots + 1) * (std::max(tau_i, first_charge) + std::max(tau_j, first_charge));
}

Setting random_setting(Rng& rng) {
  Setting setting;
  constexpr std::string_view kPolicies[] = {"mqfq-sticky", "mqfq-setup", "mqfq-warm"};
  setting.policy = kPolicies[rng.below(3)];
  setting.over_run = std::chrono::milliseconds(rng.below(4) == 0 ? 0 : rng.below(10'000));
  setting.slots_per_gpu = 1 + rng.below(4);
  setting.gpus = 1 + rng.below(2);
  setting.starts_per_gpu = rng.below(4);
  const std::uint64_t functions = 2 + rng.below(5);
  for (std::uint64_t i = 0; i < functions; ++i) {
    setting.functions.push_back({.service = std::chrono::milliseconds(1 + rng.below(rng.below(2) == 0 ? 200 : 5000)),
                                 .cold_start = std::chrono::milliseconds(rng.below(4000)),
                                 .weight = kLeastWeight * static_cast<double>(1 << rng.below(4))});
  }
  return setting;
}

// Bursts of 1 to 60 seconds of work each, some flows at once, some late.
void send_bursts(Experiment& run, const Setting& setting, Rng& rng) {
  for (std::uint64_t i = 1; i <= setting.functions.size(); ++i) {
    Duration at{0};
    for (int burst = 0; burst < 4; ++burst) {
      at += std::chrono::milliseconds(rng.below(3) == 0 ? 0 : rng.below(40'000));
      const Duration work = std::chrono::milliseconds(1000 + rng.below(60'000));
      run.send_at(
          at, FlowId(i),
          std::min<std::uint64_t>(200, 1 + static_cast<std::uint64_t>(work / setting.functions[i - 1].service)));
    }
  }
}

TEST(Fairness, GapStaysWithinTheBound) {
  double worst = 0;
  EXPECT_TRUE(rc::check("gap <= 2T + (D+1)(tau_i/w_i + tau_j/w_j)", [&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Setting setting = random_setting(rng);
    Experiment run(setting);
    run.learn();
    send_bursts(run, setting, rng);
    run.finish();
    const double share = run.worst_share_of(bound);
    worst = std::max(worst, share);
    RC_ASSERT(share <= 1.0);
  }));
  EXPECT_GT(worst, 0.7) << "a bound 30 % smaller would have failed: the measurement is not blind";
}

TEST(Fairness, GapIsBoundedWhileServiceTimesAreLearnedAndVaryAndGpusAreDrained) {
  EXPECT_TRUE(rc::check("gap <= 2T + (4D+1)(max(tau_i, c)/w_i + max(tau_j, c)/w_j)", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    Setting setting = random_setting(rng);
    setting.varies = rng.below(2) == 0;
    Experiment run(setting);
    send_bursts(run, setting, rng);
    for (int i = 0; i < 3 && setting.gpus > 1; ++i) {
      run.drain_at(std::chrono::milliseconds(rng.below(100'000)), GpuId(1 + rng.below(setting.gpus)),
                   std::chrono::milliseconds(1 + rng.below(20'000)));
    }
    run.finish();
    RC_ASSERT(run.worst_share_of(bound_while_learning) <= 1.0);
  }));
}

// Some functions take part of the SMs. Others have seats, at times on a GPU that is not there, and more instances than seats; they
// are flooded and take no slot. (One that cannot start is tried for ever, and no run of it would end.)
Setting with_shares(Setting setting, Rng& rng) {
  for (FunctionUnderTest& f : setting.functions)
    f.width = rng.below(2) == 0 ? 100 : static_cast<int>(1 + rng.below(100));
  for (std::uint64_t more = 1 + rng.below(3); more > 0; --more) {
    FunctionUnderTest seated{.service = std::chrono::milliseconds(1 + rng.below(3000)),
                             .cold_start = std::chrono::milliseconds(rng.below(4000)),
                             .width = static_cast<int>(1 + rng.below(100)),
                             .request = static_cast<int>(1 + rng.below(100))};
    for (std::uint64_t i = 1 + rng.below(3); i > 0; --i) seated.seats.emplace_back(1 + rng.below(setting.gpus + 1));
    if (rng.below(2) == 0) seated.most_instances = seated.seats.size() + rng.below(2);
    setting.functions.push_back(seated);
  }
  return setting;
}

TEST(Fairness, GapStaysWithinTheBoundForAnyWidthsAndBesideSeats) {
  double worst = 0;
  EXPECT_TRUE(rc::check("service x width: gap <= 2T + (D+1)(t_i + t_j)", [&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Setting setting = with_shares(random_setting(rng), rng);
    Experiment run(setting);
    run.learn();
    send_bursts(run, setting, rng);
    run.finish();
    worst = std::max(worst, run.worst_share_of(bound));
    RC_ASSERT(run.worst_share_of(bound) <= 1.0);
  }));
  EXPECT_GT(worst, 0.5) << "the measurement is not blind";
}

TEST(Fairness, GapIsBoundedBesideSeatsWhileTimesVaryAndGpusAreDrained) {
  EXPECT_TRUE(rc::check("service x width: gap <= 2T + (4D+1)(m_i + m_j)", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    Setting setting = with_shares(random_setting(rng), rng);
    for (FunctionUnderTest& f : setting.functions) f.width = 100;  // the first charge is of the whole device
    setting.varies = rng.below(2) == 0;
    Experiment run(setting);
    send_bursts(run, setting, rng);
    for (int i = 0; i < 3 && setting.gpus > 1; ++i) {
      run.drain_at(std::chrono::milliseconds(rng.below(100'000)), GpuId(1 + rng.below(setting.gpus)),
                   std::chrono::milliseconds(1 + rng.below(20'000)));
    }
    run.finish();
    RC_ASSERT(run.worst_share_of(bound_while_learning) <= 1.0);
  }));
}

// ---- seats: what waits there waits for its own function alone

TEST(Seats, AnInvocationWaitsForNothingButItsOwnInstances) {
  EXPECT_TRUE(rc::check("wait <= ceil(queue / seats) of its own service times", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    Setting setting = random_setting(rng);
    const std::uint64_t seats = 1 + rng.below(3);
    FunctionUnderTest seated{.service = std::chrono::milliseconds(1 + rng.below(2000)), .request = 34};
    seated.seats.assign(seats, GpuId(1 + rng.below(setting.gpus)));
    seated.most_instances = seats;
    setting.functions.push_back(seated);
    SteadyModel model(setting.functions);
    VirtualClock clock;
    VirtualNode node(clock,
                     make_core({.slots_per_gpu = setting.slots_per_gpu,
                                .queue_limit_per_flow = 5000,
                                .starts_per_gpu = setting.starts_per_gpu},
                               setting.policy, PolicyOptions().set(kOverRun, setting.over_run)),
                     model);
    for (std::uint64_t i = 1; i <= setting.gpus; ++i) node.core().add_gpu({.gpu = GpuId(i)});
    const FlowId last(setting.functions.size());
    for (std::uint64_t i = 1; i <= last.value(); ++i) {
      const FunctionUnderTest& f = setting.functions[i - 1];
      node.core().add_function(
          {.flow = FlowId(i), .seats = f.seats, .most_instances = f.most_instances, .request_percent = f.request});
    }
    node.apply([&](Actions& out) { node.core().wake(node.now(), out); });
    for (std::uint64_t i = 0; i < 100 * (last.value() - 1); ++i) {  // a flood of all others
      FL_CHECK(node.arrive(FlowId(1 + i % (last.value() - 1))).has_value());
    }
    clock.run_until(Instant(10s));
    Duration longest{0};
    node.observe([&](const Action& action) {
      const auto* done = std::get_if<Complete>(&action);
      if (done != nullptr && done->flow == last) longest = std::max(longest, done->queue_time + done->start_time);
    });
    const std::uint64_t calls = 1 + rng.below(12);
    for (std::uint64_t i = 0; i < calls; ++i) FL_CHECK(node.arrive(last).has_value());
    clock.run();
    RC_ASSERT(longest <= seated.service * static_cast<Duration::rep>((calls - 1) / seats));
  }));
}

Setting two_flows(std::string_view policy) {
  return {.policy = policy, .over_run = 10s, .functions = {{.service = 4s}, {.service = 3s}}};
}

// Equation 1 of the paper, (D-1)(2T + tau_i/w_i - tau_j/w_j), is 0 at D = 1.
TEST(Fairness, EquationOneOfThePaperDoesNotHoldForOneSlot) {
  Experiment run(two_flows("mqfq-sticky"));
  run.send_at(0s, FlowId(1), 40);
  run.send_at(0s, FlowId(2), 20);
  run.finish();
  EXPECT_GT(run.gap(1, 2), 10s);
  EXPECT_LE(run.worst_share_of(bound), 1.0);
}

TEST(Fairness, FcfsBreaksTheBound) {
  Experiment run(two_flows("fcfs"));
  run.send_at(0s, FlowId(1), 40);
  run.send_at(1s, FlowId(2), 20);
  run.finish();
  EXPECT_GT(run.worst_share_of(bound), 1.0);
}

// ---- no starvation: one invocation of the last function, after a minute of a flood of all others

Duration wait_in_flood(const Setting& setting, std::uint64_t flood) {
  SteadyModel model(setting.functions);
  VirtualClock clock;
  VirtualNode node(clock,
                   make_core({.slots_per_gpu = setting.slots_per_gpu,
                              .queue_limit_per_flow = 5000,
                              .starts_per_gpu = setting.starts_per_gpu},
                             setting.policy, PolicyOptions().set(kOverRun, setting.over_run)),
                   model);
  node.core().add_gpu({.gpu = GpuId(1), .memory = gib(16)});
  for (std::uint64_t i = 1; i <= setting.functions.size(); ++i) {
    node.core().add_function({.flow = FlowId(i), .expected_memory = setting.functions[i - 1].memory});
  }
  const FlowId last(setting.functions.size());
  for (std::uint64_t i = 0; i < flood * (last.value() - 1); ++i) {
    FL_CHECK(node.arrive(FlowId(1 + i % (last.value() - 1))).has_value());
  }
  clock.run_until(Instant(60s));
  Duration waited{-1};
  node.observe([&](const Action& action) {
    const auto* done = std::get_if<Complete>(&action);
    if (done != nullptr && done->flow == last) waited = done->queue_time;
  });
  FL_CHECK(node.arrive(last).has_value());
  clock.run();
  return waited;
}

TEST(Starvation, WaitDoesNotGrowWithTheFlood) {
  const Setting setting{.functions = {{.service = 4s}, {.service = 3s}}};
  const Duration in_a_small_flood = wait_in_flood(setting, 100);
  EXPECT_GT(in_a_small_flood, 0s);
  EXPECT_LE(in_a_small_flood, 10s + 4s + 4s) << "the window T, what runs, and one that straddles the window's end";
  EXPECT_EQ(wait_in_flood(setting, 4000), in_a_small_flood);
}

TEST(Starvation, FcfsWaitsForTheWholeFlood) {
  const Setting setting{.policy = "fcfs", .functions = {{.service = 4s}, {.service = 3s}}};
  EXPECT_GT(wait_in_flood(setting, 100), 300s);
}

TEST(Starvation, FunctionThatNeverStartsDoesNotKeepOthersOut) {
  const Setting setting{.functions = {{.service = 1s, .cold_start = 500ms, .starts = false}, {.service = 1s}}};
  const Duration waited = wait_in_flood(setting, 4000);
  EXPECT_GE(waited, 0s);
  EXPECT_LE(waited, 10s + 3 * 500ms) << "the window T, and three failing starts";
}

TEST(Starvation, FunctionThatNeverStartsDoesNotTakeAllStarts) {
  const Setting setting{.starts_per_gpu = 1,
                        .functions = {{.service = 1s, .cold_start = 500ms, .starts = false},
                                      {.service = 1s, .cold_start = 500ms, .starts = false},
                                      {.service = 1s, .cold_start = 500ms}}};
  const Duration waited = wait_in_flood(setting, 4000);
  EXPECT_GE(waited, 0s);
  EXPECT_LE(waited, 2 * 10s + 4 * 500ms) << "both are charged their failed starts up to the end of the window";
}

TEST(Starvation, FunctionThatHardlyUsesTheGpuDoesNotKeepOthersOut) {
  const Setting setting{.functions = {{.service = 1s, .gpu_time = Duration(0)}, {.service = 1s}}};
  const Duration waited = wait_in_flood(setting, 4000);
  EXPECT_GE(waited, 0s);
  EXPECT_LE(waited, 10 * 10s + 2s) << "it is charged a tenth of its wall time";
}

// Two small functions together never leave 16 GiB free. Where starts hold their slot, the large one holds Global_VT, so the
// others reach the end of the window, are throttled, and the GPU empties for it. Where instances start ahead, it claims the
// memory after 8 T, and nobody else is let in.
TEST(Starvation, FunctionThatNeedsTheWholeGpuGetsIt) {
  for (const std::size_t starts : {0, 4}) {
    const Setting setting{.slots_per_gpu = 2,
                          .starts_per_gpu = starts,
                          .functions = {{.service = 1s, .memory = gib(8)},
                                        {.service = 700ms, .memory = gib(4)},
                                        {.service = 1s, .memory = gib(16)}}};
    const Duration waited = wait_in_flood(setting, 1000);
    EXPECT_GT(waited, 5s) << starts;
    EXPECT_LE(waited, (starts == 0 ? 2 : 12) * 10s + 2s) << starts;
  }
}

}  // namespace
}  // namespace fairlead::sim
