// The adapter between the Runtime API and a program that knows HTTP: what the program is asked, and what of its answer goes on.
#include "runtime/http_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/http_server.h"
#include "net/http_stream.h"

namespace fairlead {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;
using ::testing::Not;

struct Said {
  std::string target, type, mode, body;
};

class HttpAdapterTest : public ::testing::Test {
 protected:
  static std::uint16_t port_of(const std::string& address) {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  // One invocation, until its answer is there; then there is no next one and the adapter ends.
  Said run(std::vector<net::Header> headers, std::string payload, const std::string& health = "") {
    next_ = net::HttpResponse{.status = 200, .headers = std::move(headers), .body = std::move(payload)};
    next_->headers.push_back({"Lambda-Runtime-Aws-Request-Id", "id-1"});
    next_->headers.push_back({"Lambda-Runtime-Deadline-Ms", std::to_string(wall_clock_ms() + 60'000)});
    const HttpAdapterOptions options{.port = port_of(program_address_), .health = health, .runtime_api = api_address_};
    int status = -1;
    std::thread adapter([&] {
      status = run_http_adapter(options);
      boost::asio::post(io_, [this] { io_.stop(); });
    });
    io_.restart();
    io_.run_for(std::chrono::minutes(2));
    adapter.join();
    EXPECT_EQ(0, status);
    return said_;
  }

  void on_api(net::HttpExchange exchange) {
    net::HttpRequest& request = exchange.request();
    if (request.target().ends_with("/next")) {
      if (!next_) return exchange.respond({.status = 403});
      return exchange.respond(*std::exchange(next_, std::nullopt));
    }
    said_ = {std::string(request.target()), std::string(request.header("Content-Type")),
             std::string(request.header("Lambda-Runtime-Function-Response-Mode")), std::string(request.body())};
    exchange.respond({.status = 202});
  }

  void on_program(net::HttpExchange exchange) {
    net::HttpRequest& request = exchange.request();
    if (request.target() == "/healthy") return exchange.respond({.status = ++healths_ > 2 ? 200u : 503u});
    asked_ = fmt::format("{} {}\n", request.method(), request.target());
    for (const net::Header& header : request.all_headers()) asked_ += header.name + ": " + header.value + "\n";
    asked_ += "\n" + std::string(request.body());
    if (is_cut_) {
      auto [writer, body] = net::make_body_stream();
      writer.write("half");
      return exchange.respond({.status = 200, .stream = std::move(body)});  // its writer goes without finishing it
    }
    exchange.respond(answer_);
  }

  boost::asio::io_context io_;
  std::optional<net::HttpResponse> next_;
  Said said_;
  std::string asked_;
  int healths_ = 0;
  bool is_cut_ = false;
  net::HttpResponse answer_{.status = 200, .headers = {{"Content-Type", "text/x"}}, .body = "said"};
  net::HttpServer api_{io_, {}, [this](net::HttpExchange exchange) { on_api(std::move(exchange)); }};
  net::HttpServer program_{io_, {}, [this](net::HttpExchange exchange) { on_program(std::move(exchange)); }};
  const std::string api_address_ = api_.listen("127.0.0.1:0").value();
  const std::string program_address_ = program_.listen("127.0.0.1:0").value();
};

const std::vector<net::Header> kGet{{"Fairlead-Http-Method", "PATCH"},
                                    {"Fairlead-Http-Target", "/a%2Fb?x=1"},
                                    {"Fairlead-Http-Header", "Accept: text/html"},
                                    {"Fairlead-Http-Header", "X-Empty: "}};

TEST_F(HttpAdapterTest, WithoutAPartOfHttpThePayloadIsPosted) {
  const Said said = run({{"Content-Type", "application/json"}}, "{}");
  EXPECT_THAT(asked_, HasSubstr("POST /\n"));
  EXPECT_THAT(asked_, HasSubstr("Lambda-Runtime-Aws-Request-Id: id-1\n"));
  EXPECT_EQ("/2018-06-01/runtime/invocation/id-1/response", said.target);
  EXPECT_EQ("text/x", said.type);
  EXPECT_EQ("said", said.body);
}

TEST_F(HttpAdapterTest, WithoutItAnErrorIsTheFunctions) {
  answer_.status = 503;
  const Said said = run({}, "{}");
  EXPECT_EQ("/2018-06-01/runtime/invocation/id-1/error", said.target);
  EXPECT_THAT(said.body, HasSubstr("HTTP.503"));
}

TEST_F(HttpAdapterTest, TheProgramIsAskedAsItsCallerAsked) {
  answer_ = {
      .status = 404,
      .headers = {{"Content-Type", "text/html"}, {"Set-Cookie", "a=1"}, {"Set-Cookie", "b=2"}, {"X", "1"}, {"X", "2"}},
      .body = "<p>"};
  const Said said = run(kGet, "body");
  EXPECT_THAT(asked_, HasSubstr("PATCH /a%2Fb?x=1\n"));
  EXPECT_THAT(asked_, HasSubstr("Accept: text/html\n"));
  EXPECT_THAT(asked_, HasSubstr("X-Call-Id: id-1\n"));
  EXPECT_THAT(asked_, Not(HasSubstr("Lambda-Runtime")));
  EXPECT_THAT(asked_, ::testing::EndsWith("\nbody"));
  EXPECT_EQ("/2018-06-01/runtime/invocation/id-1/response", said.target);
  EXPECT_EQ("application/vnd.awslambda.http-integration-response", said.type);
  EXPECT_EQ("streaming", said.mode);
  const std::size_t end = said.body.find(std::string(8, '\0'));
  ASSERT_NE(std::string::npos, end);
  const auto head = nlohmann::json::parse(said.body.substr(0, end));
  EXPECT_EQ(404, head["statusCode"]);
  EXPECT_EQ("text/html", head["headers"]["Content-Type"]);
  EXPECT_EQ("1, 2", head["headers"]["X"]);
  EXPECT_EQ((nlohmann::json{"a=1", "b=2"}), head["cookies"]);
  EXPECT_EQ("<p>", said.body.substr(end + 8));
}

TEST_F(HttpAdapterTest, ACallersIdIsKeptAndAnAnswerMayBeEmpty) {
  answer_ = {.status = 204};
  std::vector<net::Header> headers = kGet;
  headers.push_back({"Fairlead-Http-Header", "x-call-id: mine"});
  const Said said = run(std::move(headers), "");
  EXPECT_THAT(asked_, HasSubstr("x-call-id: mine\n"));
  EXPECT_THAT(asked_, Not(HasSubstr("id-1")));
  EXPECT_THAT(said.body, HasSubstr(R"("statusCode":204)"));
  EXPECT_THAT(said.body, ::testing::EndsWith(std::string(8, '\0')));
}

TEST_F(HttpAdapterTest, LargeAnswersGoOnWhole) {
  answer_.body = std::string(4 << 20, 'x');
  EXPECT_GT(run(kGet, "").body.size(), std::size_t{4 << 20});
}

// The Runtime API sees a request that is never whole: no handler is called.
TEST_F(HttpAdapterTest, AnAnswerThatIsCutIsNotGivenAsAWholeOne) {
  is_cut_ = true;
  EXPECT_EQ("", run(kGet, "").target);
}

TEST_F(HttpAdapterTest, AProgramIsReadyWhenItsHealthSaysSo) {
  run(kGet, "", "/healthy");
  EXPECT_EQ(3, healths_);
}

}  // namespace
}  // namespace fairlead
