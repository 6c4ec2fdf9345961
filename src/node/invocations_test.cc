#include "node/invocations.h"

#include "base/clock.h"
#include "model/tenant.h"
#include "node/testing/node_without_processes.h"

namespace fairlead {
namespace {

constexpr InstanceId kFirst{1};

InvokeRequest with_payload(const std::string& payload) {
  InvokeRequest request;
  request.invocation.payload = payload;
  return request;
}

class InvocationsTest : public NodeWithoutProcesses {
 protected:
  InvocationsTest() : NodeWithoutProcesses({.slots_per_gpu = 1}) { add_function("f"); }

  // So that what comes next stays in its queue.
  void take_the_slot() {
    add_function("other");
    invoke("other");
  }
};

TEST_F(InvocationsTest, TheAnswerGoesToWhoInvoked) {
  InvokeRequest request = with_payload("[1]");
  request.invocation.trace_id = "Root=1";
  request.invocation.client_context = "{}";
  const Reply reply = invoke("f", std::move(request));
  ASSERT_EQ(runner.started.size(), 1U);
  ready(kFirst);
  ASSERT_EQ(runner.delivered.size(), 1U);
  const Invocation& delivered = runner.delivered[0].second.invocation;
  EXPECT_EQ(delivered.payload, "[1]");
  EXPECT_EQ(delivered.trace_id, "Root=1");
  EXPECT_EQ(delivered.client_context, "{}");
  answer("[2]");
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->value().payload, "[2]");
  EXPECT_EQ((*reply)->value().request_id, delivered.request_id);
  EXPECT_FALSE((*reply)->value().failed());
  EXPECT_EQ(invocations.live(), 0U);
  EXPECT_EQ(functions.find("f")->stats.invocations, 1U);
}

TEST_F(InvocationsTest, ARepeatJoinsTheRunningInvocationAndGetsItsReplyAfterwards) {
  InvokeRequest request;
  request.sdk_invocation_id = "once";
  const Reply first = invoke("f", request);
  const Reply second = invoke("f", request);
  ready(kFirst);
  answer("[2]");
  const Reply third = invoke("f", request);
  EXPECT_EQ(runner.delivered.size(), 1U);
  for (const Reply& reply : {first, second, third}) {
    ASSERT_TRUE(reply->has_value());
    EXPECT_EQ((*reply)->value().payload, "[2]");
    EXPECT_EQ((*reply)->value().request_id, (*first)->value().request_id);
  }
}

TEST_F(InvocationsTest, ARepeatOfAnotherFunctionIsAnotherInvocation) {
  add_function("g");
  InvokeRequest request;
  request.sdk_invocation_id = "once";
  invoke("f", request);
  invoke("g", request);
  EXPECT_EQ(invocations.live(), 2U);
}

TEST_F(InvocationsTest, WhatTheLastWaiterLeavesIsCancelledBeforeItRuns) {
  take_the_slot();
  InvokeRequest request;
  request.sdk_invocation_id = "once";
  invoke("f", request);
  const Invocations::CancelHandle first = cancel;
  invoke("f", request);
  first();
  EXPECT_EQ(invocations.live(), 2U) << "the second waits for it still";
  cancel();
  EXPECT_EQ(invocations.live(), 1U);
  ready(kFirst);
  answer("{}");
  EXPECT_EQ(runner.started.size(), 1U);
}

TEST_F(InvocationsTest, ALimitReachedIsTheCallersErrorAndLeavesNothing) {
  driver.tell(
      [&](Core& core, Instant now, Actions& out) { core.set_max_concurrency(now, functions.find("f")->flow, 0, out); });
  InvokeRequest request;
  request.sdk_invocation_id = "once";
  const Reply reply = invoke("f", request);
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->error().code, Errc::kResourceExhausted);
  EXPECT_EQ(invocations.live(), 0U);
  driver.tell([&](Core& core, Instant now, Actions& out) {
    core.set_max_concurrency(now, functions.find("f")->flow, std::nullopt, out);
  });
  invoke("f", request);
  EXPECT_EQ(invocations.live(), 1U) << "the refused one's id is free";
}

TEST_F(InvocationsTest, TheReasonOfACrashIsInTheReply) {
  const Reply reply = invoke("f");
  ready(kFirst);
  gone(kFirst, "signal: killed");
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->value().kind, OutcomeKind::kCrashed);
  EXPECT_EQ((*reply)->value().failure, (Failure{.type = "", .text = "signal: killed"}));
  EXPECT_EQ((*reply)->value().payload, "");
  EXPECT_EQ(functions.find("f")->stats.crashes, 1U);
}

TEST_F(InvocationsTest, AnAnswerThatComesLateIsNoAnswer) {
  invoke("f");
  ready(kFirst);
  gone(kFirst, "signal: killed");
  EXPECT_FALSE(invocations.answered({.invocation = runner.delivered.back().second.id}));
}

TEST_F(InvocationsTest, ASubmittedOneKeepsItsPayloadUntilItIsOver) {
  std::vector<std::string> over;
  const FlowId flow = functions.find("f")->flow;
  ASSERT_TRUE(invocations.submit(flow, {.request_id = "r", .function = "f", .payload = "[1]"}, Instant::max(),
                                 [&](const Ended& ended) {
                                   over.push_back(ended.outcome != nullptr ? ended.outcome->payload : "none");
                                   EXPECT_EQ(ended.complete.flow, flow);
                                 }));
  ready(kFirst);
  EXPECT_EQ(runner.delivered.back().second.invocation.request_id, "r");
  answer("[2]");
  EXPECT_EQ(over, std::vector<std::string>{"[2]"});
}

