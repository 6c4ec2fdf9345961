#include "edge/lambda/lambda_outcome.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

Outcome failed(OutcomeKind kind, const std::string& text) {
  return {.request_id = "r-1", .kind = kind, .failure = {.type = "", .text = text}};
}

TEST(LambdaOutcome, WhatTheFunctionSaidIsPassedOn) {
  EXPECT_EQ(lambda_payload({.payload = "\xff{"}), "\xff{");
  EXPECT_EQ(lambda_payload({.kind = OutcomeKind::kFunctionError, .payload = ""}), "");
  EXPECT_EQ(lambda_payload({.kind = OutcomeKind::kStartFailed, .payload = "no model"}), "no model");
}

TEST(LambdaOutcome, WhatEndedAnInvocationHasLambdasNames) {
  EXPECT_EQ(
      lambda_payload(failed(OutcomeKind::kTimeout, "timed out after 3.00 seconds")),
      R"({"errorMessage":"RequestId: r-1 Error: Task timed out after 3.00 seconds","errorType":"Sandbox.Timedout"})");
  EXPECT_EQ(
      lambda_payload(failed(OutcomeKind::kCrashed, "exit status 3")),
      R"({"errorMessage":"RequestId: r-1 Error: Runtime exited: exit status 3","errorType":"Runtime.ExitError"})");
  EXPECT_EQ(lambda_payload(failed(OutcomeKind::kCrashed, "")),
            R"({"errorMessage":"RequestId: r-1 Error: Runtime exited: ","errorType":"Runtime.ExitError"})");
  EXPECT_EQ(lambda_payload(failed(OutcomeKind::kStartFailed, "exec: no such file")),
            R"({"errorMessage":"RequestId: r-1 Error: The function did not start: exec: no such file",)"
            R"("errorType":"Runtime.InitError"})");
}

TEST(LambdaOutcome, ARunnersOwnFailureKeepsItsName) {
  Outcome outcome = failed(OutcomeKind::kFunctionError, "x has 4 bytes");
  outcome.failure.type = "KernelTask.InvalidCall";
  EXPECT_EQ(lambda_payload(outcome), R"({"errorMessage":"x has 4 bytes","errorType":"KernelTask.InvalidCall"})");
  EXPECT_EQ(lambda_failure_text(outcome), "KernelTask.InvalidCall: x has 4 bytes");
}

TEST(LambdaOutcome, TheTextForPeopleIsTheMessageOrAllOfIt) {
  const auto text = [](const std::string& payload) {
    return lambda_failure_text({.kind = OutcomeKind::kFunctionError, .payload = payload});
  };
  EXPECT_EQ(text(R"({"errorType": "E", "errorMessage": "boom"})"), "E: boom");
  EXPECT_EQ(text(R"({"errorMessage": "boom"})"), "boom");
  EXPECT_EQ(text(R"({"errorMessage": 7})"), R"({"errorMessage": 7})");
  EXPECT_EQ(text("boom"), "boom");
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text(std::string(2000, 'x')), std::string(1000, 'x') + "...");
}

TEST(LambdaOutcome, TextThatIsNoUtf8IsReplacedAndNothingThrows) {
  EXPECT_NE(lambda_payload(failed(OutcomeKind::kCrashed, "\xff")).find("\xef\xbf\xbd"), std::string::npos);
}

TEST(LambdaOutcome, AnExpiredDeadlineHasANameOfItsOwn) {
  EXPECT_EQ(lambda_payload(failed(OutcomeKind::kExpired, "was not started: its deadline passed")),
            R"({"errorMessage":"RequestId: r-1 Error: Task was not started: its deadline passed",)"
            R"("errorType":"Sandbox.DeadlineExceeded"})");
  EXPECT_EQ(lambda_response(failed(OutcomeKind::kExpired, "")).status, 200u) << "SDKs would send what is 5xx again";
}

}  // namespace
}  // namespace fairlead
