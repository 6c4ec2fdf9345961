#include "edge/native/status_events.h"

#include "edge/router.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class StatusEventsTest : public EdgeTest {
 protected:
  StatusEventsTest() {
    Edge edge{.name = "events", .prefixes = {"/events"}, .errors = document_errors()};
    edge.routes.add("GET", "/events", [this](RouteCall call) { events_->open(std::move(call)); });
    serve(std::move(edge));
  }

  // What has been written since the last look; the reader has then read it.
  static std::string read(FakeExchange& exchange) {
    std::string part;
    if (exchange.response->stream->take(part) != net::BodyStream::Next::kPart) return "";
    std::string rest;
    exchange.response->stream->take(rest);
    return part + rest;
  }
  static void leave(FakeExchange& exchange) { exchange.response->stream->close(); }

  std::shared_ptr<StatusEvents> events_ = std::make_shared<StatusEvents>(node_.io, node_, std::chrono::milliseconds(1));
};

TEST_F(StatusEventsTest, AReaderGetsTheStatusAtOnceAndThenAgain) {
  node_.node_status.version = "first";
  FakeExchange reader = call("GET", "/events");
  EXPECT_EQ("text/event-stream", reader.response_header("Content-Type"));
  const std::string event = read(reader);
  EXPECT_THAT(event, StartsWith("event: status\nid: 1\ndata: {"));
  EXPECT_EQ("first", nlohmann::json::parse(event.substr(event.find('{')))["version"]);
  node_.node_status.version = "second\nline";
  events_->send();
  EXPECT_THAT(read(reader), HasSubstr(R"("version":"second\nline")"));
}

TEST_F(StatusEventsTest, TheClockSendsWhileThereAreReaders) {
  FakeExchange reader = call("GET", "/events");
  read(reader);
  ASSERT_GT(node_.io.run_one_for(std::chrono::minutes(2)), 0u);
  EXPECT_THAT(read(reader), HasSubstr("id: 2\n"));
  leave(reader);
  node_.io.restart();
  while (node_.io.run_one_for(std::chrono::minutes(2)) > 0) {
  }  // ends by itself
  EXPECT_EQ(0u, events_->streams());
}

TEST_F(StatusEventsTest, TheClockStopsWithItsOwner) {
  const FakeExchange reader = call("GET", "/events");
  events_.reset();
  while (node_.io.run_one_for(std::chrono::minutes(2)) > 0) {
  }
}

TEST_F(StatusEventsTest, OneMoreThanTheMostIsRefusedUntilAnotherLeaves) {
  std::vector<FakeExchange> readers;
  for (std::size_t i = 0; i < StatusEvents::kMostStreams; ++i) readers.push_back(call("GET", "/events"));
  expect_error(call("GET", "/events"), 429, "TooManyRequestsException", "16 streams of events are open");
  leave(readers[3]);
  const FakeExchange another = call("GET", "/events");
  EXPECT_EQ(200u, another.response->status);
  EXPECT_EQ(429u, call("GET", "/events").response->status);
}

TEST_F(StatusEventsTest, ASlowReaderMissesEventsAndHoldsNoMore) {
  node_.node_status.version = std::string(StatusEvents::kStreamBytes / 3, 'v');
  FakeExchange reader = call("GET", "/events");
  for (int i = 0; i < 5; ++i) events_->send();
  EXPECT_EQ(1u, events_->streams());
  std::string part;
  reader.response->stream->take(part);
  EXPECT_LE(part.size(), StatusEvents::kStreamBytes);
  EXPECT_THAT(part, HasSubstr("\nid: 2\n"));
  EXPECT_THAT(part, ::testing::Not(HasSubstr("\nid: 3\n")));
  std::string none;
  reader.response->stream->take(none);
  events_->send();
  EXPECT_THAT(read(reader), HasSubstr("\nid: 7\n"));
}

TEST_F(StatusEventsTest, AStatusThatFitsNoEventIsSaidSoAndEndsTheStreams) {
  FakeExchange reader = call("GET", "/events");
  read(reader);
  node_.node_status.version = std::string(StatusEvents::kStreamBytes, 'v');
  expect_error(call("GET", "/events"), 413, "RequestTooLargeException", "at most 4194304");
  events_->send();
  EXPECT_EQ(0u, events_->streams());
  EXPECT_TRUE(reader.response->stream->is_ended());
  std::string part;
  EXPECT_EQ(net::BodyStream::Next::kEnd, reader.response->stream->take(part));
}

}  // namespace
}  // namespace fairlead
