// An answer that goes on as it is made: what is sent when, who waits for whom, and how it ends.
#include "edge/streamed_answer.h"

#include <gtest/gtest.h>

#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using Next = net::BodyStream::Next;

class Brackets : public AnswerFraming {
 public:
  net::HttpResponse head(const AnswerHead& head) override {
    return {.status = 200, .headers = {{"Content-Type", std::string(head.content_type)}}};
  }
  std::optional<net::HttpResponse> whole(Outcome&) override { return std::nullopt; }
  std::string part(std::string_view bytes) override { return "[" + std::string(bytes) + "]"; }
  std::optional<std::string> last(const Outcome& outcome) override {
    if (outcome.kind == OutcomeKind::kTimeout) return std::nullopt;
    return outcome.failed() ? "error " + outcome.payload : "end";
  }
};

class StreamedAnswerTest : public ::testing::Test {
 protected:
  StreamedAnswerTest() {
    node.add("f");
    node.hold = true;
    InvokeRequest request;
    request.invocation.function = "f";
    StreamedAnswer::invoke(node, net::HttpExchange(exchange), std::make_unique<Brackets>(), std::move(request));
    stream = node.invoked.back().stream;
  }

  void TearDown() override {
    if (stream) stream->on_change(nullptr);  // the test's counters go before the connection
  }

  // What the connection has to send now. Who finds nothing may have made room for what waited.
  std::string taken(Next& next) {
    std::string all, part;
    for (int nothing = 0; nothing < 2;) {
      next = exchange->response->stream->take(part);
      if (next == Next::kPart) all += part;
      if (next == Next::kEnd || next == Next::kCut) break;
      nothing = next == Next::kNothing ? nothing + 1 : 0;
    }
    return all;
  }
  std::string taken() {
    Next next;
    return taken(next);
  }
  Next end() {
    Next next;
    rest = taken(next);
    return next;
  }
  void finish(Result<Outcome> outcome) { std::exchange(node.held.back(), nullptr)(std::move(outcome)); }

  FakeNode node;
  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  std::shared_ptr<AnswerStream> stream;
  std::string rest;
};

TEST_F(StreamedAnswerTest, PartsGoOnAsTheyCome) {
  EXPECT_FALSE(exchange->response);
  stream->begin({.content_type = "text/plain"});
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(exchange->response_header("Content-Type"), "text/plain");
  stream->part("one");
  EXPECT_EQ(taken(), "[one]");
  stream->part("");
  stream->part("two");
  EXPECT_EQ(taken(), "[two]");
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(end(), Next::kEnd);
  EXPECT_EQ(rest, "end");
}

TEST_F(StreamedAnswerTest, AFailureAfterTheFirstPartIsTheFramingsToTell) {
  stream->begin({});
  stream->part("one");
  finish(Outcome{.kind = OutcomeKind::kFunctionError, .payload = "{}", .was_streamed = true});
  EXPECT_EQ(end(), Next::kEnd);
  EXPECT_EQ(rest, "[one]error {}");
}

TEST_F(StreamedAnswerTest, WhatHasNoWordCutsTheConnection) {
  stream->begin({});
  stream->part("one");
  finish(Outcome{.kind = OutcomeKind::kTimeout});
  EXPECT_EQ(end(), Next::kCut);
}

TEST_F(StreamedAnswerTest, AnErrorOfTheNodeCutsWhatHasBegun) {
  stream->begin({});
  finish(fail(Errc::kUnavailable, "the node failed the invocation"));
  EXPECT_EQ(end(), Next::kCut);
}

TEST_F(StreamedAnswerTest, ARefusalBeforeTheFirstPartHasItsStatus) {
  finish(fail(Errc::kResourceExhausted, "too many"));
  EXPECT_EQ(exchange->response->status, 429u);
  EXPECT_FALSE(exchange->response->stream);
}

TEST_F(StreamedAnswerTest, AnAnswerThatIsWholeIsSentWhole) {
  finish(Outcome{.payload = "all of it", .content_type = "text/plain"});
  EXPECT_EQ(exchange->response_header("Content-Type"), "text/plain");
  EXPECT_FALSE(exchange->response->stream) << "a body, which the server counts";
  EXPECT_EQ(exchange->response->body, "[all of it]end");
}

