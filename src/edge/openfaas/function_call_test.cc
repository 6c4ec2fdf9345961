// Calls through /function and /async-function: what the function is told, what its caller is answered, where a callback goes.
#include "edge/openfaas/function_call.h"

#include <algorithm>

#include "edge/openfaas/openfaas_error.h"
#include "edge/stream_prelude.h"
#include "edge/testing/edge_fixture.h"
#include "net/http_stream.h"

namespace fairlead::openfaas {
namespace {

using ::testing::HasSubstr;

class FunctionCall : public EdgeTest {
 protected:
  FunctionCall() {
    Edge edge{.name = "openfaas", .prefixes = {"/function", "/async-function"}, .errors = errors()};
    add_call_routes(edge.routes, node_, callbacks_, {.callbacks = RegistryRules::parse({"public", "h:80"}).value()});
    serve(std::move(edge));
    node_.add("f");
    FunctionConfig acmes;
    acmes.tags["gpu:tenant"] = "acme";
    node_.add("g", acmes);
    node_.reply = Outcome{.request_id = "id-1", .payload = "said", .content_type = "text/plain"};
  }

  const HttpPart& http() const { return *node_.invoked.back().invocation.http; }
  std::string header(std::string_view wanted) const {
    for (const auto& [name, value] : http().headers) {
      if (name == wanted) return value;
    }
    return "";
  }

