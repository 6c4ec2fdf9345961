#include "runtime/runtime_api.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr std::size_t kLimit = 100;

RuntimeCall get_next() {
  return parse_runtime_call("GET", "/2018-06-01/runtime/invocation/next");
}
RuntimeCall response(std::string_view id) {
  return {RuntimeRoute::kResponse, id};
}
RuntimeCall error(std::string_view id) {
  return {RuntimeRoute::kError, id};
}

RuntimeApi running(std::string_view id) {
  RuntimeApi api(kLimit);
  api.call(get_next(), 0);
  api.deliver(id);
  return api;
}

TEST(RuntimeCall, FindsRouteAndRequestId) {
  const RuntimeCall call = parse_runtime_call("POST", "/2018-06-01/runtime/invocation/a-b-1/response");
  EXPECT_EQ(call.route, RuntimeRoute::kResponse);
  EXPECT_EQ(call.request_id, "a-b-1");
  EXPECT_EQ(parse_runtime_call("POST", "/2018-06-01/runtime/invocation/x/error").route, RuntimeRoute::kError);
  EXPECT_EQ(parse_runtime_call("POST", "/2018-06-01/runtime/init/error").route, RuntimeRoute::kInitError);
  EXPECT_EQ(parse_runtime_call("GET", "/2018-06-01/ping").route, RuntimeRoute::kPing);
}

TEST(RuntimeCall, WrongMethodVersionOrPathIsUnknown) {
  for (const auto& [method, target] : {
           std::pair{"POST", "/2018-06-01/runtime/invocation/next"},
           std::pair{"GET", "/2018-06-01/runtime/invocation/x/response"},
           std::pair{"POST", "/2018-06-01/runtime/invocation/x/response/y"},
           std::pair{"POST", "/2018-06-01/runtime/invocation/x"},
           std::pair{"GET", "/2018-06-01/runtime/restore/next"},
           std::pair{"POST", "/2020-01-01/extension/register"},
           std::pair{"GET", "/"},
           std::pair{"GET", ""},
       }) {
    EXPECT_EQ(parse_runtime_call(method, target).route, RuntimeRoute::kUnknown) << method << ' ' << target;
  }
  RuntimeApi api(kLimit);
  EXPECT_EQ(api.call(parse_runtime_call("GET", "/2018-06-01/runtime/restore/next"), 0).status, 404u);
}

TEST(RuntimeApi, AnnouncesEachTimeItBeginsToWait) {
  RuntimeApi api(kLimit);
  EXPECT_FALSE(api.initialized());
  const RuntimeDecision first = api.call(get_next(), 0);
  EXPECT_EQ(first.action, RuntimeAction::kPoll);
  EXPECT_TRUE(first.announce);
  EXPECT_TRUE(api.deliver("r1"));
  EXPECT_EQ(api.call(response("r1"), 5).action, RuntimeAction::kAnswer);
  EXPECT_TRUE(api.call(get_next(), 0).announce);
}

TEST(RuntimeApi, SecondAnswerIsAnInvalidStateTransition) {
  RuntimeApi api = running("r1");
  EXPECT_EQ(api.call(error("r1"), 5).action, RuntimeAction::kFail);
  const RuntimeDecision again = api.call(response("r1"), 5);
  EXPECT_EQ(again.action, RuntimeAction::kReply);
  EXPECT_EQ(again.status, 403u);
  api.call(get_next(), 0);
  EXPECT_EQ(api.call(response("r1"), 5).status, 403u);
}

TEST(RuntimeApi, UnknownIdIsRefusedAndTheInvocationGoesOn) {
  RuntimeApi api = running("r1");
  const RuntimeDecision wrong = api.call(response("r2"), 5);
  EXPECT_EQ(wrong.status, 400u);
  EXPECT_NE(wrong.body.find("InvalidRequestID"), std::string_view::npos);
  EXPECT_TRUE(api.running());
  EXPECT_EQ(api.call(response("r1"), 5).status, 202u);
}

TEST(RuntimeApi, AnAnswerBeforeTheFirstNextIsRefused) {
  RuntimeApi api(kLimit);
  EXPECT_EQ(api.call(response(""), 5).status, 400u);
  EXPECT_EQ(api.call(response("r1"), 5).status, 400u);
}

