#include "node/async_invocations.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"

namespace fairlead {
namespace {

constexpr InstanceId kFirst{1};

class AsyncInvocationsTest : public NodeWithoutProcesses {
 protected:
  AsyncInvocationsTest() {
    add_function("f");
    events.set_config("f", {.retries = 1}, [](const Result<EventInvokeConfig>& set) { EXPECT_TRUE(set); });
    store.tell_all();
  }

  Result<std::string> accept(const std::string& function, std::optional<std::int64_t> deadline_ms = {}) {
    InvokeRequest request;
    request.invocation.deadline_ms = deadline_ms;
    request.invocation.function = function;
    request.invocation.payload = "[1]";
    request.invocation.trace_id = "Root=1";
    Result<std::string> accepted = fail(Errc::kUnavailable, "not yet");
    events.accept(std::move(request), [&](Result<std::string> id) { accepted = std::move(id); });
    store.tell_all();
    return accepted;
  }

  FakeStore store;
  int written = 0;
  AsyncInvocations events{
      io,
      {.first_retry = Duration(0)},
      store,
      functions,
      request_ids,
      invocations,
      {.document = [](Outcome outcome) { return "document of " + outcome.payload + outcome.failure.text; }, .text = {}},
      [this] { ++written; }};
};

TEST_F(AsyncInvocationsTest, IsAcceptedOnceItIsOnDiskAndRunsThen) {
  std::string accepted;
  InvokeRequest request;
  request.invocation.function = "f";
  events.accept(std::move(request), [&](Result<std::string> id) { accepted = id.value(); });
  EXPECT_EQ(accepted, "");
  EXPECT_EQ(store.events.size(), 1U);
  EXPECT_TRUE(runner.started.empty());
  store.tell_all();
  EXPECT_EQ(accepted, store.events.begin()->first);
  EXPECT_EQ(runner.started.size(), 1U);
}

TEST_F(AsyncInvocationsTest, WhatCannotBeWrittenIsNotAcceptedAndTakesNoPlace) {
  store.status = fail(Errc::kResourceExhausted, "disk full");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(accept("f").error().message, "disk full");
  store.status = {};
  EXPECT_TRUE(accept("f"));
  EXPECT_EQ(runner.started.size(), 1U);
}

TEST_F(AsyncInvocationsTest, WhatCannotBeWrittenLeavesItsPlaceToAnother) {
  AsyncInvocations one(io, {.limit = 2}, store, functions, request_ids, invocations, {}, [] {});
  const auto accept_one = [&] {
    InvokeRequest request;
    request.invocation.function = "f";
    Result<std::string> accepted = fail(Errc::kUnavailable, "not yet");
    one.accept(std::move(request), [&](Result<std::string> id) { accepted = std::move(id); });
    store.tell_all();
    return accepted;
  };
  store.status = fail(Errc::kResourceExhausted, "disk full");
  EXPECT_EQ(accept_one().error().message, "disk full");
  store.status = {};
  EXPECT_TRUE(accept_one());
  EXPECT_EQ(accept_one().error().code, Errc::kResourceExhausted) << "now there is one";
}

TEST_F(AsyncInvocationsTest, IsForgottenAfterItsAnswer) {
  const auto id = accept("f");
  ready(kFirst);
  EXPECT_EQ(runner.delivered.back().second.invocation.request_id, id.value());
  EXPECT_EQ(runner.delivered.back().second.invocation.trace_id, "Root=1");
  answer("[2]");
  EXPECT_TRUE(store.events.empty());
  store.tell_all();
  EXPECT_EQ(written, 1);
}

TEST_F(AsyncInvocationsTest, IsTriedAgainWithItsPayloadAndBuriedInTheEnd) {
  const auto id = accept("f");
  ready(kFirst);
  answer("wrong", true);
  ASSERT_EQ(store.events.size(), 1U);
  EXPECT_EQ(store.events.at(*id).attempts, 1);
  idle(kFirst);
  io.poll();
  ASSERT_EQ(runner.delivered.size(), 2U);
  EXPECT_EQ(runner.delivered.back().second.invocation.payload, "[1]");
  answer("wrong again", true);
  EXPECT_TRUE(store.events.empty());
  ASSERT_EQ(store.letters.size(), 1U);
  EXPECT_EQ(store.letters[0].request_id, *id);
  EXPECT_EQ(store.letters[0].payload, "[1]");
  EXPECT_EQ(store.letters[0].error_message, "document of wrong again");
  EXPECT_EQ(store.letters[0].attempts, 2);
}

TEST_F(AsyncInvocationsTest, TheEndIsToldOnceAndAFailureThatIsTriedAgainIsNone) {
  std::vector<std::string> told;
  events.when_over([&](const Invocation& invocation, const Outcome& outcome) {
    told.push_back(fmt::format("{} {}", invocation.request_id, outcome.payload));
  });
  const auto good = accept("f");
  ready(kFirst);
  answer("wrong", true);
  EXPECT_TRUE(told.empty());
  idle(kFirst);
  io.poll();
  answer("[2]");
  EXPECT_EQ(told, std::vector{*good + " [2]"});
  const auto bad = accept("f");
  for (const char* said : {"bad", "worse"}) {
    idle(kFirst);
    io.restart();
    io.poll();
    answer(said, true);
  }
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1], *bad + " worse");
}

