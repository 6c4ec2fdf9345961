// Requests through stages, step by step: order, rings, branches, retries, the late.
#include "decide/pipeline/request_flow.h"

#include <gtest/gtest.h>

#include "decide/pipeline/dag_testing.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

PipelineRequestId id(std::uint64_t value) {
  return PipelineRequestId(value);
}

class FlowTest : public ::testing::Test {
 protected:
  void make(Dag dag, std::vector<FlowStage> stages, FlowSettings settings = {}) {
    auto made = RequestFlow::make(std::move(dag), std::move(stages), settings);
    ASSERT_TRUE(made) << made.error().message;
    flow.emplace(std::move(*made));
  }
  void offer(std::uint64_t request, std::optional<Instant> deadline = {}) {
    flow->offer(now, id(request), deadline, out);
  }
  // The run of a stage's replica, which must be in `out`; the last one.
  RequestFlow::Run run(std::size_t stage, std::size_t replica = 0) const {
    for (auto at = out.rbegin(); at != out.rend(); ++at) {
      const auto* one = std::get_if<RequestFlow::Run>(&*at);
      if (one != nullptr && one->stage == stage && one->replica == replica) return *one;
    }
    ADD_FAILURE() << "stage " << stage << " has no run";
    return {};
  }
  void done(const RequestFlow::Run& one, std::vector<std::pair<TensorSource, bool>> scalars = {}) {
    flow->done(now, one.stage, one.replica, one.tried, {.ran = one.components, .scalars = std::move(scalars)}, out);
  }
  std::vector<RequestFlow::Answer> answers() const {
    std::vector<RequestFlow::Answer> found;
    for (const auto& action : out) {
      if (const auto* one = std::get_if<RequestFlow::Answer>(&action)) found.push_back(*one);
    }
    return found;
  }
  std::size_t runs() const {
    return static_cast<std::size_t>(std::count_if(
        out.begin(), out.end(), [](const auto& one) { return std::holds_alternative<RequestFlow::Run>(one); }));
  }

  std::optional<RequestFlow> flow;
  RequestFlow::Actions out;
  Instant now{};
};

// 16^60 ways lead from the last component to the first.
TEST_F(FlowTest, ComponentsThatReadEachOtherManyTimesAreLookedAtOnce) {
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "c0", {"input"}));
  FlowStage all{.components = {0}};
  for (std::size_t i = 1; i < 60; ++i) {
    dag.components.push_back(component(dag, "c" + std::to_string(i), {}));
    for (std::size_t j = 0; j < kMaxComponentPorts; ++j) {
      dag.components[i].inputs.push_back({.name = "x" + std::to_string(j), .sources = {{i - 1, 0}, {i - 1, 0}}});
    }
    all.components.insert(all.components.begin(), i);  // in an order that is not theirs
  }
  end_with(dag, "c59");
  make(dag, {all});
  offer(1);
  ASSERT_EQ(run(0).components.size(), 60u);
  EXPECT_EQ(run(0).components.front(), 0u);
  done(run(0));
  EXPECT_EQ(answers().at(0).end, FlowEnd::kAnswered);
}

TEST_F(FlowTest, SeveralRequestsAreInsideOneForEachStage) {
  make(three_in_a_row(), {{{0}}, {{1}}, {{2}}});
  offer(1);
  done(run(0));
  offer(2);
  done(run(1));
  done(run(0));
  EXPECT_EQ(run(2).request, id(1));
  EXPECT_EQ(run(1).request, id(2));
  done(run(2));
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].request, id(1));
  EXPECT_EQ(answers()[0].outputs, (std::vector<RingSlot>{{2, 0}}));
}

