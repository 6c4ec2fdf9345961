#include "node/event_queue.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Verdict = EventQueue::Verdict;

constexpr std::int64_t kWallMs = 1'700'000'000'000;
constexpr EventLimits kDefaults;
const std::string kTenant = "acme";

QueuedEvent event(const std::string& id, const std::string& function = "f") {
  return QueuedEvent{.invocation = {.request_id = id, .function = function}, .accepted_ms = kWallMs};
}

// `after` the first event was accepted, with a wall clock that goes right.
Instant at(Duration after) {
  return Instant(hours(1)) + after;
}
EventTime time_at(Duration after) {
  return {.now = at(after), .wall_ms = kWallMs + std::chrono::duration_cast<milliseconds>(after).count()};
}

struct FilledQueue : EventQueue {
  explicit FilledQueue(const std::vector<std::string>& ids, EventQueueOptions options = {.first_retry = seconds(1)})
      : EventQueue(options) {
    for (const auto& id : ids) {
      EXPECT_TRUE(reserve(event(id), kTenant).has_value());
      accepted(event(id), kTenant, time_at(seconds(0)));
    }
  }
};

std::string id_of(const std::optional<HeldEvent>& held) {
  return held ? held->record.invocation.request_id : "none";
}

TEST(EventQueue, SubmitsInTheOrderOfAcceptance) {
  FilledQueue queue({"a", "b"});
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "a");
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "b");
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "none");
}

TEST(EventQueue, RetriesTwiceWithDoubledDelayThenBuries) {
  FilledQueue queue({"a"}, {});
  HeldEvent attempt = *queue.next(at(seconds(0)));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(0)), kDefaults), Verdict::kRetry);
  EXPECT_EQ(attempt.record.not_before_ms, kWallMs + 60'000);
  EXPECT_EQ(id_of(queue.next(at(milliseconds(59'999)))), "none");
  EXPECT_EQ(queue.next_due(at(seconds(1))), at(seconds(60)));

  attempt = *queue.next(at(seconds(60)));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(60)), kDefaults), Verdict::kRetry);
  EXPECT_EQ(attempt.record.not_before_ms, kWallMs + 180'000);

  attempt = *queue.next(at(seconds(180)));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(180)), kDefaults), Verdict::kBury);
  EXPECT_EQ(attempt.record.attempts, 3);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EventQueue, ItsFunctionSaysHowOftenItIsTried) {
  for (const int retries : {0, 1, 2}) {
    FilledQueue queue({"a"}, {.first_retry = Duration(0)});
    HeldEvent attempt;
    do {
      attempt = *queue.next(at(seconds(0)));
    } while (queue.failed(attempt, time_at(seconds(0)), {.retries = retries}) == Verdict::kRetry);
    EXPECT_EQ(attempt.record.attempts, retries + 1);
  }
}

TEST(EventQueue, AWallClockThatIsSetBackHoldsNoRetryBack) {
  FilledQueue queue({"a"});
  HeldEvent attempt = *queue.next(at(seconds(0)));
  EventTime set_back = time_at(seconds(0));
  set_back.wall_ms -= 3'600'000;
  EXPECT_EQ(queue.failed(attempt, set_back, kDefaults), Verdict::kRetry);
  EXPECT_EQ(id_of(queue.next(at(seconds(1)))), "a");
}

TEST(EventQueue, AfterARestartARetryWaitsNoLongerThanItsBackoff) {
  QueuedEvent failed = event("a");
  failed.attempts = 1;
  failed.not_before_ms = kWallMs + 7'200'000;  // by a wall clock that was two hours ahead
  EventQueue queue({.first_retry = seconds(1)});
  queue.restore(failed, kTenant, time_at(seconds(0)));
  EXPECT_EQ(id_of(queue.next(at(milliseconds(999)))), "none");
  EXPECT_EQ(id_of(queue.next(at(seconds(1)))), "a");
}

TEST(EventQueue, AfterARestartWhatWasNeverTriedIsTriedAtOnce) {
  EventQueue queue({});
  queue.restore(event("a"), kTenant, time_at(seconds(0)));
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "a");
}

