// Order of a queue, routing, migration.
#include "decide/pipeline/router.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

PipelineRequestId id(std::uint64_t value) {
  return PipelineRequestId(value);
}
Instant at(Duration since) {
  return Instant(since);
}
QueuedRequest request(std::uint64_t number, Duration arrived, Duration deadline, Duration expected = 10ms) {
  return {.id = id(number), .arrived = at(arrived), .deadline = at(deadline), .expected = expected};
}

TEST(RequestQueue, ThePapersOrderServesTheLatestFirst) {
  RequestQueue queue(QueueOrder::kDeadline);
  queue.push(request(1, 0ms, 100ms));
  queue.push(request(2, 1ms, 300ms));
  queue.push(request(3, 2ms, 310ms, 200ms));  // adjusted: 110
  EXPECT_EQ(queue.pop(at(250ms))->id, id(1));
  EXPECT_EQ(queue.pop(at(250ms))->id, id(3));
  EXPECT_EQ(queue.pop(at(250ms))->id, id(2));
  EXPECT_FALSE(queue.pop(at(250ms)));
}

TEST(RequestQueue, OursServesFirstWhatCanStillBeMet) {
  RequestQueue queue(QueueOrder::kLateLast);
  queue.push(request(1, 0ms, 100ms));
  queue.push(request(2, 1ms, 300ms));
  queue.push(request(3, 2ms, 260ms));
  EXPECT_EQ(queue.in_time(at(250ms)), 2u);
  EXPECT_EQ(queue.pop(at(250ms))->id, id(3));
  EXPECT_EQ(queue.pop(at(250ms))->id, id(2));
  EXPECT_EQ(queue.pop(at(250ms))->id, id(1));
}

TEST(RequestQueue, ASlowInstanceTakesWhatItCanStillMeetAndLeavesTheRest) {
  RequestQueue queue(QueueOrder::kLateLast);
  queue.push(request(1, 0ms, 100ms));
  queue.push(request(2, 1ms, 300ms));
  EXPECT_EQ(queue.pop(at(50ms), 80ms)->id, id(2));
  EXPECT_FALSE(queue.pop(at(50ms), 80ms));
  EXPECT_EQ(queue.pop(at(50ms), 20ms)->id, id(1));
}

TEST(RequestQueue, TheLateHaveTheirShare) {
  RequestQueue queue(QueueOrder::kLateLast, 0.25);
  for (std::uint64_t i = 1; i <= 10; ++i) queue.push(request(i, 0ms, 0ms));
  int late = 0;
  for (std::uint64_t i = 11; i <= 50; ++i) {
    queue.push(request(i, 100ms, 10s));
    if (queue.pop(at(100ms))->id <= id(10)) ++late;
  }
  EXPECT_EQ(late, 10);
  RequestQueue none(QueueOrder::kLateLast, 0);
  none.push(request(1, 0ms, 0ms));
  none.push(request(2, 0ms, 10s));
  EXPECT_EQ(none.pop(at(1s))->id, id(2));
  EXPECT_EQ(none.pop(at(1s))->id, id(1));  // in a gap
}

RC_GTEST_PROP(RequestQueue, EachRequestLeavesOnce, ()) {
  RequestQueue queue(*rc::gen::inRange(0, 2) == 0 ? QueueOrder::kDeadline : QueueOrder::kLateLast, 0.1);
  std::set<std::uint64_t> inside;
  std::uint64_t last = 0;
  Instant now{};
  for (int left = *rc::gen::inRange(0, 200); left > 0; --left) {
    now += Duration(1ms) * *rc::gen::inRange(0, 20);
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        queue.push({.id = id(++last),
                    .arrived = now,
                    .deadline = now + Duration(1ms) * *rc::gen::inRange(0, 100),
                    .expected = 10ms});
        inside.insert(last);
        break;
      case 1:
        if (const auto one = queue.pop(now)) RC_ASSERT(inside.erase(one->id.value()) == 1u);
        break;
      default:
        if (last > 0) {
          const auto one = *rc::gen::inRange<std::uint64_t>(1, last + 1);
          RC_ASSERT(queue.remove(id(one)) == (inside.erase(one) == 1u));
        }
    }
    RC_ASSERT(queue.size() == inside.size());
  }
}

TEST(Router, TheFastestHotInstanceUntilItIsFullAndThenTheShared) {
  std::vector<RoutedInstance> all = {{.id = InstanceId(1), .latency = 10ms, .is_hot = false},
                                     {.id = InstanceId(2), .latency = 50ms, .capacity = 2},
                                     {.id = InstanceId(3), .latency = 20ms}};
  EXPECT_EQ(route(all), InstanceId(3));
  all[2].inside = 1;
  EXPECT_EQ(route(all), InstanceId(2));
  all[1].inside = 2;
  EXPECT_EQ(route(all), InstanceId(1));
  all[0].takes_new = false;
  EXPECT_EQ(route(all), std::nullopt);
}

TEST(MoveToOne, ThePipelineDrainsBeforeItGoes) {
  MoveToOne move;
  using Step = MoveToOne::Step;
  EXPECT_EQ(move.slice_free(true), Step::kNothing);
  EXPECT_EQ(move.slice_free(false), Step::kStartOne);
  EXPECT_FALSE(move.goes_to_one());
  EXPECT_EQ(move.pipeline_is_empty(), Step::kNothing);  // not warm yet: it still gets requests
  EXPECT_EQ(move.one_is_warm(), Step::kRouteToOne);
  EXPECT_TRUE(move.goes_to_one());
  EXPECT_EQ(move.pressed(), Step::kNothing);
  EXPECT_EQ(move.pipeline_is_empty(), Step::kRetirePipeline);
  EXPECT_EQ(move.pipeline_is_empty(), Step::kNothing);
  move.started_pipeline();
  EXPECT_EQ(move.state(), MoveToOne::State::kPipeline);
}

TEST(MoveToOne, UnderPressureOrWhenTheSliceIsLostItIsGivenUp) {
  MoveToOne move;
  using Step = MoveToOne::Step;
  move.slice_free(false);
  EXPECT_EQ(move.pressed(), Step::kGiveUpOne);
  EXPECT_EQ(move.one_is_warm(), Step::kNothing);
  move.slice_free(false);
  move.one_is_warm();
  EXPECT_EQ(move.one_is_lost(), Step::kGiveUpOne);
  EXPECT_FALSE(move.goes_to_one());
}

}  // namespace
}  // namespace fairlead