TEST_F(FlowTest, ASlotIsFreeWhenItsReadersHaveEndedAndTheAnswerIsTaken) {
  make(three_in_a_row(), {{{0}}, {{1, 2}}}, {.ring_depth = 1});
  offer(1);
  done(run(0));
  offer(2);
  EXPECT_EQ(runs(), 2u);  // stage 0 has no slot for request 2 while stage 1 may still have to read it again
  done(run(1));
  EXPECT_EQ(run(0).request, id(2));
  done(run(0));
  EXPECT_EQ(run(1).request, id(1));  // its output is not taken: no slot for request 2
  EXPECT_EQ(flow->slots_used(1), 1u);
  flow->taken(now, id(1), out);
  EXPECT_EQ(run(1).request, id(2));
}

// ---- from one pipeline to the next

TEST_F(FlowTest, AnotherPipelineGoesOnFromTheLastWholeTensorHoweverItIsCut) {
  make(three_in_a_row(), {{{0}}, {{1}}, {{2}}});
  offer(1);
  EXPECT_EQ(flow->progress(id(1)).ran[0], std::nullopt) << "it runs";
  done(run(0));
  const FlowProgress progress = flow->progress(id(1));
  EXPECT_EQ(progress.ran, (std::vector<std::optional<bool>>{true, std::nullopt, std::nullopt}));
  EXPECT_EQ(progress.slots[0], 0u) << "b still reads it";
  flow->abandon(now, "its slice is gone", out);
  EXPECT_TRUE(flow->progress(id(1)).ran.empty());
  make(three_in_a_row(), {{{0, 1}}, {{2}}});
  out.clear();
  flow->offer(now, id(1), {}, out, progress);
  EXPECT_EQ(run(0).components, std::vector<std::size_t>{1});
  done(run(0));
  EXPECT_EQ(flow->progress(id(1)).ran, (std::vector<std::optional<bool>>{true, true, std::nullopt}));
  done(run(1));
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].end, FlowEnd::kAnswered);
}

TEST_F(FlowTest, WhatAnotherPipelineMadeIsAnsweredFromWhereItIs) {
  Dag dag = three_in_a_row();
  dag.outputs.push_back({.name = "early", .from = {0, 0}});
  make(dag, {{{0}}, {{1, 2}}});
  flow->offer(now, id(1), {}, out, {.ran = {true, std::nullopt, std::nullopt}, .scalars = {}, .slots = {}});
  EXPECT_EQ(runs(), 1u);
  done(run(1));
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].outputs, (std::vector<RingSlot>{{1, 0}, {0, RequestFlow::kKept}}));
  flow->taken(now, id(1), out);
  EXPECT_TRUE(flow->is_empty());
}

TEST_F(FlowTest, AReportOfWhatAnotherPipelineHadRunEndsItsRequestOnly) {
  make(three_in_a_row(), {{{0, 1}}, {{2}}});
  flow->offer(now, id(1), {}, out, {.ran = {true, std::nullopt, std::nullopt}, .scalars = {}, .slots = {}});
  RequestFlow::Run lies = run(0);
  lies.components = {0, 1};
  done(lies);
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].end, FlowEnd::kFailed);
}

TEST_F(FlowTest, AFullRingReachesTheQueueOutside) {
  make(three_in_a_row(), {{{0}}, {{1}}, {{2}}}, {.ring_depth = 2});
  std::uint64_t offered = 0;
  while (flow->has_room() && offered < 100) offer(++offered);
  EXPECT_EQ(offered, 3u);  // one runs, two wait
  done(run(0));
  EXPECT_TRUE(flow->has_room());
}

TEST_F(FlowTest, ABranchThatIsNotTakenIsPassedAndTheJoinReadsTheOther) {
  make(one_with_a_branch(), {{{0}}, {{1}}, {{2, 3, 4}}});
  offer(1);
  done(run(0), {{{0, 1}, false}});
  EXPECT_EQ(run(2).request, id(1));
  EXPECT_EQ(run(2).components, (std::vector<std::size_t>{2, 3, 4}));
  EXPECT_EQ(run(2).reads, (std::vector<RingSlot>{{0, 0}}));
  offer(2);
  done(run(0), {{{0, 1}, true}});
  EXPECT_EQ(run(1).request, id(2));
  done(run(2));
  EXPECT_EQ(answers().size(), 1u);
}

