// Logs of functions: which lines are told, with which times, and to whom who follows.
#include "edge/openfaas/system_logs.h"

#include "edge/openfaas/openfaas_error.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;

class SystemLogs : public EdgeTest {
 protected:
  SystemLogs() {
    Edge edge{.name = "openfaas", .prefixes = {"/system"}, .errors = errors()};
    edge.routes.add("GET", "/system/logs", [this](RouteCall call) { logs_.open(std::move(call)); });
    serve(std::move(edge));
    node_.add("f");
  }
  void TearDown() override { followers_.clear(); }

  static std::vector<json> documents(const std::string& text) {
    std::vector<json> all;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      all.push_back(json::parse(text.substr(at, end - at)));
    }
    return all;
  }
  std::string texts(const std::string& body) {
    std::string all;
    for (const json& line : documents(body)) all += line["text"].get<std::string>() + "|";
    return all;
  }
  FakeExchange& follow(const std::string& query) {
    followers_.push_back(call("GET", "/system/logs?follow=true&name=f" + query));
    return followers_.back();
  }
  std::string read(FakeExchange& exchange) {
    std::string part, all;
    while (exchange.response->stream->take(part) == net::BodyStream::Next::kPart) all += part;
    return all;
  }

  LogStreams logs_{node_.io, node_, std::chrono::hours(1)};
  std::list<FakeExchange> followers_;
};

TEST_F(SystemLogs, LinesHaveTheTimesThatAreKnown) {
  node_.log_text = "old\na\nb\nunfinished";
  node_.log_marks = {{4, 1'700'000'000'123}, {6, 1'700'000'001'000}};
  const auto answer = call("GET", "/system/logs?name=f");
  EXPECT_EQ("application/x-ndjson", answer.response_header("Content-Type"));
  const auto lines = documents(answer.response->body);
  ASSERT_EQ(3u, lines.size());
  EXPECT_EQ(json({{"name", "f"},
                  {"namespace", "fairlead"},
                  {"instance", ""},
                  {"timestamp", "2023-11-14T22:13:20.123Z"},
                  {"text", "a"}}),
            lines[1]);
  EXPECT_EQ("2023-11-14T22:13:21.000Z", lines[2]["timestamp"]);
  EXPECT_EQ("1970-01-01T00:00:00.000Z", lines[0]["timestamp"]);
}

TEST_F(SystemLogs, TailAndSinceChoose) {
  node_.log_text = "a\nb\nc\n";
  node_.log_marks = {{0, 1000}, {2, 2000}, {4, 3000}};
  EXPECT_EQ("b|c|", texts(call("GET", "/system/logs?name=f&tail=2").response->body));
  EXPECT_EQ("a|b|c|", texts(call("GET", "/system/logs?name=f&tail=-1").response->body));
  EXPECT_EQ("b|c|", texts(call("GET", "/system/logs?name=f&since=1970-01-01T00%3A00%3A02Z").response->body));
  EXPECT_EQ("c|",
            texts(call("GET", "/system/logs?name=f&tail=1&since=1970-01-01T01%3A00%3A02%2B01:00").response->body));
  EXPECT_EQ("c|",
            texts(call("GET", "/system/logs?name=f.openfaas-fn&since=1970-01-01T00%3A00%3A02.5Z").response->body));
}

TEST_F(SystemLogs, WhoFollowsGetsWhatComes) {
  node_.log_text = "a\nb\n";
  FakeExchange& follower = follow("&tail=1");
  EXPECT_EQ("b|", texts(read(follower)));
  node_.log_text += "c\nhalf";
  logs_.look();
  EXPECT_EQ("c|", texts(read(follower)));
  logs_.look();
  EXPECT_EQ("", read(follower));
  node_.log_text += " a line\n";
  logs_.look();
  EXPECT_EQ("half a line|", texts(read(follower)));
  node_.log_text = "rotated\n";
  logs_.look();
  EXPECT_EQ("rotated|", texts(read(follower)));
  node_.functions.clear();
  logs_.look();
  std::string part;
  EXPECT_EQ(net::BodyStream::Next::kEnd, follower.response->stream->take(part));
  EXPECT_EQ(0u, logs_.streams());
}

TEST_F(SystemLogs, AReaderThatReadsNothingHoldsNoMoreThanATail) {
  FakeExchange& follower = follow("");
  for (int i = 0; i < 20'000; ++i) node_.log_text += "line " + std::to_string(i) + "\n";
  logs_.look();
  const std::string before = node_.log_text;
  for (int i = 0; i < 100; ++i) {
    node_.log_text += std::string(5000, 'x') + "\n";
    logs_.look();
  }
  std::string all, more;
  while (!(more = read(follower)).empty()) {
    all += more;
    logs_.look();
  }
  EXPECT_NE(std::string::npos, all.find(R"("text":"line 19999")"));
  EXPECT_EQ(1u, logs_.streams());
}

TEST_F(SystemLogs, OneWhoLeavesIsForgottenAndTheMostIsRefused) {
  for (std::size_t i = 0; i < LogStreams::kMostStreams; ++i) EXPECT_EQ(200u, follow("").response->status);
  EXPECT_EQ(429u, follow("").response->status);
  followers_.pop_back();
  followers_.back().response->stream->close();
  followers_.pop_back();
  EXPECT_EQ(200u, follow("").response->status);
}

TEST_F(SystemLogs, WhatCannotBeReadIs422AndWhatIsNotThere404) {
  for (const char* query :
       {"", "name=f&tail=x", "name=f&tail=-2", "name=f&follow=maybe", "name=f&since=yesterday",
        "name=f&since=2026-11-23", "name=f&since=2026-11-23T05:36:20", "name=f&since=2026-11-23T05:36:20.Z",
        "name=f&since=9999999-01-01T00:00:00Z", "name=f&since=2026-11-23T05:36:20%2B99:00"}) {
    EXPECT_EQ(422u, call("GET", std::string("/system/logs?") + query).response->status) << query;
  }
  EXPECT_EQ(404u, call("GET", "/system/logs?name=nope").response->status);
  EXPECT_EQ(404u, call("GET", "/system/logs?name=f&namespace=acme").response->status);
}

TEST_F(SystemLogs, BytesThatAreNoTextAreToldAsFarAsTheyCan) {
  node_.log_text = "\xff\x01\"\n";
  EXPECT_EQ("\xef\xbf\xbd\x01\"|", texts(call("GET", "/system/logs?name=f").response->body));
}

TEST(LogLines, ALineThatIsCutIsLeftOut) {
  const TimedLog log{.text = "half\nwhole\nnot yet", .marks = {}};
  EXPECT_EQ(1u, lines_of(log, true).size());
  EXPECT_EQ(2u, lines_of(log, false).size());
}

}  // namespace
}  // namespace fairlead::openfaas