TEST_F(StreamedAnswerTest, ALargeOneThatIsWholeIsSentInPieces) {
  finish(Outcome{.payload = std::string(5 << 20, 'x')});
  EXPECT_EQ(exchange->response->body.size(), (5u << 20) + 2 * 20 + 3);  // 20 pieces
}

TEST_F(StreamedAnswerTest, ARepeatOfAStreamIsToldThatItIsNotKept) {
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(exchange->response->status, 409u);
}

TEST_F(StreamedAnswerTest, AClientThatReadsNothingHoldsSoMuchAndNoMore) {
  int changes = 0;
  stream->on_change([&] { ++changes; });
  stream->begin({});
  std::string sent;
  int parts = 0;
  while (!stream->is_full()) {
    stream->part(std::string(1000, static_cast<char>('a' + parts % 26)));
    sent += "[" + std::string(1000, static_cast<char>('a' + parts++ % 26)) + "]";
  }
  EXPECT_LE(sent.size(), StreamedAnswer::kMostWaiting + 1002);
  EXPECT_GE(sent.size(), StreamedAnswer::kMostWaiting);
  stream->part("late");  // was under way: it waits, too
  std::string part;
  std::string got;
  ASSERT_EQ(exchange->response->stream->take(part), Next::kPart);
  got += part;
  EXPECT_EQ(changes, 0) << "the bytes are being sent: there is no room yet";
  got += taken();
  EXPECT_GE(changes, 1);
  EXPECT_FALSE(stream->is_full());
  EXPECT_TRUE(got == sent + "[late]") << got.size();
}

TEST_F(StreamedAnswerTest, WhatWaitsAtTheEndIsSentBeforeIt) {
  stream->begin({});
  std::string sent;
  while (!stream->is_full()) {
    stream->part(std::string(9999, 'x'));
    sent += "[" + std::string(9999, 'x') + "]";
  }
  finish(Outcome{.was_streamed = true});
  stream.reset();  // the node keeps nothing of it
  node.invoked.clear();
  EXPECT_EQ(end(), Next::kEnd);
  EXPECT_TRUE(rest == sent + "end") << rest.size();
}