TEST_F(AsyncInvocationsTest, StaysOnDiskWhenTheNodeStops) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(accept("f"));
  EXPECT_EQ(runner.started.size(), 2U) << "there are two slots";
  events.drain();
  driver.tell([&](Core& core, Instant now, Actions& out) {
    core.drain(now, out);
    invocations.cancel_submitted(now, out);
  });
  EXPECT_EQ(invocations.live(), 2U) << "the third left the queue";
  EXPECT_EQ(store.events.size(), 3U);
  EXPECT_EQ(accept("f").error().code, Errc::kUnavailable);
}

TEST_F(AsyncInvocationsTest, WithoutALeaseNothingIsStarted) {
  bool may_start = false;
  events.set_lease([&] { return may_start; });
  ASSERT_TRUE(accept("f"));
  EXPECT_TRUE(runner.started.empty());
  may_start = true;
  events.submit();
  EXPECT_EQ(runner.started.size(), 1U);
}

TEST_F(AsyncInvocationsTest, WhatOthersMayHaveByNowIsLeftToThem) {
  const auto failed = accept("f");
  ready(kFirst);
  driver.tell(
      [&](Core& core, Instant now, Actions& out) { core.set_max_concurrency(now, functions.find("f")->flow, 1, out); });
  const auto waits = accept("f");
  events.lose_lease();
  driver.tell([&](Core&, Instant now, Actions& out) { invocations.cancel_submitted(now, out); });
  answer("wrong", true);
  idle(kFirst);
  io.poll();
  EXPECT_EQ(runner.delivered.size(), 1U) << "neither again, nor the one that waited";
  EXPECT_EQ(store.events.at(*failed).attempts, 0);
  EXPECT_TRUE(store.events.contains(*waits));
  EXPECT_TRUE(store.letters.empty());
  EXPECT_EQ(events.counters().waiting + events.counters().running, 0U);
}

TEST_F(AsyncInvocationsTest, WhatHasRunIsOverWhoeverHasItByNow) {
  ASSERT_TRUE(accept("f"));
  ready(kFirst);
  events.lose_lease();
  answer("[2]");
  EXPECT_TRUE(store.events.empty());
}

TEST_F(AsyncInvocationsTest, WhatIsClaimedRunsAndTheOtherPlacesAreGivenBack) {
  AsyncInvocations one(io, {.limit = 2}, store, functions, request_ids, invocations, {}, [] {});
  EXPECT_EQ(one.reserve_claim(64), 2U);
  EXPECT_EQ(one.reserve_claim(64), 0U);
  one.take_claimed(2, {{.invocation = {.request_id = "claimed", .function = "f"}, .accepted_ms = wall_clock_ms()}});
  ready(kFirst);
  ASSERT_EQ(runner.delivered.size(), 1U);
  EXPECT_EQ(runner.delivered.back().second.invocation.request_id, "claimed");
  EXPECT_EQ(one.reserve_claim(64), 1U);
}

TEST_F(AsyncInvocationsTest, OfAFunctionThatIsGoneNothingIsKept) {
  QueuedEvent event{.invocation = {.request_id = "old", .function = "deleted"}};
  store.events["old"] = event;
  events.restore({event}, {});
  events.submit();
  EXPECT_TRUE(store.events.empty());
  EXPECT_TRUE(runner.started.empty());
}

