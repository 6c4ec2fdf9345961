#include "fairlead/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "tests/fake_runtime_api.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Transport = FakeRuntimeApi::Transport;

constexpr char kNext[] = "/2018-06-01/runtime/invocation/next";

Response echo(const Event& event) {
  return Response(std::string(event.payload));
}

// A function under test in its own thread. end() takes the API away and waits for run() to return.
class RunningFunction {
 public:
  RunningFunction(FakeRuntimeApi& api, Handler handler) : api_(api) {
    done_ = std::async(std::launch::async, [&api, handler] { return run(handler, api.endpoint()); });
  }
  ~RunningFunction() {
    if (done_.valid()) end();
  }
  int wait() { return done_.get(); }
  int end() {
    api_.stop_listening();
    api_.close_connection();
    return wait();
  }

 private:
  FakeRuntimeApi& api_;
  std::future<int> done_;
};

class RuntimeTest : public ::testing::TestWithParam<Transport> {
 protected:
  void expect_next_request() {
    const ReceivedRequest next = api_.read_request();
    EXPECT_EQ(next.method, "GET");
    EXPECT_EQ(next.path, kNext);
  }

  void expect_response(const std::string& request_id, const std::string& body) {
    const ReceivedRequest post = api_.read_request();
    EXPECT_EQ(post.method, "POST");
    EXPECT_EQ(post.path, "/2018-06-01/runtime/invocation/" + request_id + "/response");
    EXPECT_EQ(post.body, body);
  }

  FakeRuntimeApi api_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Transports, RuntimeTest, ::testing::Values(Transport::kUnix, Transport::kTcp),
                         [](const auto& transport) { return transport.param == Transport::kUnix ? "Unix" : "Tcp"; });

TEST_P(RuntimeTest, AnswersOneEventAfterAnother) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  for (const std::string id : {"a-1", "b-2", "c-3"}) {
    api_.send_event(id, "{\"for\":\"" + id + "\"}");
    expect_response(id, "{\"for\":\"" + id + "\"}");
    expect_next_request();
    api_.send_accepted();
  }
}

TEST_P(RuntimeTest, ResponseAndNextRequestTravelInOneWrite) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("a", "12345");
  const std::string received = api_.receive_once();
  EXPECT_THAT(received, StartsWith("POST /2018-06-01/runtime/invocation/a/response "));
  EXPECT_THAT(received, HasSubstr(std::string("\r\n\r\n12345GET ") + kNext));
}

TEST_P(RuntimeTest, ReadsAcknowledgementAndEventFromOnePacket) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("a", "1");
  expect_response("a", "1");
  expect_next_request();
  api_.send(FakeRuntimeApi::accepted() + FakeRuntimeApi::event("b", "2"));
  expect_response("b", "2");
}

TEST_P(RuntimeTest, ReadsAnswersThatArriveByteByByte) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_bytewise(FakeRuntimeApi::event("a", "slow"));
  expect_response("a", "slow");
  expect_next_request();
  api_.send_bytewise(FakeRuntimeApi::accepted() + FakeRuntimeApi::event("b", "slower"));
  expect_response("b", "slower");
}

TEST_P(RuntimeTest, CarriesMegabytesBothWays) {
  std::string payload(8 << 20, 'x');
  for (std::size_t i = 0; i < payload.size(); i += 977) payload[i] = static_cast<char>(i);
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("big", payload);
  expect_response("big", payload);
  expect_next_request();
  api_.send(FakeRuntimeApi::accepted() + FakeRuntimeApi::event("small", "s"));
  expect_response("small", "s");
}

TEST_P(RuntimeTest, ReadsChunkedEvents) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: c\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nTrailer: t\r\n\r\n";
  api_.send_bytewise(chunked);
  expect_response("c", "hello, world");
  expect_next_request();
  api_.send(FakeRuntimeApi::accepted() + chunked);
  expect_response("c", "hello, world");
}

TEST_P(RuntimeTest, HandlerSeesTheEventsFields) {
  Event seen;
  std::string id;
  RunningFunction function(api_, [&](const Event& event) {
    seen = event;
    id = event.request_id;
    EXPECT_EQ(event.function_arn, "arn:aws:lambda:local:0:function:f");
    EXPECT_EQ(event.trace_id, "Root=1-2-3");
    EXPECT_EQ(event.content_type, "application/json");
    EXPECT_EQ(event.client_context, "");
    return Response("raw", "application/octet-stream");
  });
  api_.accept();
  expect_next_request();
  api_.send_event("the-id", "");
  const ReceivedRequest post = api_.read_request();
  EXPECT_EQ(post.headers.at("content-type"), "application/octet-stream");
  EXPECT_EQ(post.body, "raw");
  function.end();
  EXPECT_EQ(id, "the-id");
  EXPECT_EQ(seen.deadline_ms, 1700000000123);
}