TEST_F(StreamedAnswerTest, BytesThatComeOneByOneWaitAsBytes) {
  stream->begin({});
  std::size_t sent = 0;
  for (; !stream->is_full(); ++sent) stream->part("x");  // framed one by one while there is room
  EXPECT_LE(sent, StreamedAnswer::kMostWaiting / 3 + 1);
  for (int i = 0; i < 60'000; ++i) stream->part("y");  // what was under way
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(end(), Next::kEnd);
  std::string wanted;
  for (std::size_t i = 0; i < sent; ++i) wanted += "[x]";
  wanted += "[" + std::string(60'000, 'y') + "]end";
  EXPECT_TRUE(rest == wanted) << rest.size();
}

TEST_F(StreamedAnswerTest, WhatWaitsIsSentBeforeACut) {
  stream->begin({});
  std::string sent;
  while (!stream->is_full()) {
    stream->part(std::string(9999, 'x'));
    sent += "[" + std::string(9999, 'x') + "]";
  }
  finish(Outcome{.kind = OutcomeKind::kTimeout});
  EXPECT_EQ(end(), Next::kCut);
  EXPECT_TRUE(rest == sent) << rest.size();
}

TEST_F(StreamedAnswerTest, AClientThatLeavesIsGone) {
  int changes = 0;
  stream->on_change([&] { ++changes; });
  EXPECT_FALSE(stream->is_gone());
  stream->begin({});
  EXPECT_FALSE(stream->is_gone());
  exchange->response->stream->close();
  exchange->response->stream->tell_writer();
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE(stream->is_gone());
  stream->part("nobody reads this");
  EXPECT_FALSE(stream->is_full());
  finish(Outcome{.was_streamed = true});  // no crash
}

TEST_F(StreamedAnswerTest, BeforeItBeginsAClientThatLeavesCancelsTheCall) {
  exchange->disconnected();
  EXPECT_EQ(node.cancelled, 1);
}

TEST_F(StreamedAnswerTest, AnInstanceThatBeginsAgainCutsWhatAnotherBegan) {
  stream->begin({});
  stream->part("half");
  stream->begin({});
  stream->part("whole");
  EXPECT_EQ(end(), Next::kCut);
}

TEST_F(StreamedAnswerTest, ItsHeadSaysWhatTheCallTook) {
  stream->begin({.delivery = {.start = StartKind::kCold, .queue_time = std::chrono::milliseconds(12), .gpu = GpuId(2)},
                 .version = 3});
  EXPECT_EQ(exchange->response_header("X-Amz-Executed-Version"), "3");
  EXPECT_EQ(exchange->response_header("X-Gpu-Queue-Ms"), "12.000");
  EXPECT_EQ(exchange->response_header("X-Gpu-Start"), "cold");
  EXPECT_EQ(exchange->response_header("X-Gpu-Device"), "2");
  EXPECT_GE(std::stod(std::string(exchange->response_header("X-Gpu-First-Byte-Ms"))), 0.0);
}

// As plain HTTP has it: an answer that begins with its head.
class WithPreludes final : public Brackets {
 public:
  bool reads_preludes() const override { return true; }
  std::optional<net::HttpResponse> whole(Outcome& outcome) override {
    return net::HttpResponse{.status = 200, .body = "whole " + outcome.failure.type + outcome.payload};
  }
};

class StreamedPreludeTest : public StreamedAnswerTest {
 protected:
  StreamedPreludeTest() {
    exchange = std::make_shared<FakeExchange>();
    InvokeRequest request;
    request.invocation.function = "f";
    StreamedAnswer::invoke(node, net::HttpExchange(exchange), std::make_unique<WithPreludes>(), std::move(request));
    stream = node.invoked.back().stream;
    stream->begin({.content_type = kPreludeType});
  }
  const std::string nuls = std::string(8, '\0');
};

TEST_F(StreamedPreludeTest, ThePreludeBecomesTheHead) {
  EXPECT_FALSE(exchange->response);
  const std::string text = R"({"statusCode": 404, "headers": {"Content-Type": "text/html"}})" + nuls + "<p>";
  for (const char c : text) stream->part(std::string_view(&c, 1));
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(exchange->response->status, 404u);
  EXPECT_EQ(exchange->response_header("Content-Type"), "text/html");
  stream->part("more");
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(end(), Next::kEnd);
  EXPECT_EQ(rest, "[<][p][>][more]end");
}

TEST_F(StreamedPreludeTest, WhatIsNoneIsAnErrorAndEndsTheStream) {
  stream->part("no JSON" + nuls + "body");
  EXPECT_FALSE(exchange->response);
  EXPECT_TRUE(stream->is_gone()) << "the function is told to stop";
  stream->part("more");
  finish(Outcome{.kind = OutcomeKind::kFunctionError,
                 .was_streamed = true,
                 .failure = {"Function.StreamCut", "the caller has left"}});
  EXPECT_EQ(exchange->response->body, "whole Function.InvalidPrelude");
}

TEST_F(StreamedPreludeTest, OneThatIsNotWholeAtTheEndIsAnError) {
  stream->part("{}");
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(exchange->response->body, "whole Function.InvalidPrelude");
}

TEST_F(StreamedPreludeTest, AFailureBeforeItIsWholeIsThatFailure) {
  stream->part("{}");
  finish(Outcome{.kind = OutcomeKind::kFunctionError, .payload = "said", .was_streamed = true});
  EXPECT_EQ(exchange->response->body, "whole said");
}

TEST_F(StreamedPreludeTest, ANodesErrorBeforeItIsWholeHasItsStatus) {
  stream->part("{}");
  finish(fail(Errc::kUnavailable, "the node failed"));
  EXPECT_EQ(exchange->response->status, 503u);
}

TEST_F(StreamedPreludeTest, AStatusWithoutABodyIsSentAloneAndTheFunctionGoesOn) {
  stream->part(R"({"statusCode": 204})" + nuls + "nobody's");
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(exchange->response->status, 204u);
  EXPECT_FALSE(exchange->response->stream);
  EXPECT_FALSE(stream->is_gone());
  stream->part("more");
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(exchange->response->body, "");
}

TEST_F(StreamedPreludeTest, AnInstanceThatBeginsAgainBeforeItIsWholeIsAnError) {
  stream->begin({.content_type = kPreludeType});
  stream->part("{}" + nuls);
  EXPECT_FALSE(exchange->response);
  finish(Outcome{.was_streamed = true});
  EXPECT_EQ(exchange->response->body, "whole Function.StreamCut");
}

}  // namespace
}  // namespace fairlead