TEST_F(AsyncInvocationsTest, WithItsFunctionWhatWaitsIsDeleted) {
  driver.tell(
      [&](Core& core, Instant now, Actions& out) { core.set_max_concurrency(now, functions.find("f")->flow, 0, out); });
  ASSERT_TRUE(accept("f"));
  EXPECT_EQ(store.events.size(), 1U);
  events.function_removed("f");
  EXPECT_TRUE(store.events.empty());
}

// An event that runs while its function is deleted, and another tenant makes one of that name.
TEST_F(AsyncInvocationsTest, NeverRunsAsAnotherFunctionOfItsName) {
  for (const bool is_nodes_fault : {false, true}) {
    ASSERT_TRUE(accept("f"));
    const InstanceId instance = runner.started.back();
    const std::size_t started = runner.started.size();
    driver.tell(
        [&](Core& core, Instant now, Actions& out) { core.remove_function(now, functions.find("f")->flow, out); });
    events.function_removed("f");
    functions.remove("f");
    add_function("f");
    gone(instance, "ended", is_nodes_fault);
    events.function_changed("f");
    io.poll();
    EXPECT_EQ(runner.started.size(), started) << is_nodes_fault;
    EXPECT_EQ(events.counters().waiting + events.counters().running, 0U) << is_nodes_fault;
    EXPECT_TRUE(store.events.empty()) << is_nodes_fault;
    EXPECT_TRUE(store.letters.empty()) << is_nodes_fault;
  }
}

TEST_F(AsyncInvocationsTest, WhatRunsForADeletedFunctionIsNeitherTriedAgainNorKept) {
  ASSERT_TRUE(accept("f"));
  ready(kFirst);
  const FlowId flow = functions.find("f")->flow;
  events.function_removed("f");
  functions.remove("f");
  add_function("f");
  answer("wrong", true);
  EXPECT_EQ(functions.find(flow), nullptr);
  io.poll();
  EXPECT_EQ(events.counters().waiting, 0U);
  EXPECT_TRUE(store.events.empty());
  EXPECT_EQ(runner.delivered.size(), 1U);
}

TEST_F(AsyncInvocationsTest, OfAFunctionThatIsBeingDeletedNothingIsAccepted) {
  functions.find("f")->is_leaving = true;
  EXPECT_EQ(accept("f").error().message, "function f is being deleted");
  EXPECT_TRUE(store.events.empty());
  functions.find("f")->is_leaving = false;
  EXPECT_TRUE(accept("f"));
}

TEST_F(AsyncInvocationsTest, ThatTheNodeCouldNotStartIsTriedAgainForNothing) {
  const auto id = accept("f");
  for (int i = 0; i < 5; ++i) {
    gone(runner.started.back(), "the spawner has ended", /*is_nodes_fault=*/true);
    EXPECT_EQ(events.counters().waiting, 1U);
    events.function_changed("f");  // spares the test the waits
  }
  EXPECT_EQ(events.counters().node_faults, 5U);
  EXPECT_EQ(store.events.at(*id).attempts, 0);
  EXPECT_TRUE(store.letters.empty());
  ready(runner.started.back());
  answer("[2]");
  EXPECT_TRUE(store.events.empty());
}

TEST_F(AsyncInvocationsTest, ThatItsFunctionCouldNotStartHasHadAnAttempt) {
  const auto id = accept("f");
  gone(runner.started.back(), "exit status 1", /*is_nodes_fault=*/false);
  EXPECT_EQ(store.events.at(*id).attempts, 1);
}

TEST_F(AsyncInvocationsTest, DeadLettersAreAcceptedAgainAsTheyWere) {
  const auto id = accept("f", wall_clock_ms() - 1);
  ASSERT_EQ(store.letters.size(), 1U);
  EXPECT_EQ(store.letters[0].trace_id, "Root=1");
  std::optional<RedriveResult> redriven;
  events.redrive("f", [&](Result<RedriveResult> result) { redriven = *result; });
  events.redrive("f", [](const Result<RedriveResult>& second) {
    EXPECT_EQ(second.error().message, "dead letters are being redriven by another request; try again");
  });
  store.tell_all();
  ASSERT_TRUE(redriven);
  EXPECT_EQ(redriven->redriven, 1U);
  EXPECT_TRUE(store.letters.empty());
  ready(kFirst);
  EXPECT_EQ(runner.delivered.back().second.invocation.request_id, *id);
  answer("[2]");
  EXPECT_TRUE(store.events.empty());
  EXPECT_EQ(events.counters().redriven, 1U);
}