  std::vector<Callback> posted_;
  std::shared_ptr<Callbacks> callbacks_ = std::make_shared<Callbacks>(
      node_.io, [this](const Callback& callback, const std::function<void(Status)>&) { posted_.push_back(callback); });
};

TEST_F(FunctionCall, MethodPathQueryHeadersAndBodyReachTheFunction) {
  const auto answer =
      call("PUT", "/function/f.openfaas-fn/a%2Fb/c?x=1&y=%20", "body", {{"X-A", "1"}, {"Host", "gw:8080"}});
  EXPECT_EQ(200u, answer.response->status);
  EXPECT_EQ("said", answer.response->body);
  EXPECT_EQ("text/plain", answer.response_header("Content-Type"));
  EXPECT_EQ("id-1", answer.response_header("X-Call-Id"));
  EXPECT_EQ("fairlead", answer.response_header("X-Served-By"));
  EXPECT_NE("", answer.response_header("X-Start-Time"));
  EXPECT_NE("", answer.response_header("X-Duration-Seconds"));
  EXPECT_EQ("f", node_.invoked.back().invocation.function);
  EXPECT_EQ("body", node_.invoked.back().invocation.payload);
  EXPECT_EQ("PUT", http().method);
  EXPECT_EQ("/a%2Fb/c?x=1&y=%20", http().path) << "as it was sent";
  EXPECT_EQ("1", header("X-A"));
  EXPECT_EQ("127.0.0.1", header("X-Forwarded-For"));
  EXPECT_EQ("gw:8080", header("X-Forwarded-Host"));
  EXPECT_NE("", header("X-Start-Time"));
  EXPECT_EQ("", header("Host"));
}

TEST_F(FunctionCall, PathsAreThoseBehindTheName) {
  const std::pair<const char*, const char*> known[] = {{"/function/f", "/"},         {"/function/f/", "/"},
                                                       {"/function/f?a=b", "/?a=b"}, {"/function/f/?a", "/?a"},
                                                       {"/function/f/x/", "/x/"},    {"/function/f.fairlead/x", "/x"},
                                                       {"/function/%66/x", "/x"},    {"/function/f/../x", "/../x"}};
  for (const auto& [target, path] : known) {
    EXPECT_EQ(200u, call("GET", target).response->status) << target;
    EXPECT_EQ(path, http().path) << target;
  }
}

TEST_F(FunctionCall, WhatIsTheNodesDoesNotReachTheFunction) {
  call("GET", "/function/f", "",
       {{"Authorization", "Bearer FLK.secret"},
        {"Connection", "X-Hop, close"},
        {"X-Hop", "1"},
        {"Transfer-Encoding", "chunked"},
        {"Cookie", "a=b; fairlead_console_9001=FLK.1.mac;c=d"},
        {"X-Forwarded-For", "10.1.1.1"}});
  EXPECT_EQ("", header("Authorization"));
  EXPECT_EQ("", header("X-Hop"));
  EXPECT_EQ("", header("Transfer-Encoding"));
  EXPECT_EQ("10.1.1.1, 127.0.0.1", header("X-Forwarded-For"));
  EXPECT_EQ("a=b; c=d", header("Cookie")) << "a viewer's session is no function's to know";
  call("GET", "/function/f", "", {{"Cookie", "fairlead_console=FLK.1.mac"}, {"X-Fairlead-Console", "1"}});
  EXPECT_EQ("", header("Cookie"));
  EXPECT_EQ("", header("X-Fairlead-Console"));
}

TEST_F(FunctionCall, CallIdsOfCallersAreKept) {
  EXPECT_EQ("mine", call("GET", "/function/f", "", {{"X-Call-Id", "mine"}}).response_header("X-Call-Id"));
  EXPECT_EQ("mine", header("X-Call-Id"));
  EXPECT_EQ("id-1",
            call("GET", "/function/f", "", {{"X-Call-Id", std::string(129, 'x')}}).response_header("X-Call-Id"));
  EXPECT_EQ("", header("X-Call-Id"));
}

TEST_F(FunctionCall, AFunctionsOwnStatusAndHeadersAreTheAnswer) {
  node_.hold = true;
  const auto exchange = begin("GET", "/function/f");
  AnswerStream& stream = *node_.invoked.back().stream;
  stream.begin({.request_id = "id-1", .content_type = kPreludeType});
  const std::string end(8, '\0');
  stream.part(R"({"statusCode": 404, "headers": {"Content-Type": "text/html"}, "cookies": ["a=b"]})" + end + "<p>");
  ASSERT_TRUE(exchange->response);
  EXPECT_EQ(404u, exchange->response->status);
  EXPECT_EQ("text/html", exchange->response_header("Content-Type"));
  EXPECT_EQ("a=b", exchange->response_header("Set-Cookie"));
  EXPECT_EQ("id-1", exchange->response_header("X-Call-Id"));
  std::string part;
  exchange->response->stream->take(part);
  EXPECT_EQ("<p>", part);
  node_.held[0](Outcome{.request_id = "id-1", .was_streamed = true});
}

// A function's page is of the node's address: what its scripts ask of the node must come from nowhere.
TEST_F(FunctionCall, APageOfAFunctionHasNoOrigin) {
  const auto answer = call("GET", "/function/f");
  const std::string policy = answer.response_header("Content-Security-Policy");
  EXPECT_THAT(policy, ::testing::StartsWith("sandbox "));
  EXPECT_THAT(policy, ::testing::Not(HasSubstr("allow-same-origin")));
  node_.reply = fail(Errc::kResourceExhausted, "x");
  EXPECT_EQ(policy, call("GET", "/function/f").response_header("Content-Security-Policy"));
  node_.hold = true;
  const auto exchange = begin("GET", "/function/f");
  node_.invoked.back().stream->begin({.request_id = "id-1", .content_type = kPreludeType});
  node_.invoked.back().stream->part(
      R"({"headers": {"Content-Security-Policy": "default-src *"}, "cookies": ["fairlead_console_9001=x; Path=/", "a=b"]})" +
      std::string(8, '\0'));
  EXPECT_EQ(policy, exchange->response_header("Content-Security-Policy")) << "beside the function's own";
  EXPECT_EQ("a=b", exchange->response_header("Set-Cookie"));
}

TEST_F(FunctionCall, FailuresHaveAStatusAndALine) {
  const std::pair<OutcomeKind, unsigned> known[] = {{OutcomeKind::kTimeout, 504},
                                                    {OutcomeKind::kExpired, 504},
                                                    {OutcomeKind::kCrashed, 502},
                                                    {OutcomeKind::kStartFailed, 502}};
  for (const auto& [kind, status] : known) {
    node_.reply = Outcome{.kind = kind, .failure = {.text = "exit status 3"}};
    const auto answer = call("GET", "/function/f");
    EXPECT_EQ(status, answer.response->status);
    EXPECT_THAT(answer.response->body, HasSubstr("exit status 3"));
  }
  node_.reply = Outcome{
      .kind = OutcomeKind::kFunctionError, .payload = R"({"errorType":"E"})", .content_type = "application/json"};
  const auto answer = call("GET", "/function/f");
  EXPECT_EQ(500u, answer.response->status);
  EXPECT_EQ(R"({"errorType":"E"})", answer.response->body);
}

TEST_F(FunctionCall, WhatTheNodeRefusesIsALine) {
  node_.reply = fail(Errc::kResourceExhausted, "the queue is full");
  const auto full = call("GET", "/function/f");
  EXPECT_EQ(429u, full.response->status);
  EXPECT_EQ("the queue is full\n", full.response->body);
  EXPECT_EQ("1", full.response_header("Retry-After"));
  for (const char* target : {"/function/nope", "/function/f.ns1", "/function/g", "/function/f.x.y", "/function/f..",
                             "/function/g.fairlead"}) {
    EXPECT_EQ(404u, call("GET", target).response->status) << target;
    EXPECT_EQ(404u, call("POST", std::string("/async-") + (target + 1)).response->status) << target;
  }
  EXPECT_EQ(429u, call("GET", "/function/g.acme").response->status) << "it is there";
  EXPECT_EQ(413u, call("POST", "/function/f", std::string(kMostBodyBytes + 1, 'x')).response->status);
  EXPECT_EQ(405u, call("TRACE", "/function/f").response->status);
  EXPECT_EQ(400u, call("GET", "/function/%zz").response->status);
}

TEST_F(FunctionCall, AnAsynchronousCallIsAcceptedWithItsCallback) {
  const auto answer = call("POST", "/async-function/f/p?q", "body", {{"X-Callback-Url", "http://h/done?x"}});
  EXPECT_EQ(202u, answer.response->status);
  EXPECT_EQ("event-1", answer.response_header("X-Call-Id"));
  EXPECT_EQ("", answer.response->body);
  Invocation event = node_.events.back().invocation;
  EXPECT_EQ("/p?q", event.http->path);
  event.request_id = "event-1";
  node_.fake_events.over(event, Outcome{.payload = "done", .content_type = "text/plain"});
  ASSERT_EQ(1u, posted_.size());
  const net::ClientRequest& request = posted_[0].request;
  EXPECT_EQ("POST", request.method);
  EXPECT_EQ("/done?x", request.target);
  EXPECT_EQ("done", request.body);
  const auto value = [&](std::string_view name) {
    const auto found = std::find_if(request.headers.begin(), request.headers.end(),
                                    [&](const auto& header) { return header.name == name; });
    return found == request.headers.end() ? std::string() : found->value;
  };
  EXPECT_EQ("event-1", value("X-Call-Id"));
  EXPECT_EQ("f", value("X-Function-Name"));
  EXPECT_EQ("200", value("X-Function-Status"));
  EXPECT_EQ("text/plain", value("Content-Type"));
}

TEST_F(FunctionCall, ACallbackHasTheFunctionsOwnAnswer) {
  const Invocation event{.request_id = "r",
                         .function = "f",
                         .http = HttpPart{.headers = {{"x-callback-url", "http://h/"}, {"X-Call-Id", "mine"}}}};
  const std::string said =
      R"({"statusCode": 418, "headers": {"X-Tea": "pot", "Host": "evil"}})" + std::string(8, '\0') + "short";
  const RegistryRules rules = RegistryRules::parse({"h:80"}).value();
  const auto callback = callback_of(event, Outcome{.payload = said, .content_type = std::string(kPreludeType)}, rules);
  ASSERT_TRUE(callback);
  EXPECT_EQ("short", callback->request.body);
  std::string headers;
  for (const net::Header& header : callback->request.headers) headers += header.name + "=" + header.value + ";";
  EXPECT_THAT(headers, HasSubstr("X-Tea=pot;"));
  EXPECT_THAT(headers, HasSubstr("X-Function-Status=418;"));
  EXPECT_THAT(headers, HasSubstr("X-Call-Id=mine;"));
  EXPECT_THAT(headers, ::testing::Not(HasSubstr("evil")));
  const auto failed =
      callback_of(event, Outcome{.kind = OutcomeKind::kTimeout, .failure = {.text = "timed out"}}, rules);
  EXPECT_THAT(failed->request.body, HasSubstr("timed out"));
  EXPECT_FALSE(callback_of(event, Outcome{}, RegistryRules())) << "the rules may have changed since it was accepted";
  EXPECT_FALSE(callback_of(Invocation{}, Outcome{}, rules));
}

TEST_F(FunctionCall, CallbacksGoNowhereButWhereTheyMay) {
  for (const char* url : {"http://127.0.0.1:9001/", "https://localhost/", "https://[::1]/", "ftp://x/",
                          "https://169.254.169.254/", "h/"}) {
    const auto answer = call("POST", "/async-function/f", "", {{"X-Callback-Url", url}});
    EXPECT_EQ(400u, answer.response->status) << url;
    EXPECT_THAT(answer.response->body, HasSubstr("X-Callback-Url")) << url;
  }
  EXPECT_TRUE(node_.events.empty());
  EXPECT_EQ(413u, call("POST", "/async-function/f", std::string(kMaxAsyncPayloadBytes + 1, 'x')).response->status);
}

TEST(OpenCalls, WhereTheOperatorOpensThemAuthorizationIsTheFunctions) {
  struct Open : EdgeTest {
    using EdgeTest::call;
    using EdgeTest::node_;
    using EdgeTest::serve;
    void TestBody() override {}
  } edge_test;
  Edge edge{.name = "openfaas", .prefixes = {"/function", "/async-function"}, .errors = errors()};
  const auto callbacks =
      std::make_shared<Callbacks>(edge_test.node_.io, [](const Callback&, const std::function<void(Status)>&) {});
  add_call_routes(edge.routes, edge_test.node_, callbacks, {.is_open = true});
  edge_test.serve(std::move(edge));
  edge_test.node_.add("f");
  edge_test.call("GET", "/function/f", "", {{"Authorization", "Bearer of the function"}});
  const auto& headers = edge_test.node_.invoked.back().invocation.http->headers;
  EXPECT_THAT(headers,
              ::testing::Contains(std::pair<std::string, std::string>("Authorization", "Bearer of the function")));
}

}  // namespace
}  // namespace fairlead::openfaas