TEST(RuntimeApi, NextWhileRunningOrAlreadyWaitingIsRefused) {
  RuntimeApi api = running("r1");
  EXPECT_EQ(api.call(get_next(), 0).status, 403u);
  EXPECT_EQ(api.call(response("r1"), 0).status, 202u);
  EXPECT_EQ(api.call(get_next(), 0).action, RuntimeAction::kPoll);
  EXPECT_EQ(api.call(get_next(), 0).status, 403u);
}

TEST(RuntimeApi, TooLargeAnswerEndsTheInvocation) {
  RuntimeApi api = running("r1");
  const RuntimeDecision decision = api.call(response("r1"), kLimit + 1);
  EXPECT_EQ(decision.action, RuntimeAction::kTooLarge);
  EXPECT_EQ(decision.status, 413u);
  EXPECT_FALSE(api.running());
  EXPECT_TRUE(api.call(get_next(), 0).announce);

  RuntimeApi exact = running("r1");
  EXPECT_EQ(exact.call(response("r1"), kLimit).action, RuntimeAction::kAnswer);
}

TEST(RuntimeApi, DeliveryAfterALostPollWaitsForTheFollowingNext) {
  RuntimeApi api(kLimit);
  api.call(get_next(), 0);
  api.poll_lost();
  EXPECT_TRUE(api.accepts_delivery());
  EXPECT_FALSE(api.deliver("r1"));
  EXPECT_EQ(api.call(response("r1"), 5).status, 403u) << "it cannot know the id yet";
  EXPECT_EQ(api.call(get_next(), 0).action, RuntimeAction::kSend);
  EXPECT_EQ(api.call(response("r1"), 5).action, RuntimeAction::kAnswer);
}

TEST(RuntimeApi, ReconnectingPollIsNotAnnouncedTwice) {
  RuntimeApi api(kLimit);
  api.call(get_next(), 0);
  api.poll_lost();
  const RuntimeDecision again = api.call(get_next(), 0);
  EXPECT_EQ(again.action, RuntimeAction::kPoll);
  EXPECT_FALSE(again.announce);
}

TEST(RuntimeApi, InitErrorOnlyBeforeTheFirstNext) {
  RuntimeApi api(kLimit);
  const RuntimeCall call{RuntimeRoute::kInitError, {}};
  EXPECT_EQ(api.call(call, 5).action, RuntimeAction::kInitError);
  api.call(get_next(), 0);
  EXPECT_EQ(api.call(call, 5).status, 403u);
}

// ---- answers in parts

TEST(RuntimeApi, AStreamIsAnsweredAtItsEnd) {
  RuntimeApi api = running("a");
  EXPECT_TRUE(api.begin_stream(response("a")));
  EXPECT_TRUE(api.running());
  EXPECT_EQ(api.call(get_next(), 0).status, 403u) << "it has yet to end";
  EXPECT_EQ(api.end_stream().action, RuntimeAction::kAnswer);
  EXPECT_FALSE(api.running());
  EXPECT_EQ(api.call(get_next(), 0).action, RuntimeAction::kPoll);
}

TEST(RuntimeApi, ACutStreamLetsTheFunctionAskForTheNext) {
  RuntimeApi api = running("a");
  EXPECT_TRUE(api.begin_stream(response("a")));
  api.cut_stream();
  EXPECT_FALSE(api.streaming());
  EXPECT_EQ(api.call(response("a"), 1).status, 403u);
  EXPECT_EQ(api.call(get_next(), 0).action, RuntimeAction::kPoll);
}

TEST(RuntimeApi, OnlyTheRunningInvocationsResponseIsAStream) {
  RuntimeApi api(kLimit);
  EXPECT_FALSE(api.begin_stream(response("a")));  // starting
  api = running("a");
  EXPECT_FALSE(api.begin_stream(response("b")));
  EXPECT_FALSE(api.begin_stream(error("a")));
  EXPECT_FALSE(api.begin_stream(get_next()));
  EXPECT_TRUE(api.begin_stream(response("a")));
  EXPECT_FALSE(api.begin_stream(response("a"))) << "one at a time";
  EXPECT_EQ(api.call(response("a"), 1).status, 403u);
  EXPECT_EQ(api.call(error("a"), 1).status, 403u);
  api.end_stream();
  EXPECT_FALSE(api.begin_stream(response("a")));
}

TEST(RuntimeApi, WhatWasNotFetchedCannotBeStreamed) {
  RuntimeApi api(kLimit);
  api.call(get_next(), 0);
  api.poll_lost();
  api.deliver("a");
  EXPECT_FALSE(api.begin_stream(response("a")));
}

}  // namespace
}  // namespace fairlead