TEST_F(FlowTest, AStageDecidesOnItsOwnScalars) {
  make(one_with_a_branch(), {{{0, 1}}, {{2, 3, 4}}});
  offer(1);
  auto first = run(0);
  EXPECT_EQ(first.components, (std::vector<std::size_t>{0, 1}));
  flow->done(now, 0, 0, first.tried, {.ran = {0}, .scalars = {{{0, 1}, false}}}, out);
  EXPECT_EQ(run(1).components, (std::vector<std::size_t>{2, 3, 4}));
}

TEST_F(FlowTest, AReportThatSaysNonsenseEndsItsRequestOnly) {
  make(one_with_a_branch(), {{{0}}, {{1, 2}}, {{3, 4}}});
  offer(1);
  done(run(0));  // does not say what is_low is
  offer(2);
  flow->done(now, 0, 0, run(0).tried, {.ran = {3}, .scalars = {}}, out);
  offer(3);
  flow->done(now, 0, 0, run(0).tried, {.ran = {}, .scalars = {}}, out);
  ASSERT_EQ(answers().size(), 3u);
  EXPECT_EQ(answers()[0].why, "stage 0 does not say what deblur.is_low is, on which sr depends");
  EXPECT_EQ(answers()[1].why, "stage 0 says that component 3 ran, which is not in it");
  EXPECT_EQ(answers()[2].why, "stage 0 did not run deblur, though its inputs are there");
  EXPECT_TRUE(flow->is_empty());
  EXPECT_EQ(flow->slots_used(0), 0u);
}

TEST_F(FlowTest, AStageThatIsLostRunsAgainFromTheLastWholeTensor) {
  make(three_in_a_row(), {{{0}}, {{1}}, {{2}}}, {.retries = 1});
  offer(1);
  done(run(0));
  const auto first = run(1);
  flow->lost(now, 1, 0, "killed", out);
  EXPECT_TRUE(answers().empty());
  flow->ready(now, 1, 0, out);
  const auto second = run(1);
  EXPECT_NE(second.tried, first.tried);
  EXPECT_EQ(second.reads, first.reads);
  EXPECT_EQ(second.writes, first.writes);
  done(first);  // of the process that is gone: ignored
  EXPECT_EQ(runs(), 3u);
  flow->failed(now, 1, 0, second.tried, "out of memory", out);
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].end, FlowEnd::kFailed);
  EXPECT_EQ(answers()[0].why, "stage 1 failed after 1 retries: out of memory");
  EXPECT_TRUE(flow->is_empty());
}

TEST_F(FlowTest, ALateRequestIsAnsweredAtOnceAndItsSlotStaysUntilItsStageEnds) {
  make(three_in_a_row(), {{{0}}, {{1, 2}}}, {.ring_depth = 1});
  offer(1, now + 10ms);
  EXPECT_EQ(flow->next_wakeup(), now + 10ms);
  now += 10ms;
  flow->wake(now, out);
  ASSERT_EQ(answers().size(), 1u);
  EXPECT_EQ(answers()[0].end, FlowEnd::kLate);
  offer(2);
  EXPECT_EQ(runs(), 1u);
  EXPECT_EQ(flow->slots_used(0), 1u);
  done(run(0));
  EXPECT_EQ(run(0).request, id(2));
  EXPECT_EQ(answers().size(), 1u);
}

TEST_F(FlowTest, AStageThatHangsIsKilledOnce) {
  make(three_in_a_row(), {{{0, 1, 2}, 2}}, {.stage_limit = 100ms});
  offer(1);
  now += 100ms;
  flow->wake(now, out);
  flow->wake(now, out);
  EXPECT_EQ(std::count(out.begin(), out.end(), RequestFlow::Action(RequestFlow::Kill{0, 0})), 1);
  flow->lost(now, 0, 0, "killed", out);
  EXPECT_EQ(run(0, 1).request, id(1));
}