TEST(EventQueue, ItsAgeCountsFromBeforeTheRestart) {
  EventQueue queue({});
  queue.restore(event("a"), kTenant, time_at(hours(5)));
  const HeldEvent held = *queue.next(at(hours(5)));
  EXPECT_FALSE(EventQueue::is_too_old(held, at(hours(6)), kDefaults));
  EXPECT_TRUE(EventQueue::is_too_old(held, at(hours(6) + milliseconds(1)), kDefaults));
}

TEST(EventQueue, TimesThatMakeNoSenseAreBounded) {
  QueuedEvent odd = event("a");
  odd.accepted_ms = std::numeric_limits<std::int64_t>::min();
  odd.attempts = 2'000'000'000;
  odd.not_before_ms = std::numeric_limits<std::int64_t>::max();
  odd.invocation.deadline_ms = std::numeric_limits<std::int64_t>::max();
  EventQueue queue({.first_retry = seconds(1)});
  queue.restore(odd, kTenant, time_at(seconds(0)));
  const auto held = queue.next(at(seconds(2)));
  ASSERT_EQ(id_of(held), "a");
  EXPECT_TRUE(EventQueue::is_too_old(*held, at(seconds(2)), kDefaults));
  EXPECT_FALSE(EventQueue::is_expired(*held, at(seconds(2))));

  QueuedEvent young = event("b");
  young.accepted_ms = kWallMs + 3'600'000;  // by a wall clock that was an hour ahead
  queue.restore(young, kTenant, time_at(seconds(0)));
  EXPECT_FALSE(EventQueue::is_too_old(*queue.next(at(seconds(2))), at(hours(6)), kDefaults));
}

TEST(EventQueue, AFaultOfTheNodeIsNoAttemptAndIsTriedLessAndLessOften) {
  FilledQueue queue({"a"});
  Duration now{0};
  for (const int wait_s : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    HeldEvent held = *queue.next(at(now));
    EXPECT_EQ(held.record.attempts, 0);
    EXPECT_EQ(queue.postpone(held, at(now), kDefaults), Verdict::kRetry);
    now += seconds(wait_s);
    EXPECT_EQ(id_of(queue.next(at(now - milliseconds(1)))), "none") << wait_s;
  }
  HeldEvent attempt = *queue.next(at(now));
  EXPECT_EQ(queue.failed(attempt, time_at(now), kDefaults), Verdict::kRetry);
  attempt = *queue.next(at(now + seconds(1)));
  EXPECT_EQ(queue.postpone(attempt, at(now + seconds(1)), kDefaults), Verdict::kRetry);
  EXPECT_EQ(id_of(queue.next(at(now + seconds(2)))), "a") << "its attempt began the waits anew";
}

TEST(EventQueue, FaultsOfTheNodeEndWithItsAge) {
  FilledQueue queue({"a"});
  Duration now{0};
  int tries = 0;
  while (true) {
    const HeldEvent held = *queue.next(at(now));
    ++tries;
    if (queue.postpone(held, at(now), kDefaults) == Verdict::kBury) break;
    now = *queue.next_due(at(now)) - at(seconds(0));
    ASSERT_LT(tries, 1000);
  }
  EXPECT_GT(now, hours(6) - minutes(5));
  EXPECT_LE(now, hours(6));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EventQueue, ItsFunctionSaysHowLongItIsTried) {
  FilledQueue queue({"a"}, {});
  HeldEvent attempt = *queue.next(at(seconds(5)));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(5)), {.age = seconds(60)}), Verdict::kBury)
      << "the next attempt would begin at 65 s";
  EXPECT_EQ(attempt.record.attempts, 1);
}

TEST(EventQueue, APostponedEventLetsTheOthersPassAndKeepsItsAttempts) {
  FilledQueue queue({"a", "b"});
  EXPECT_EQ(queue.postpone(*queue.next(at(seconds(0))), at(seconds(0)), kDefaults), Verdict::kRetry);
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "b");
  EXPECT_EQ(id_of(queue.next(at(milliseconds(999)))), "none");
  const auto again = queue.next(at(seconds(1)));
  EXPECT_EQ(id_of(again), "a");
  EXPECT_EQ(again->record.attempts, 0);
}

