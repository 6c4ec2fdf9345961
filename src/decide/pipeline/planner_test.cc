// Planners: the spec's counterexample, exact against brute force, what is subject to memory and objective, replicas, the bound.
#include "decide/pipeline/planner.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "base/rng.h"
#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

std::vector<SliceType> three_types() {
  return {{"1g", 1, gib(10), ""}, {"2g", 2, gib(20), ""}, {"4g", 4, gib(40), ""}};
}

const Planner& named(std::string_view name) {
  return **planner_named(name);
}

// Sublinear in the slice, memory from 2 to 20 GiB, a chain or with two branches side by side.
Dag random_dag(Rng& rng, std::size_t count) {
  Dag dag = dag_of_nothing();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string before = i == 0 ? "input" : "c" + std::to_string(i - 1);
    const double alone = 40 + 160 * rng.uniform(), fixed = 0.1 + 0.3 * rng.uniform();
    const auto on = [&](double slices) { return static_cast<int>(alone * (fixed + (1 - fixed) / slices)); };
    dag.components.push_back(component(dag, "c" + std::to_string(i), {before.c_str()}, {on(1), on(2), on(4)},
                                       mib(2048 + static_cast<std::int64_t>(rng.below(16384)))));
  }
  end_with(dag, "c" + std::to_string(count - 1));
  return dag;
}

TEST(Planner, TheSpecsCounterexample) {
  const PipelineModel model(three_in_a_row(), three_types(), paper_hop(20ms));
  const PlanRequest request{.free = {1, 1, 1}};
  const auto cv = named("cv").one(model, request);
  ASSERT_TRUE(cv);
  EXPECT_EQ(model.partitions()[cv->partition].text(model.dag()), "[a] [b] [c]");
  EXPECT_NEAR(cv->rate_per_s, 8.33, 0.01);
  EXPECT_EQ(cv->latency, 242ms);
  EXPECT_EQ(cv->compute, 7);
  for (const auto* name : {"exact", "need"}) {
    const auto better = named(name).one(model, request);
    ASSERT_TRUE(better);
    EXPECT_EQ(model.partitions()[better->partition].text(model.dag()), "[a, b] [c]");
    EXPECT_NEAR(better->rate_per_s, 15.38, 0.01);
    EXPECT_EQ(better->latency, 137ms);
    EXPECT_EQ(better->compute, 6);
  }
}

// The best rate of all ways to give stages slices, by trying every one.
double brute_one(const PipelineModel& model, const PlanRequest& request) {
  double best = 0;
  for (std::size_t p = 0; p < model.partitions().size(); ++p) {
    const auto& stages = model.partitions()[p].stages;
    std::vector<std::vector<std::size_t>> slices(stages.size());
    std::vector<int> free = request.free;
    const std::function<void(std::size_t)> choose = [&](std::size_t stage) {
      if (stage == stages.size()) {
        const PipelinePlan plan = evaluate(model, p, slices);
        if (request.objective == 0ns || plan.latency <= request.objective) best = std::max(best, plan.rate_per_s);
        return;
      }
      for (std::size_t type = 0; type < free.size(); ++type) {
        if (free[type] == 0 || !stages[stage].fits(type)) continue;
        --free[type];
        slices[stage] = {type};
        choose(stage + 1);
        ++free[type];
      }
    };
    choose(0);
  }
  return best;
}

double brute_fill(const PipelineModel& model, const std::vector<PipelinePlan>& all, std::vector<int> free) {
  double best = 0;
  for (const PipelinePlan& one : all) {
    std::vector<int> left = free;
    bool fits = true;
    for (std::size_t type = 0; type < free.size(); ++type) fits = fits && (left[type] -= one.uses[type]) >= 0;
    if (fits) best = std::max(best, one.rate_per_s + brute_fill(model, all, left));
  }
  return best;
}

TEST(Planner, ExactIsWhatTryingEverythingFinds) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    const PipelineModel model(random_dag(rng, 2 + rng.below(3)), three_types());
    PlanRequest request{
        .free = {static_cast<int>(rng.below(3)), static_cast<int>(rng.below(3)), static_cast<int>(rng.below(3))}};
    if (round % 2 == 0) request.objective = Duration(1ms) * static_cast<int>(100 + rng.below(400));
    const auto found = named("exact").one(model, request);
    EXPECT_NEAR(found ? found->rate_per_s : 0, brute_one(model, request), 1e-9) << round;
    const double filled = named("exact").fill(model, request).rate_per_s;
    EXPECT_NEAR(filled, brute_fill(model, columns(model, request), request.free), 1e-9) << round;
    const PlanAnswer replicas = named("replicas").fill(model, request);
    EXPECT_GE(replicas.rate_per_s, filled - 1e-9);
    EXPECT_LE(replicas.rate_per_s, fluid_bound(model, request.free) * (1 + 1e-9));
  }
}

