// Dags: what is refused, and into which groups they fall.
#include "decide/pipeline/dag.h"

#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

std::vector<std::vector<std::size_t>> groups_of(const Dag& dag) {
  std::vector<std::vector<std::size_t>> groups;
  for (const DagGroup& one : linearise(dag)) groups.push_back(one.components);
  return groups;
}
using Groups = std::vector<std::vector<std::size_t>>;

DagProblem problem_of(const Dag& dag) {
  const auto found = check_dag(dag);
  EXPECT_TRUE(found);
  return found.value_or(DagProblem{});
}

TEST(Dag, AChainIsAGroupForEachComponent) {
  EXPECT_FALSE(check_dag(three_in_a_row()));
  EXPECT_EQ(groups_of(three_in_a_row()), (Groups{{0}, {1}, {2}}));
}

TEST(Dag, AConditionalBranchIsOneGroupWithItsJoin) {
  EXPECT_FALSE(check_dag(one_with_a_branch()));
  EXPECT_EQ(groups_of(one_with_a_branch()), (Groups{{0}, {1, 2}, {3}, {4}}));
}

TEST(Dag, BranchesWithoutAConditionAreAParallelGroup) {
  const auto groups = linearise(one_side_by_side());
  EXPECT_EQ(groups_of(one_side_by_side()), (Groups{{0}, {1, 2}, {3}}));
  EXPECT_EQ(groups[1].branches, (std::vector<std::vector<std::size_t>>{{1}, {2}}));
}

TEST(Dag, AValueThatPassesOverAComponentDoesNotMakeTwoBranches) {
  Dag dag = three_in_a_row();
  dag.components[2].inputs.push_back({.name = "a", .sources = {{0, 0}}});
  EXPECT_EQ(groups_of(dag), (Groups{{0}, {1}, {2}}));
}

TEST(Dag, WhatNothingCutsIsOneGroup) {
  Dag dag = dag_of_nothing();  // c reads a; d reads a and b: connected, and nothing dominates
  dag.components.push_back(component(dag, "a", {"input"}));
  dag.components.push_back(component(dag, "b", {"input"}));
  dag.components.push_back(component(dag, "c", {"a"}));
  dag.components.push_back(component(dag, "d", {"a", "b"}));
  end_with(dag, "d");
  EXPECT_EQ(groups_of(dag), (Groups{{0, 1, 2, 3}}));
}

TEST(Dag, ACycleIsNamedWithTheWayRound) {
  Dag dag = three_in_a_row();
  dag.components[0].inputs.push_back({.name = "c", .sources = {{2, 0}}});
  const DagProblem found = problem_of(dag);
  EXPECT_EQ(found.kind, DagProblemKind::kCycle);
  EXPECT_EQ(found.message, "component a, edge a <- c: is in a cycle: a <- c <- b <- a");
}

TEST(Dag, AnUnknownEdgeNamesComponentAndInput) {
  Dag dag = three_in_a_row();
  dag.components[1].inputs[0].sources = {{0, 5}};
  const DagProblem found = problem_of(dag);
  EXPECT_EQ(found.kind, DagProblemKind::kUnknownEdge);
  EXPECT_EQ(found.component, "b");
  EXPECT_EQ(found.edge, "b.from_a <- ?");
  dag.components[1].inputs[0].sources = {{77, 0}};
  EXPECT_EQ(problem_of(dag).kind, DagProblemKind::kUnknownEdge);
}

TEST(Dag, AJoinOfDifferentShapesIsRefused) {
  Dag dag = one_with_a_branch();
  dag.components[1].outputs[0].shape = {2, 1 << 20};
  const DagProblem found = problem_of(dag);
  EXPECT_EQ(found.kind, DagProblemKind::kShape);
  EXPECT_EQ(found.edge, "background.from_sr <- deblur.y");
}

TEST(Dag, NamesSizesAndTimesHaveBounds) {
  const auto kind = [](auto change) {
    Dag dag = three_in_a_row();
    change(dag);
    return problem_of(dag).kind;
  };
  using enum DagProblemKind;
  EXPECT_EQ(kind([](Dag& dag) { dag.components.clear(); }), kNoComponents);
  EXPECT_EQ(kind([](Dag& dag) { dag.components.resize(kMaxComponents + 1); }), kTooMany);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].name = "input"; }), kName);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].name = "../a"; }), kName);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].name = "b"; }), kName);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].task = ""; }), kWhatRuns);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].program = "x"; }), kWhatRuns);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].peak = Bytes(0); }), kMemory);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].weights = Bytes(-1); }), kMemory);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].times[0].mean = Duration(-1); }), kTime);
  EXPECT_EQ(kind([](Dag& dag) { dag.components[0].times[1].slice = "1g"; }), kTime);
  EXPECT_EQ(kind([](Dag& dag) { dag.objective = std::chrono::hours(2); }), kObjective);
  EXPECT_EQ(kind([](Dag& dag) { dag.outputs.clear(); }), kTooMany);
  EXPECT_EQ(kind([](Dag& dag) { dag.inputs[0].shape = {~std::uint64_t{0}}; }), kShape);
}

}  // namespace
}  // namespace fairlead
