#include "node/event_queue.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

QueuedEvent event(const std::string& id, const std::string& function = "f") {
  return QueuedEvent{.invocation = {.request_id = id, .function = function}};
}

EventQueue queue_with(const std::vector<std::string>& ids, EventQueueOptions options = {}) {
  EventQueue queue(options);
  for (const auto& id : ids) {
    EXPECT_TRUE(queue.reserve().has_value());
    queue.add(event(id));
  }
  return queue;
}

TEST(EventQueue, SubmitsInTheOrderOfAcceptance) {
  EventQueue queue = queue_with({"a", "b"});
  EXPECT_EQ(queue.next(0)->invocation.request_id, "a");
  EXPECT_EQ(queue.next(0)->invocation.request_id, "b");
  EXPECT_FALSE(queue.next(0).has_value());
}

TEST(EventQueue, RetriesTwiceWithDoubledDelayThenBuries) {
  EventQueue queue = queue_with({"a"});
  QueuedEvent attempt = *queue.next(0);
  EXPECT_EQ(queue.failed(attempt, 0), EventQueue::Verdict::kRetry);
  EXPECT_EQ(attempt.not_before_ms, 1000);
  EXPECT_FALSE(queue.next(999).has_value());

  attempt = *queue.next(1000);
  EXPECT_EQ(queue.failed(attempt, 1000), EventQueue::Verdict::kRetry);
  EXPECT_EQ(attempt.not_before_ms, 3000);

  attempt = *queue.next(3000);
  EXPECT_EQ(queue.failed(attempt, 3000), EventQueue::Verdict::kBury);
  EXPECT_EQ(attempt.attempts, 3);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(EventQueue, APostponedEventLetsTheOthersPassAndKeepsItsAttempts) {
  EventQueue queue = queue_with({"a", "b"});
  queue.postpone(*queue.next(0), 0);
  EXPECT_EQ(queue.next(0)->invocation.request_id, "b");
  EXPECT_FALSE(queue.next(999).has_value());
  const QueuedEvent again = *queue.next(1000);
  EXPECT_EQ(again.invocation.request_id, "a");
  EXPECT_EQ(again.attempts, 0);
}

TEST(EventQueue, RefusesAboveItsLimitAndSaysSo) {
  EventQueue queue = queue_with({"a", "b"}, {.limit = 2});
  const Status refused = queue.reserve();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("limit is 2"), std::string::npos);
  queue.next(0);
  queue.finished();
  EXPECT_TRUE(queue.reserve().has_value());
}

TEST(EventQueue, SubmitsNoMoreThanTheRunningLimit) {
  EventQueue queue = queue_with({"a", "b"}, {.running_limit = 1});
  EXPECT_TRUE(queue.next(0).has_value());
  EXPECT_FALSE(queue.next(0).has_value());
  queue.finished();
  EXPECT_EQ(queue.next(0)->invocation.request_id, "b");
}

TEST(EventQueue, APostponedEventLeavesItsPlaceToAnother) {
  EventQueue queue = queue_with({"a", "b"}, {.running_limit = 1});
  queue.postpone(*queue.next(0), 0);
  const auto other = queue.next(0);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->invocation.request_id, "b");
  queue.finished();
  EXPECT_EQ(queue.next(1000)->invocation.request_id, "a");
}

TEST(EventQueue, ADeletedFunctionTakesItsEventsAlong) {
  EventQueue queue = queue_with({"a"});
  queue.restore(event("g1", "g"));
  const auto removed = queue.remove_function("g");
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].invocation.request_id, "g1");
  EXPECT_EQ(queue.size(), 1u);
}

TEST(EventQueue, NoAttemptIsMadeThatItsDeadlineLeavesNoTimeFor) {
  EventQueue queue = queue_with({"a"});
  QueuedEvent attempt = *queue.next(0);
  attempt.invocation.deadline_ms = 1500;
  EXPECT_EQ(queue.failed(attempt, 0), EventQueue::Verdict::kRetry);
  attempt = *queue.next(1000);
  EXPECT_FALSE(EventQueue::is_expired(attempt, 1499));
  EXPECT_TRUE(EventQueue::is_expired(attempt, 1500));
  EXPECT_EQ(queue.failed(attempt, 1000), EventQueue::Verdict::kBury) << "the next would begin at 3000";
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace fairlead