TEST(Planner, EveryPlanFitsCoversTheDagOnceAndMeetsTheObjective) {
  Rng rng(2);
  for (int round = 0; round < 40; ++round) {
    const PipelineModel model(random_dag(rng, 1 + rng.below(5)), three_types());
    const PlanRequest request{.free = {6, 4, 3},
                              .wanted_per_s = round % 3 == 0 ? 20.0 : 0,
                              .objective = Duration(1ms) * static_cast<int>(100 + rng.below(500)),
                              .steps = 100'000};
    for (const std::string_view name : planners()) {
      std::vector<int> left = request.free;
      double rate = 0;
      for (const PipelinePlan& plan : named(name).fill(model, request).plans) {
        const auto& stages = model.partitions()[plan.partition].stages;
        std::vector<int> seen(model.dag().components.size());
        ASSERT_EQ(plan.slices.size(), stages.size());
        for (std::size_t i = 0; i < stages.size(); ++i) {
          for (const std::size_t one : stages[i].components) ++seen[one];
          EXPECT_FALSE(plan.slices[i].empty());
          for (const std::size_t type : plan.slices[i]) {
            EXPECT_LE(stages[i].memory, model.types()[type].memory);
            --left[type];
          }
        }
        EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), static_cast<int>(seen.size()));
        EXPECT_LE(plan.latency, request.objective) << name;
        rate += plan.rate_per_s;
      }
      for (const int one : left) EXPECT_GE(one, 0) << name;
      EXPECT_LE(rate, fluid_bound(model, request.free) * (1 + 1e-9)) << name;
    }
  }
}

TEST(Planner, ByNeedTakesNoMoreThanIsWanted) {
  const PipelineModel model(three_in_a_row(), three_types());
  const auto all = named("need").one(model, {.free = {4, 4, 4}});
  const auto few = named("need").one(model, {.free = {4, 4, 4}, .wanted_per_s = 1});
  ASSERT_TRUE(all && few);
  EXPECT_LE(few->compute, all->compute);
  EXPECT_EQ(few->compute, 5);  // 2g + 1g + 2g answers 8.3
}

TEST(Planner, ReplicasUseWhatChainsLeave) {
  // a takes 30 ms and b 10 on the only type there is: one of each leaves b idle for two thirds.
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "a", {"input"}, {30}, gib(6)));
  dag.components.push_back(component(dag, "b", {"a"}, {10}, gib(6)));
  end_with(dag, "b");
  const PipelineModel model(dag, {{"1g", 1, gib(10), ""}});
  const PlanRequest request{.free = {4}};
  EXPECT_NEAR(named("exact").fill(model, request).rate_per_s, 2 / 0.030, 1e-6);
  const PlanAnswer found = named("replicas").fill(model, request);
  EXPECT_NEAR(found.rate_per_s, 3 / 0.030, 1e-6);
  ASSERT_EQ(found.plans.size(), 1u);
  EXPECT_EQ(found.plans[0].slices, (std::vector<std::vector<std::size_t>>{{0, 0, 0}, {0}}));
  EXPECT_NEAR(found.bound_per_s, 100, 0.5);
}

TEST(Planner, BranchesSideBySideAreFasterWhereTheirMemoryDoesNotFitOneSlice) {
  Dag dag = one_side_by_side();
  for (Component& one : dag.components) one.weights = one.peak = gib(6);
  const PipelineModel model(dag, three_types());
  const auto found = named("exact").one(model, {.free = {4, 0, 0}});
  ASSERT_TRUE(found);
  EXPECT_EQ(model.partitions()[found->partition].text(dag), "[first] [left] | [right] [last]");
  EXPECT_NEAR(found->rate_per_s, 1 / 0.030, 1e-6);
}

TEST(Planner, WithFewStepsItIsNearTheBestAndSaysSo) {
  Rng rng(3);
  const PipelineModel model(random_dag(rng, 5), three_types());
  const PlanRequest all{.free = {16, 16, 16}, .steps = 400'000'000};
  PlanRequest few = all;
  few.steps = 20'000;
  const PlanAnswer best = named("exact").fill(model, all), quick = named("exact").fill(model, few);
  EXPECT_TRUE(best.is_exact);
  EXPECT_FALSE(quick.is_exact);
  EXPECT_GE(quick.rate_per_s, 0.9 * best.rate_per_s);
  EXPECT_LE(best.rate_per_s, best.bound_per_s * (1 + 1e-9));
}

TEST(Planner, EsgTakesTheCheapestSliceThatIsInTimeAndNoPipeline) {
  Dag dag = three_in_a_row();
  for (Component& one : dag.components) one.weights = one.peak = gib(5);
  const PipelineModel model(dag, three_types());
  EXPECT_EQ(named("esg").one(model, {.free = {1, 1, 1}})->uses, (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(named("esg").one(model, {.free = {1, 1, 1}, .objective = 110ms})->uses, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(named("infless").one(model, {.free = {1, 1, 1}})->uses, (std::vector<int>{0, 0, 1}));
  EXPECT_FALSE(named("esg").one(model, {.free = {5, 0, 0}}));
}

TEST(Planner, WhyEachPartitionWasPassedOver) {
  const PipelineModel model(three_in_a_row(), three_types(), paper_hop(20ms));
  const PlanRequest request{.free = {1, 1, 1}, .objective = 200ms};
  const auto rows = explain(model, request, named("need").one(model, request));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].why, "stage 0 needs 41984 MiB and a time on a type that is free");
  EXPECT_EQ(rows[1].why, "8.3/s in 242.0 ms on 7 compute slices, smallest first: later than the objective");
  EXPECT_EQ(rows[3].why, "");
  EXPECT_EQ(planner_named("best").error().message,
            "planner is \"best\", it must be one of cv, need, exact, replicas, esg, infless");
}

}  // namespace
}  // namespace fairlead