TEST(EventQueue, WhatWasPostponedIsWokenWithItsFunctionAndARetryIsNot) {
  EventQueue queue({.first_retry = minutes(1)});
  for (const auto& [id, function] : {std::pair("a", "f"), std::pair("b", "g"), std::pair("c", "f")}) {
    queue.restore(event(id, function), kTenant, time_at(seconds(0)));
  }
  queue.postpone(*queue.next(at(seconds(0))), at(seconds(0)), kDefaults);
  queue.postpone(*queue.next(at(seconds(0))), at(seconds(0)), kDefaults);
  HeldEvent retried = *queue.next(at(seconds(0)));
  EXPECT_EQ(queue.failed(retried, time_at(seconds(0)), kDefaults), Verdict::kRetry);
  queue.wake("f", at(milliseconds(10)));
  EXPECT_EQ(id_of(queue.next(at(milliseconds(10)))), "a");
  EXPECT_EQ(id_of(queue.next(at(milliseconds(10)))), "none");
  queue.wake_all(at(milliseconds(20)));
  EXPECT_EQ(id_of(queue.next(at(milliseconds(20)))), "b");
  EXPECT_EQ(id_of(queue.next(at(milliseconds(20)))), "none") << "a retry waits out its time";
}

TEST(EventQueue, RefusesAboveItsLimitAndSaysSo) {
  EventQueue queue({.limit = 4});
  for (const char* id : {"a", "b", "c", "d"}) queue.restore(event(id), kTenant, time_at(seconds(0)));
  const Status refused = queue.reserve(event("e"), kTenant);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("limit is 4"), std::string::npos);
  for (int i = 0; i < 2; ++i) queue.finished(*queue.next(at(seconds(0))));
  EXPECT_TRUE(queue.reserve(event("e"), "other").has_value());
}

TEST(EventQueue, OneTenantsSmallEventsLeavePlacesToOthers) {
  EventQueue queue({.limit = 100});
  int accepted = 0;
  while (queue.reserve(event("small"), "flooder")) ++accepted;
  EXPECT_EQ(accepted, 50);
  EXPECT_TRUE(queue.reserve(event("small"), "other"));
}

TEST(EventQueue, SubmitsNoMoreThanTheRunningLimit) {
  FilledQueue queue({"a", "b"}, {.running_limit = 1});
  const HeldEvent first = *queue.next(at(seconds(0)));
  EXPECT_EQ(first.record.invocation.request_id, "a");
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "none");
  queue.finished(first);
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "b");
}

TEST(EventQueue, APostponedEventLeavesItsPlaceToAnother) {
  FilledQueue queue({"a", "b"}, {.running_limit = 1});
  queue.postpone(*queue.next(at(seconds(0))), at(seconds(0)), kDefaults);
  const HeldEvent second = *queue.next(at(seconds(0)));
  EXPECT_EQ(second.record.invocation.request_id, "b");
  queue.finished(second);
  EXPECT_EQ(id_of(queue.next(at(seconds(1)))), "a");
}