TEST_P(RuntimeTest, ExceptionBecomesFunctionErrorAndTheNextEventIsServed) {
  RunningFunction function(api_, [](const Event& event) -> Response {
    if (event.payload == "std") throw std::runtime_error("it \"broke\"\n");
    throw Error("Custom.Kind", "own text");
  });
  api_.accept();
  expect_next_request();
  api_.send_event("a", "std");
  const ReceivedRequest plain = api_.read_request();
  EXPECT_EQ(plain.path, "/2018-06-01/runtime/invocation/a/error");
  EXPECT_EQ(plain.headers.at("lambda-runtime-function-error-type"), "Runtime.HandlerFailed");
  EXPECT_EQ(plain.body, R"({"errorMessage":"it \"broke\"\u000a","errorType":"Runtime.HandlerFailed","stackTrace":[]})");
  expect_next_request();
  api_.send(FakeRuntimeApi::accepted() + FakeRuntimeApi::event("b", "own"));
  const ReceivedRequest typed = api_.read_request();
  EXPECT_EQ(typed.headers.at("lambda-runtime-function-error-type"), "Custom.Kind");
  EXPECT_THAT(typed.body, HasSubstr("own text"));
}

TEST_P(RuntimeTest, TerminalErrorIsReportedAndEndsTheRun) {
  RunningFunction function(
      api_, [](const Event&) -> Response { throw Error("Gpu.Lost", "context lost", Error::Scope::kTerminal); });
  api_.accept();
  expect_next_request();
  api_.send_event("a", "");
  EXPECT_EQ(api_.read_request().path, "/2018-06-01/runtime/invocation/a/error");
  api_.send_accepted();
  EXPECT_EQ(function.wait(), EXIT_FAILURE);
}

TEST_P(RuntimeTest, FailedInitialisationIsReported) {
  auto done = std::async(std::launch::async, [&] {
    return run_with_init([]() -> Handler { throw Error("Gpu.NoDriver", "no GPU here"); }, api_.endpoint());
  });
  api_.accept();
  const ReceivedRequest post = api_.read_request();
  EXPECT_EQ(post.path, "/2018-06-01/runtime/init/error");
  EXPECT_EQ(post.headers.at("lambda-runtime-function-error-type"), "Gpu.NoDriver");
  EXPECT_THAT(post.body, HasSubstr("no GPU here"));
  api_.send_accepted();
  EXPECT_EQ(done.get(), EXIT_FAILURE);
}

TEST_P(RuntimeTest, ConnectionClosedWhileWaitingIsOpenedAgain) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.accept();  // closes the first connection
  expect_next_request();
  api_.send_event("a", "after");
  expect_response("a", "after");
}

TEST_P(RuntimeTest, UnacknowledgedResponseIsSentAgain) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("a", "precious");
  expect_response("a", "precious");
  expect_next_request();
  api_.accept();
  expect_response("a", "precious");
  expect_next_request();
}

TEST_P(RuntimeTest, AcknowledgedResponseIsNotSentAgain) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("a", "once");
  expect_response("a", "once");
  expect_next_request();
  api_.send_accepted();
  api_.accept();
  expect_next_request();
}

TEST_P(RuntimeTest, RefusedAnswerDoesNotStopTheFunction) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send_event("a", "too much");
  expect_response("a", "too much");
  expect_next_request();
  api_.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\n\r\n{}" + FakeRuntimeApi::event("b", "less"));
  expect_response("b", "less");
}

TEST_P(RuntimeTest, EndsWhenTheApiIsGone) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  EXPECT_EQ(function.end(), EXIT_FAILURE);
}

TEST_P(RuntimeTest, EndsWhenNextIsRefused) {
  RunningFunction function(api_, echo);
  api_.accept();
  expect_next_request();
  api_.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(function.wait(), EXIT_FAILURE);
}

TEST_P(RuntimeTest, EndsOnNonsense) {
  for (const char* nonsense : {"SMTP ready\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
                               "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    RunningFunction function(api_, echo);
    api_.accept();
    expect_next_request();
    api_.send(nonsense);
    EXPECT_EQ(function.wait(), EXIT_FAILURE) << nonsense;
  }
}

class EndpointTest : public ::testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    ::unsetenv("FAIRLEAD_RUNTIME_SOCKET");
    ::unsetenv("AWS_LAMBDA_RUNTIME_API");
  }
};

TEST_F(EndpointTest, SocketIsPreferred) {
  ::setenv("FAIRLEAD_RUNTIME_SOCKET", "/run/api.sock", 1);
  ::setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001", 1);
  EXPECT_EQ(Endpoint::from_environment().socket_path, "/run/api.sock");
}

TEST_F(EndpointTest, HostAndPortAreSplit) {
  ::setenv("AWS_LAMBDA_RUNTIME_API", "[::1]:9001", 1);
  EXPECT_EQ(Endpoint::from_environment().host, "::1");
  EXPECT_EQ(Endpoint::from_environment().port, "9001");
}

TEST_F(EndpointTest, NothingSetIsNamed) {
  try {
    Endpoint::from_environment();
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("AWS_LAMBDA_RUNTIME_API"));
  }
}

}  // namespace
}  // namespace fairlead
