#include "edge/native/kernel_tasks.h"

#include "edge/testing/edge_fixture.h"
#include "wire/kernel_task_codec.h"

namespace fairlead {
namespace {

// The edge that answers outcomes is another; here one that says the kind and the payload.
net::HttpResponse plainly(Outcome outcome) {
  return {.headers = {{"Kind", std::string(outcome_name(outcome.kind))}, {"Id", outcome.request_id}},
          .body = std::move(outcome.payload)};
}

class KernelTaskRoutes : public EdgeTest {
 protected:
  KernelTaskRoutes() { serve(native_edge(node_.io, node_, plainly)); }
};

constexpr const char* kBody = R"({"task": {"kernels": []}, "files": {"k.ptx": "YWJj"}, "call": {"inputs": {}}})";

TEST_F(KernelTaskRoutes, ARequestIsReadAndItsOutcomeAnsweredInTheWordsItWasGiven) {
  node_.reply = Outcome{.request_id = "r-1", .payload = R"({"outputs":{}})", .content_type = "application/json"};
  const FakeExchange answer =
      call("POST", "/v1/ktasks", kBody,
           {{"X-Fairlead-Tenant", "acme"}, {"amz-sdk-invocation-id", "i-1"}, {"X-Fairlead-Deadline-Ms", "100"}});
  EXPECT_EQ(200U, answer.response->status);
  EXPECT_EQ(R"({"outputs":{}})", answer.response->body);
  EXPECT_EQ("r-1", answer.response_header("Id"));
  EXPECT_EQ("success", answer.response_header("Kind"));
  const KernelTaskRequest expected{
      .task = R"({"kernels":[]})", .files = {{"k.ptx", "abc"}}, .call = R"({"inputs":{}})"};
  EXPECT_EQ(expected, node_.last_run.request);
  EXPECT_EQ("acme", node_.last_run.tenant);
  EXPECT_EQ("i-1", node_.last_run.sdk_invocation_id);
  EXPECT_TRUE(node_.last_run.deadline_ms);
}

TEST_F(KernelTaskRoutes, TheBinaryFormIsKnownByItsBeginning) {
  const KernelTaskRequest request{.task = "{}", .files = {{"k", "abc"}}, .timeout_seconds = 5, .call = "x"};
  EXPECT_EQ(200U, call("POST", "/v1/ktasks", wire::encode(request)).response->status);
  EXPECT_EQ(request, node_.last_run.request);
  EXPECT_EQ("default", node_.last_run.tenant);
  expect_error(call("POST", "/v1/ktasks", wire::encode(request) + "x"), 400, "InvalidParameterValueException",
               "1 bytes follow the end");
}

TEST_F(KernelTaskRoutes, ATaskThatFailedIsAnOutcomeToo) {
  node_.reply = Outcome{.kind = OutcomeKind::kFunctionError, .payload = "{}"};
  EXPECT_EQ("function_error", call("POST", "/v1/ktasks", kBody).response_header("Kind"));
}

TEST_F(KernelTaskRoutes, RefusalsNameWhatIsWrong) {
  expect_error(call("POST", "/v1/ktasks", "{"), 400, "InvalidParameterValueException", "the request: parse error");
  expect_error(call("POST", "/v1/ktasks", "{}"), 400, "InvalidParameterValueException", "no 'task'");
  expect_error(call("POST", "/v1/ktasks", kBody, {{"X-Fairlead-Tenant", "../a"}}), 400,
               "InvalidParameterValueException", "tenant");
  expect_error(call("POST", "/v1/ktasks", kBody, {{"X-Fairlead-Deadline-Ms", "soon"}}), 400,
               "InvalidParameterValueException", "X-Fairlead-Deadline-Ms is 'soon'");
  expect_error(call("POST", "/v1/ktasks", std::string(60 << 20, ' ')), 413, "RequestTooLargeException",
               "62914560 bytes; at most");
  expect_error(call("GET", "/v1/ktasks"), 405, "UnknownOperationException", "POST");
  node_.reply = fail(Errc::kResourceExhausted, "too many are in use");
  expect_error(call("POST", "/v1/ktasks", kBody), 429, "TooManyRequestsException", "too many are in use");
}

TEST_F(KernelTaskRoutes, WhatIsLargeIsReadOnAnotherThread) {
  EXPECT_EQ(200U, call("POST", "/v1/ktasks", kBody).response->status);
  EXPECT_EQ(0, node_.jobs);
  const std::string large = std::string(100 << 10, ' ') + kBody;
  EXPECT_EQ(200U, call("POST", "/v1/ktasks", large).response->status);
  EXPECT_EQ(1, node_.jobs);
  expect_error(call("POST", "/v1/ktasks", std::string(100 << 10, '[')), 400, "InvalidParameterValueException",
               "nested deeper than 64 levels");
  EXPECT_EQ(2, node_.jobs);
}

TEST_F(KernelTaskRoutes, WhoDisconnectsCancels) {
  node_.hold = true;
  const auto exchange = begin("POST", "/v1/ktasks", kBody);
  ASSERT_TRUE(exchange->disconnected);
  exchange->disconnected();
  EXPECT_EQ(1, node_.cancelled);
}

}  // namespace
}  // namespace fairlead