TEST_F(InvocationsTest, AnAnswerThatTheNodeIsAtFaultForIsAnErrorOfTheApi) {
  const Reply reply = invoke("f");
  ready(kFirst);
  const InvocationId invocation = runner.delivered.back().second.id;
  ASSERT_TRUE(invocations.answered({.invocation = invocation,
                                    .is_error = true,
                                    .failure = {"KernelTask.Failed", "its outputs could not be kept"},
                                    .is_nodes_fault = true}));
  driver.tell([&](Core& core, Instant now, Actions& out) {
    const std::optional<DeviceUse> use = memory.report(kFirst, out);
    core.answered(now, invocation, /*is_error=*/true, charges.used(kFirst, use), out);
  });
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->error().code, Errc::kUnavailable);
  EXPECT_NE((*reply)->error().message.find("its outputs could not be kept"), std::string::npos);
}

TEST_F(InvocationsTest, ASubmittedOneHasItsDeadlineByTheMonotonicClock) {
  take_the_slot();
  const FlowId flow = functions.find("f")->flow;
  std::vector<OutcomeKind> over;
  const auto submit = [&](std::int64_t deadline_ms, Instant deadline) {
    return invocations.submit(flow, {.function = "f", .deadline_ms = deadline_ms}, deadline,
                              [&](const Ended& ended) { over.push_back(ended.complete.outcome); });
  };
  // The time of day was set since they were accepted: forward by an hour, then back.
  ASSERT_TRUE(submit(wall_clock_ms() - 3'600'000, monotonic_now() + std::chrono::hours(1)));
  ASSERT_TRUE(submit(wall_clock_ms() + 3'600'000, monotonic_now() + std::chrono::seconds(30)));
  driver.tell([&](Core& core, Instant now, Actions& out) { core.wake(now + std::chrono::seconds(31), out); });
  EXPECT_EQ(over, std::vector<OutcomeKind>{OutcomeKind::kExpired});
}

TEST_F(InvocationsTest, SubmittedOnesLeaveTheQueueAndOthersStay) {
  take_the_slot();
  bool is_over = false;
  invoke("f");
  ASSERT_TRUE(invocations.submit(functions.find("f")->flow, {.function = "f"}, Instant::max(), [&](const Ended& ended) {
    is_over = true;
    EXPECT_EQ(ended.outcome, nullptr);
  }));
  driver.tell([&](Core&, Instant now, Actions& out) { invocations.cancel_submitted(now, out); });
  EXPECT_TRUE(is_over);
  EXPECT_EQ(invocations.live(), 2U);
}

TEST_F(InvocationsTest, TheTenantAndTheCallersDeadlineTravelWithIt) {
  RegisteredFunction& function = functions.add({.name = "g"}, nullptr);
  function.record.config.tags[kTenantTag] = "acme";
  driver.core().add_function(flow_spec(function, tenants));
  InvokeRequest request;
  request.invocation.deadline_ms = wall_clock_ms() + 5'000;
  request.invocation.http = {.method = "POST", .path = "/a?b", .headers = {{"H", "v"}}};
  invoke("g", request);
  ready(kFirst);
  const DeliverRequest& delivered = runner.delivered.at(0).second;
  EXPECT_EQ(delivered.invocation.tenant, "acme");
  EXPECT_EQ(delivered.invocation.http, request.invocation.http);
  EXPECT_NEAR(static_cast<double>(delivered.deadline_epoch_ms), static_cast<double>(*request.invocation.deadline_ms),
              50)
      << "not the function's timeout, which is a minute away";
}

TEST_F(InvocationsTest, WhatItsCallerWaitsForNoLongerIsToldSoAndNotKept) {
  InvokeRequest request;
  request.sdk_invocation_id = "once";
  request.invocation.deadline_ms = wall_clock_ms() - 1;
  const Reply reply = invoke("f", request);
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->value().kind, OutcomeKind::kExpired);
  EXPECT_EQ((*reply)->value().failure.text, "was not started: its deadline passed after 0.00 seconds in the queue");
  EXPECT_TRUE(runner.started.empty());
  EXPECT_EQ(functions.find("f")->stats.errors, 1U);
  request.invocation.deadline_ms.reset();
  invoke("f", request);
  EXPECT_EQ(runner.started.size(), 1U) << "a repeat is an invocation of its own";
}

TEST_F(InvocationsTest, WhatTheNodeFailedIsAnErrorOfTheApiAndNotKeptForRepeats) {
  InvokeRequest request;
  request.sdk_invocation_id = "sdk-1";
  const Reply reply = invoke("f", request);
  gone(InstanceId(1), "the spawner has ended", /*is_nodes_fault=*/true);
  ASSERT_TRUE(*reply);
  EXPECT_EQ((**reply).error().code, Errc::kUnavailable);
  EXPECT_EQ((**reply).error().message,
            "the node failed the invocation, which did not begin: the spawner has ended; try again");
  const Reply again = invoke("f", request);
  EXPECT_FALSE(*again) << "it runs";
  ready(InstanceId(2));
  gone(InstanceId(2), "the spawner has ended", /*is_nodes_fault=*/true);
  EXPECT_EQ((**again).error().message,
            "the node failed the invocation, which had begun: the spawner has ended; try again");
}

}  // namespace
}  // namespace fairlead