TEST_F(FlowTest, APipelineThatGoesGivesItsRequestsBack) {
  make(three_in_a_row(), {{{0}}, {{1, 2}}});
  offer(1);
  done(run(0));
  offer(2);
  flow->abandon(now, "its slice was removed", out);
  ASSERT_EQ(answers().size(), 2u);
  EXPECT_EQ(answers()[0].end, FlowEnd::kReturned);
  EXPECT_FALSE(flow->is_empty());
  flow->lost(now, 0, 0, "gone", out);
  flow->lost(now, 1, 0, "gone", out);
  EXPECT_TRUE(flow->is_empty());
}

// Slices may go one after the other: a request that is given back three times, and never ran, is not to blame.
TEST_F(FlowTest, WhoOnlyWaitedInAPipelineThatGoesHasAllItsRetries) {
  make(three_in_a_row(), {{{0}}, {{1, 2}}});
  offer(1);
  offer(2);
  EXPECT_EQ(flow->progress(id(1)).tries, 1u) << "it runs";
  FlowProgress waited = flow->progress(id(2));
  EXPECT_EQ(waited.tries, 0u);
  for (int went = 0; went < 3; ++went) {
    make(three_in_a_row(), {{{0}}, {{1, 2}}});
    out.clear();
    offer(1);
    flow->offer(now, id(2), {}, out, waited);
    waited = flow->progress(id(2));
    flow->abandon(now, "its slice was removed", out);
    ASSERT_EQ(answers().size(), 2u);
    EXPECT_EQ(answers()[1].end, FlowEnd::kReturned) << went;
  }
  EXPECT_EQ(waited.tries, 0u);
}

TEST_F(FlowTest, WhoRanInEachPipelineThatWentFailsOnceItsRetriesAreUsed) {
  FlowProgress progress;
  for (const FlowEnd end : {FlowEnd::kReturned, FlowEnd::kFailed}) {  // one retry
    make(three_in_a_row(), {{{0}}, {{1, 2}}});
    out.clear();
    flow->offer(now, id(1), {}, out, progress);
    progress = flow->progress(id(1));
    flow->abandon(now, "its server died", out);
    ASSERT_EQ(answers().size(), 1u);
    EXPECT_EQ(answers()[0].end, end);
  }
  EXPECT_EQ(progress.tries, 2u);
}

TEST_F(FlowTest, BranchesSideBySideRunAtTheSameTime) {
  make(one_side_by_side(), {{{0}}, {{1}}, {{2}}, {{3}}});
  offer(1);
  done(run(0));
  EXPECT_EQ(run(1).request, id(1));
  done(run(2));
  EXPECT_EQ(runs(), 3u);
  done(run(1));
  EXPECT_EQ(run(3).reads, (std::vector<RingSlot>{{1, 0}, {2, 0}}));
}

TEST_F(FlowTest, StagesThatMissOrRepeatAComponentOrComeInTheWrongOrderAreRefused) {
  const Dag dag = three_in_a_row();
  EXPECT_EQ(RequestFlow::make(dag, {{{0}}, {{2}}}, {}).error().message, "component b is in no stage");
  EXPECT_FALSE(RequestFlow::make(dag, {{{0, 1}}, {{1, 2}}}, {}));
  EXPECT_FALSE(RequestFlow::make(dag, {{{1, 2}}, {{0}}}, {}));
  EXPECT_FALSE(RequestFlow::make(dag, {{{0, 1, 2}, 0}}, {}));
  EXPECT_FALSE(RequestFlow::make(dag, {{{0, 1, 2}}}, {.ring_depth = 0}));
  EXPECT_FALSE(RequestFlow::make(dag, {{{0, 1, 9}}, {{2}}}, {}));
}

}  // namespace
}  // namespace fairlead