TEST_F(AsyncInvocationsTest, OnlySoManyDeadLettersAreRedrivenAsTheQueueHasRoomFor) {
  AsyncInvocations small(io, {.limit = 2}, store, functions, request_ids, invocations, {}, [] {});
  for (const char* id : {"1", "2", "3"}) store.letters.push_back({.request_id = id, .function = "f"});
  std::optional<Result<RedriveResult>> redriven;
  const auto redrive = [&] {
    small.redrive("", [&](Result<RedriveResult> result) { redriven = std::move(result); });
    store.tell_all();
  };
  redrive();
  EXPECT_EQ((*redriven)->redriven, 2U);
  EXPECT_EQ((*redriven)->left, 1U);
  redrive();
  EXPECT_EQ(redriven->error().code, Errc::kResourceExhausted);
  EXPECT_EQ(store.letters.size(), 1U);
}

TEST_F(AsyncInvocationsTest, ARedriveThatCannotBeWrittenGivesItsPlacesBack) {
  store.status = fail(Errc::kResourceExhausted, "disk full");
  for (int i = 0; i < 200; ++i) {
    events.redrive("", [](const Result<RedriveResult>& result) { EXPECT_EQ(result.error().message, "disk full"); });
    store.tell_all();
  }
  store.status = {};
  EXPECT_TRUE(accept("f"));
  events.redrive("unknown",
                 [](const Result<RedriveResult>& result) { EXPECT_EQ(result.error().code, Errc::kNotFound); });
}

TEST_F(AsyncInvocationsTest, WhatAnAuthorSetIsCheckedKeptAndGoesWithTheFunction) {
  const auto set = [&](const std::string& function, EventInvokeConfig config) {
    Result<EventInvokeConfig> made = fail(Errc::kUnavailable, "not yet");
    events.set_config(function, config, [&](Result<EventInvokeConfig> answer) { made = std::move(answer); });
    store.tell_all();
    return made;
  };
  EXPECT_EQ(set("f", {.retries = 3}).error().message, "MaximumRetryAttempts is 3; it must be between 0 and 2");
  EXPECT_EQ(set("f", {.age_seconds = 59}).error().message,
            "MaximumEventAgeInSeconds is 59; it must be between 60 and 21600");
  EXPECT_EQ(set("unknown", {}).error().code, Errc::kNotFound);
  EXPECT_EQ(events.config("f")->retries, 1);
  EXPECT_TRUE(set("f", {.retries = 0, .age_seconds = 60}));
  EXPECT_EQ(events.config("f")->age_seconds, 60);
  EXPECT_EQ(store.configs.at("f").retries, 0);
  events.function_removed("f");
  EXPECT_EQ(events.config("f").error().code, Errc::kNotFound);
}

TEST_F(AsyncInvocationsTest, OfAnUnknownFunctionNothingIsWritten) {
  EXPECT_EQ(accept("unknown").error().code, Errc::kNotFound);
  EXPECT_TRUE(store.events.empty());
}

TEST_F(AsyncInvocationsTest, WhoseDeadlineHasPassedIsBuriedAndNeverStarted) {
  const auto id = accept("f", wall_clock_ms() - 1);
  EXPECT_TRUE(runner.started.empty());
  EXPECT_TRUE(store.events.empty());
  ASSERT_EQ(store.letters.size(), 1U);
  EXPECT_EQ(store.letters[0].request_id, *id);
  EXPECT_EQ(store.letters[0].error_type, "expired");
  EXPECT_EQ(store.letters[0].error_message, "document of was not started: its deadline passed while it waited");
  EXPECT_EQ(store.letters[0].attempts, 0);
}

TEST_F(AsyncInvocationsTest, WhoseDeadlinePassesInTheCoresQueueIsBuriedAndNotTriedAgain) {
  const std::int64_t deadline = wall_clock_ms() + 30'000;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(accept("f", deadline));
  driver.tell([&](Core& core, Instant now, Actions& out) { core.wake(now + std::chrono::seconds(31), out); });
  io.poll();
  EXPECT_EQ(store.letters.size(), 3U) << "two held a slot that they waited to use, one was queued";
  EXPECT_TRUE(store.events.empty());
  EXPECT_TRUE(runner.delivered.empty());
}

}  // namespace
}  // namespace fairlead