TEST(EventQueue, ADeletedFunctionTakesItsEventsAlong) {
  FilledQueue queue({"a"});
  queue.restore(event("g1", "g"), kTenant, time_at(seconds(0)));
  const auto removed = queue.remove_function("g");
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].invocation.request_id, "g1");
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueue, BytesAreBoundedAndATenantLeavesRoomToOthers) {
  EventQueue queue({.bytes = 100'000});
  QueuedEvent large = event("large");
  large.invocation.payload.assign(20'000, 'x');
  EXPECT_TRUE(queue.reserve(large, "flooder"));
  EXPECT_TRUE(queue.reserve(large, "flooder"));
  const Status refused = queue.reserve(large, "flooder");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_EQ(refused.error().message,
            "asynchronous invocations hold 41024 of the 100000 bytes that the node keeps for them, 41024 of these the "
            "tenant's, and this one needs 20512 more: send less at a time, or try again later");
  EXPECT_TRUE(queue.reserve(large, "other"));
  queue.refused(large, "other");
  queue.accepted(large, "flooder", time_at(seconds(0)));
  queue.accepted(large, "flooder", time_at(seconds(0)));
  HeldEvent first = *queue.next(at(seconds(0)));
  EXPECT_EQ(queue.failed(first, time_at(seconds(0)), {.retries = 0}), Verdict::kBury);
  HeldEvent second = *queue.next(at(seconds(0)));
  EXPECT_EQ(queue.bytes(), 20'512u);
  EXPECT_EQ(queue.failed(second, time_at(seconds(0)), kDefaults), Verdict::kRetry);
  EXPECT_EQ(queue.bytes(), 20'512u) << "it is kept for its next attempt";
  EXPECT_EQ(queue.remove_function("f").size(), 1u);
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EventQueue, WhatIsOnDiskIsCountedAndNeverRefused) {
  EventQueue queue({.limit = 5, .bytes = 1000});
  for (const char* id : {"a", "b", "c"}) queue.restore(event(id), kTenant, time_at(seconds(0)));
  EXPECT_EQ(queue.bytes(), 3 * 512u);
  EXPECT_EQ(queue.reserve_places(10, ""), 0u) << "memory is full";
  for (int i = 0; i < 3; ++i) queue.finished(*queue.next(at(seconds(0))));
  EXPECT_EQ(queue.reserve_places(10, ""), 5u);
  queue.take_place(event("redriven"), kTenant, time_at(seconds(0)));
  queue.release_places(4);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(id_of(queue.next(at(seconds(0)))), "redriven");
}

// Who has many dead letters and redrives them again and again leaves places for others' events.
TEST(EventQueue, ATenantsRedrivesStayInItsPart) {
  EventQueue queue({.limit = 1000, .bytes = 1'000'000});
  std::size_t taken = 0;
  while (const std::size_t places = queue.reserve_places(100, "flooder")) {
    for (std::size_t i = 0; i < places; ++i) {
      queue.take_place(event(std::to_string(taken++)), "flooder", time_at(seconds(0)));
    }
    ASSERT_LE(taken, 500u);
  }
  EXPECT_GE(taken, 490u) << "half of all, of which no place is left over";
  EXPECT_TRUE(queue.reserve(event("victim's"), "victim"));
  EXPECT_GT(queue.reserve_places(100, "victim"), 0u);
}

// Of one budget with bodies and answers: what one holds, the other may not.
TEST(EventQueue, WhatWaitsCountsInTheMemoryOfAll) {
  const auto memory = std::make_shared<ByteBudget>(1'000'000);
  EventQueue queue({.limit = 1000, .bytes = 1'000'000'000});
  queue.count_in(memory);
  QueuedEvent large = event("a");
  large.invocation.payload.assign(300'000, 'x');
  ASSERT_FALSE(queue.reserve(large, kTenant)) << "an event counts as a thousandth of the queue's bytes at least";
  EventQueue small({.limit = 1000, .bytes = 10'000'000});
  small.count_in(memory);
  ASSERT_TRUE(small.reserve(large, kTenant));
  small.accepted(large, kTenant, time_at(seconds(0)));
  EXPECT_GE(memory->held_by(kTenant), 300'000U);
  EXPECT_FALSE(memory->try_add(kTenant, 400'000)) << "a body";
  EXPECT_TRUE(memory->try_add("other", 300'000));
  const auto refused = small.reserve(large, kTenant);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("of the 1000000 bytes"), std::string::npos) << refused.error().message;
  const std::size_t places = small.reserve_places(1000, kTenant);
  EXPECT_LE(places * 10'000, 1'000'000 - memory->used() - memory->held_by(kTenant)) << "nor by a redrive";
  small.release_places(places);
  const HeldEvent attempt = *small.next(at(seconds(0)));
  small.finished(attempt);
  EXPECT_EQ(memory->held_by(kTenant), 0U);
  EXPECT_EQ(small.bytes(), 0U) << "what was refused is held in neither";
}

TEST(EventQueue, NoAttemptIsMadeThatItsDeadlineLeavesNoTimeFor) {
  EventQueue queue({.first_retry = seconds(1)});
  QueuedEvent timed = event("a");
  timed.invocation.deadline_ms = kWallMs + 1500;
  queue.restore(timed, kTenant, time_at(seconds(0)));
  HeldEvent attempt = *queue.next(at(seconds(0)));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(0)), kDefaults), Verdict::kRetry);
  attempt = *queue.next(at(seconds(1)));
  EXPECT_FALSE(EventQueue::is_expired(attempt, at(milliseconds(1499))));
  EXPECT_TRUE(EventQueue::is_expired(attempt, at(milliseconds(1500))));
  EXPECT_EQ(queue.failed(attempt, time_at(seconds(1)), kDefaults), Verdict::kBury) << "the next would begin at 3 s";
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace fairlead
