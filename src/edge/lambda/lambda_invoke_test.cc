#include "edge/lambda/lambda_invoke.h"

#include "base/clock.h"
#include "edge/lambda/lambda_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

const std::string kInvoke = "/2015-03-31/functions/f/invocations";

class LambdaInvoke : public EdgeTest {
 protected:
  LambdaInvoke() {
    serve(lambda_edge(node_));
    node_.add("f");
  }
};

TEST_F(LambdaInvoke, ReturnsTheFunctionsAnswer) {
  Outcome reply{.request_id = "id-1", .payload = std::string("\0\xff{", 3), .content_type = "image/png"};
  reply.start = StartKind::kCold;
  reply.queue_time = std::chrono::microseconds(1500);
  reply.gpu_time = std::chrono::milliseconds(20);
  reply.gpu = GpuId(2);
  node_.reply = reply;
  const auto exchange = call("POST", kInvoke, std::string("in\0put", 6));
  EXPECT_EQ(200u, exchange.response->status);
  EXPECT_EQ(std::string("\0\xff{", 3), exchange.response->body);
  EXPECT_EQ("image/png", exchange.response_header("Content-Type"));
  EXPECT_EQ("id-1", exchange.response_header("x-amzn-RequestId"));
  EXPECT_EQ("$LATEST", exchange.response_header("X-Amz-Executed-Version"));
  EXPECT_EQ("", exchange.response_header("X-Amz-Function-Error"));
  EXPECT_EQ("", exchange.response_header("X-Amz-Log-Result"));
  EXPECT_EQ("1.500", exchange.response_header("X-Gpu-Queue-Ms"));
  EXPECT_EQ("20.000", exchange.response_header("X-Gpu-Exec-Ms"));
  EXPECT_EQ("cold", exchange.response_header("X-Gpu-Start"));
  EXPECT_EQ("2", exchange.response_header("X-Gpu-Device"));
  ASSERT_EQ(1u, node_.invoked.size());
  EXPECT_EQ("f", node_.invoked[0].invocation.function);
  EXPECT_EQ(std::string("in\0put", 6), node_.invoked[0].invocation.payload);
  EXPECT_FALSE(node_.invoked[0].want_log_tail);
}

TEST_F(LambdaInvoke, PassesWhatTheClientSent) {
  Outcome reply;
  reply.log_tail = "line\n";
  node_.reply = reply;
  const auto exchange = call("POST", kInvoke, "{}",
                             {{"X-Amz-Log-Type", "Tail"},
                              {"X-Amz-Client-Context", "eyJhIjoxfQ=="},
                              {"amz-sdk-invocation-id", "sdk-7"},
                              {"X-Amzn-Trace-Id", "Root=1"}});
  EXPECT_EQ("bGluZQo=", exchange.response_header("X-Amz-Log-Result"));
  EXPECT_EQ("application/json", exchange.response_header("Content-Type"));
  const InvokeRequest& request = node_.invoked.at(0);
  EXPECT_TRUE(request.want_log_tail);
  EXPECT_EQ("{\"a\":1}", request.invocation.client_context);
  EXPECT_EQ("sdk-7", request.sdk_invocation_id);
  EXPECT_EQ("Root=1", request.invocation.trace_id);
}

TEST_F(LambdaInvoke, AFunctionErrorIsStatus200) {
  Outcome reply;
  reply.kind = OutcomeKind::kFunctionError;
  reply.payload = "{\"errorMessage\":\"x\"}";
  node_.reply = reply;
  const auto exchange = call("POST", kInvoke);
  EXPECT_EQ(200u, exchange.response->status);
  EXPECT_EQ("Unhandled", exchange.response_header("X-Amz-Function-Error"));
}

TEST_F(LambdaInvoke, TakesNamesArnsAndTheLatestQualifier) {
  for (const char* path : {"f", "f%3A%24LATEST", "arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Af",
                           "000000000000%3Afunction%3Af"}) {
    EXPECT_EQ(200u, call("POST", fmt::format("/2015-03-31/functions/{}/invocations", path)).response->status) << path;
  }
  EXPECT_EQ(200u, call("POST", kInvoke + "?Qualifier=%24LATEST").response->status);
  for (const InvokeRequest& request : node_.invoked) EXPECT_EQ("f", request.invocation.function);
  expect_error(call("POST", kInvoke + "?Qualifier=3"), 404, "ResourceNotFoundException", "function:f:3");
}

TEST_F(LambdaInvoke, AnEventIsAcceptedWith202) {
  const auto exchange = call("POST", kInvoke, "e", {{"X-Amz-Invocation-Type", "Event"}});
  EXPECT_EQ(202u, exchange.response->status);
  EXPECT_EQ("", exchange.response->body);
  EXPECT_EQ("event-1", exchange.response_header("x-amzn-RequestId"));
  EXPECT_EQ("e", node_.events.at(0).invocation.payload);
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(LambdaInvoke, AnEventThatIsNotAcceptedIsAnError) {
  node_.event_id = fail(Errc::kIo, "disk full");
  expect_error(call("POST", kInvoke, "e", {{"X-Amz-Invocation-Type", "Event"}}), 500, "ServiceException", "disk full");
}

TEST_F(LambdaInvoke, ADryRunRunsNothing) {
  const auto exchange = call("POST", kInvoke, "", {{"X-Amz-Invocation-Type", "DryRun"}});
  EXPECT_EQ(204u, exchange.response->status);
  EXPECT_TRUE(node_.invoked.empty());
  expect_error(call("POST", "/2015-03-31/functions/g/invocations", "", {{"X-Amz-Invocation-Type", "DryRun"}}), 404,
               "ResourceNotFoundException", "g");
}

TEST_F(LambdaInvoke, RefusesBadInput) {
  const std::string bad = "InvalidParameterValueException";
  expect_error(call("POST", kInvoke, "", {{"X-Amz-Invocation-Type", "Sync"}}), 400, bad, "'Sync'");
  expect_error(call("POST", kInvoke, "", {{"X-Amz-Log-Type", "All"}}), 400, bad, "'All'");
  expect_error(call("POST", kInvoke, "", {{"X-Amz-Client-Context", "!"}}), 400, bad, "X-Amz-Client-Context");
  expect_error(call("POST", kInvoke, "", {{"X-Amz-Client-Context", std::string(3584, 'A')}}), 400, bad, "3583");
  expect_error(call("POST", "/2015-03-31/functions/bad%20name/invocations"), 400, bad, "'bad name'");
  expect_error(call("POST", "/2015-03-31/functions/%zz/invocations"), 400, bad, "%zz");
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(LambdaInvoke, ACallersDeadlineIsATimeThatIsTheSameForAll) {
  const std::int64_t before = wall_clock_ms();
  call("POST", kInvoke, "", {{"X-Fairlead-Deadline-Ms", "1500"}});
  call("POST", kInvoke, "", {{"X-Fairlead-Deadline-Ms", "86400000"}, {"X-Amz-Invocation-Type", "Event"}});
  call("POST", kInvoke);
  const std::int64_t after = wall_clock_ms();
  const auto deadline = node_.invoked.at(0).invocation.deadline_ms;
  ASSERT_TRUE(deadline);
  EXPECT_GE(*deadline, before + 1500);
  EXPECT_LE(*deadline, after + 1500);
  EXPECT_GE(node_.events.at(0).invocation.deadline_ms, before + 86'400'000);
  EXPECT_EQ(std::nullopt, node_.invoked.at(1).invocation.deadline_ms);
}

TEST_F(LambdaInvoke, ADeadlineThatIsNoneIsRefusedWithItsBounds) {
  for (const char* text : {"0", "-1", "86400001", "1.5", "1s", " 1", "99999999999999999999"}) {
    expect_error(call("POST", kInvoke, "", {{"X-Fairlead-Deadline-Ms", text}}), 400, "InvalidParameterValueException",
                 fmt::format("X-Fairlead-Deadline-Ms is '{}'; it must be between 1 and 86400000", text));
  }
  EXPECT_TRUE(node_.invoked.empty());
}

TEST_F(LambdaInvoke, PayloadLimitsAreExact) {
  const Headers event{{"X-Amz-Invocation-Type", "Event"}};
  EXPECT_EQ(200u, call("POST", kInvoke, std::string(kMaxSyncPayloadBytes, 'x')).response->status);
  EXPECT_EQ(202u, call("POST", kInvoke, std::string(kMaxAsyncPayloadBytes, 'x'), event).response->status);
  expect_error(call("POST", kInvoke, std::string(kMaxSyncPayloadBytes + 1, 'x')), 413, "RequestTooLargeException",
               "6291457 bytes; RequestResponse invocations may have at most 6291456");
  expect_error(call("POST", kInvoke, std::string(kMaxAsyncPayloadBytes + 1, 'x'), event), 413,
               "RequestTooLargeException", "1048577 bytes; Event");
}

TEST_F(LambdaInvoke, AFullQueueIsA429ThatNamesItsReason) {
  node_.reply = fail(Errc::kResourceExhausted, "queue of f: 1000 invocations wait, the limit is 1000");
  auto exchange = call("POST", kInvoke);
  expect_error(exchange, 429, "TooManyRequestsException", "the limit is 1000");
  EXPECT_EQ("1", exchange.response_header("Retry-After"));
  EXPECT_EQ("ConcurrentInvocationLimitExceeded", exchange.json()["Reason"]);
  node_.functions["f"].reserved_concurrency = 0;
  exchange = call("POST", kInvoke);
  EXPECT_EQ("ReservedFunctionConcurrentInvocationLimitExceeded", exchange.json()["Reason"]);
}

TEST_F(LambdaInvoke, NodeErrorsKeepTheirMeaning) {
  node_.reply = fail(Errc::kUnavailable, "the node is shutting down");
  auto exchange = call("POST", kInvoke);
  expect_error(exchange, 503, "ServiceException", "shutting down");
  EXPECT_EQ("1", exchange.response_header("Retry-After"));
  EXPECT_EQ("Service", exchange.json()["Type"]);
  node_.reply = fail(Errc::kInternal, "bad \xff bytes");
  expect_error(call("POST", kInvoke), 500, "ServiceException", "bad");
  expect_error(call("POST", "/2015-03-31/functions/g/invocations"), 404, "ResourceNotFoundException", "g");
}

TEST_F(LambdaInvoke, AClientThatLeavesCancelsItsInvocation) {
  node_.hold = true;
  const auto exchange = begin("POST", kInvoke);
  ASSERT_FALSE(exchange->response);
  ASSERT_TRUE(exchange->disconnected);
  exchange->disconnected();
  EXPECT_EQ(1, node_.cancelled);
}

TEST_F(LambdaInvoke, AnswersLater) {
  node_.hold = true;
  const auto exchange = begin("POST", kInvoke);
  Outcome reply;
  reply.payload = "late";
  node_.held.at(0)(reply);
  EXPECT_EQ("late", exchange->response->body);
  node_.held.clear();
  EXPECT_FALSE(exchange->abandoned);
}

TEST_F(LambdaInvoke, UnknownPathsAndMethodsAreUnknownOperations) {
  expect_error(call("GET", "/"), 404, "UnknownOperationException", "GET /: there is no such operation");
  expect_error(call("POST", "/2020-06-30/functions/f/code-signing-config"), 404, "UnknownOperationException",
               "no such operation");
  const auto exchange = call("GET", kInvoke);
  expect_error(exchange, 405, "UnknownOperationException", "this path allows POST");
  EXPECT_EQ("POST", exchange.response_header("Allow"));
}

}  // namespace
}  // namespace fairlead
