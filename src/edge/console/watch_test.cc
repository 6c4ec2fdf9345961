#include "edge/console/watch.h"

#include "edge/testing/edge_fixture.h"
#include "edge/testing/sample_status.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

class WatchTest : public EdgeTest {
 protected:
  WatchTest() {
    Edge edge{.name = "console", .prefixes = {"/watch"}, .errors = document_errors()};
    edge.routes.add("GET", "/watch", [this](RouteCall call) {
      call.principal = who_;
      watch_->open(std::move(call));
    });
    serve(std::move(edge));
    node_.node_status = sample_status();
  }

  FakeExchange open(const std::string& last_id = "") {
    return call("GET", "/watch", "", last_id.empty() ? Headers{} : Headers{{"Last-Event-ID", last_id}});
  }
  FakeExchange open_as(const std::string& tenant) {
    who_ = {.name = "KEY" + tenant, .tenant = tenant};
    FakeExchange viewer = open();
    who_ = {.name = "uid 0", .role = Role::kOperator};
    return viewer;
  }
  // What has been written since the last look; the viewer has then read it.
  static std::string read(FakeExchange& viewer) {
    std::string part, rest;
    if (viewer.response->stream->take(part) != net::BodyStream::Next::kPart) return "";
    viewer.response->stream->take(rest);
    return part + rest;
  }
  static Json frame(const std::string& event) { return Json::parse(event.substr(event.find('{'))); }
  static std::string id(const std::string& event) {
    const std::size_t at = event.find("id: ") + 4;
    return event.substr(at, event.find('\n', at) - at);
  }
  static void leave(FakeExchange& viewer) { viewer.response->stream->close(); }
  void change() { ++node_.node_status.queued; }

  Principal who_{.name = "uid 0", .role = Role::kOperator};
  Instant now_{std::chrono::hours(1)};
  Duration dear_{0};  // what a look takes
  bool is_known_ = true;
  std::unique_ptr<Watch> watch_ =
      std::make_unique<Watch>(node_.io, node_,
                              WatchOptions{.period = std::chrono::milliseconds(1),
                                           .clock = [this] { return now_ + dear_ * node_.statuses; },
                                           .is_known = [this](const Principal&) { return is_known_; },
                                           .run = "run"});
};

TEST_F(WatchTest, AllAtFirstThenWhatChanges) {
  FakeExchange viewer = open();
  EXPECT_EQ("text/event-stream", viewer.response_header("Content-Type"));
  const std::string first = read(viewer);
  EXPECT_THAT(first, StartsWith("event: frame\nid: run.1-1\ndata: {"));
  EXPECT_TRUE(frame(first)["full"]);
  EXPECT_EQ(5u, frame(first)["set"].size());
  watch_->look();
  EXPECT_EQ("", read(viewer)) << "nothing changed";
  change();
  watch_->look();
  const Json second = frame(read(viewer));
  EXPECT_FALSE(second["full"]);
  EXPECT_EQ(1u, second["set"].size());
  EXPECT_EQ(5, second["set"]["node"]["queued"]);
}

// One who comes back without end, each time from another frame, makes the node keep no text for each.
TEST_F(WatchTest, WhoComesBackOftenFillsNoMemory) {
  FakeExchange first = open();
  for (int i = 0; i < 100; ++i) {
    change();
    watch_->look();
    read(first);
  }
  dear_ = std::chrono::hours(1);  // the next look is far
  watch_->look();
  for (int seen = 1; seen < 100; ++seen) {
    FakeExchange viewer = open("run.1-" + std::to_string(seen));
    ASSERT_EQ(200u, viewer.response->status);
    leave(viewer);
    ASSERT_LE(watch_->kept_events(), Watch::kMostViewers);
  }
}

TEST_F(WatchTest, OneLookAndOneTextServeAllViewers) {
  std::vector<FakeExchange> viewers;
  for (int i = 0; i < 10; ++i) viewers.push_back(open());
  for (FakeExchange& viewer : viewers) read(viewer);
  change();
  const int before = node_.statuses;
  watch_->look();
  EXPECT_EQ(before + 1, node_.statuses);
  const std::string text = read(viewers[0]);
  for (std::size_t i = 1; i < viewers.size(); ++i) EXPECT_EQ(text, read(viewers[i]));
}

TEST_F(WatchTest, WithoutViewersNothingIsComputed) {
  FakeExchange viewer = open();
  leave(viewer);
  const int before = node_.statuses;
  watch_->look();
  EXPECT_EQ(before, node_.statuses);
  while (node_.io.run_one_for(std::chrono::minutes(2)) > 0) {
  }  // the timer ends by itself
  EXPECT_EQ(before, node_.statuses);
  EXPECT_EQ(0u, watch_->viewers());
}

TEST_F(WatchTest, WhoComesBackGetsWhatChangedMeanwhile) {
  FakeExchange viewer = open(), stays = open();
  const std::string seen = id(read(viewer));
  read(stays);
  leave(viewer);
  change();
  watch_->look();
  FakeExchange back = open(seen);
  const Json resumed = frame(read(back));
  EXPECT_FALSE(resumed["full"]);
  EXPECT_TRUE(resumed["set"].contains("node"));
  for (const char* of_another : {"other.1-1", "run.2-1", "run.1-99", "run.1-", "run.1-1x", "run.1--1", "x"}) {
    FakeExchange lost = open(of_another);
    EXPECT_TRUE(frame(read(lost))["full"]) << of_another;
  }
}

TEST_F(WatchTest, AViewThatWasForgottenIsNotTakenForTheNextOne) {
  FakeExchange viewer = open();
  const std::string seen = id(read(viewer));
  leave(viewer);
  now_ += Watch::kKeptFor + std::chrono::seconds(1);
  FakeExchange of_tenant = open_as("a");  // which forgets the view of all
  FakeExchange back = open(seen);
  const std::string again = read(back);
  EXPECT_TRUE(frame(again)["full"]);
  EXPECT_NE(id(again), seen);
}

TEST_F(WatchTest, ASlowViewerSkipsFramesAndIsBroughtUpToDate) {
  FakeExchange slow = open();
  for (int i = 0; i < 100; ++i) {
    change();
    watch_->look();
  }
  EXPECT_EQ(1u, watch_->viewers());
  std::string part;
  slow.response->stream->take(part);
  EXPECT_THAT(part, Not(HasSubstr("-2\n"))) << "the first frame alone waits";
  slow.response->stream->take(part);  // it has read
  watch_->look();
  const std::string next = read(slow);
  EXPECT_EQ("run.1-101", id(next));
  EXPECT_EQ(104, frame(next)["set"]["node"]["queued"]);
}

TEST_F(WatchTest, MoreThanCanBeHeldIsRefused) {
  node_.node_status.version = std::string(Watch::kViewerBytes, 'v');
  expect_error(call("GET", "/watch"), 413, "RequestTooLargeException", "larger than 1048576 bytes");
  EXPECT_EQ(0u, watch_->viewers());
}

TEST_F(WatchTest, TheMostViewersAreSharedSoThatTheOperatorGetsIn) {
  std::vector<FakeExchange> viewers;
  for (std::size_t i = 0; i < Watch::kMostOfTenants; ++i) {
    viewers.push_back(open_as("t" + std::to_string(i / Watch::kMostOfTenant)));
    ASSERT_EQ(200u, viewers.back().response->status);
  }
  EXPECT_EQ(429u, open_as("t0").response->status) << "the most of one tenant";
  EXPECT_EQ(429u, open_as("another").response->status) << "the most of tenants";
  while (viewers.size() < Watch::kMostViewers) {
    viewers.push_back(open());
    ASSERT_EQ(200u, viewers.back().response->status);
  }
  expect_error(open(), 429, "TooManyRequestsException", "32 watch");
  leave(viewers.back());
  EXPECT_EQ(200u, open().response->status);
}

TEST_F(WatchTest, ATenantIsShownItsOwn) {
  node_.node_status.functions[0].settings.tenant = "a";
  FakeExchange a = open_as("a"), b = open_as("b"), all = open();
  EXPECT_TRUE(frame(read(a))["set"].contains("fn/f"));
  EXPECT_FALSE(frame(read(b))["set"].contains("fn/f"));
  EXPECT_TRUE(frame(read(all))["set"].contains("gpu/1"));
  change();
  watch_->look();
  EXPECT_EQ("", read(a)) << "how many wait in all is not its to know";
  EXPECT_NE("", read(all));
}

TEST_F(WatchTest, AStreamEndsWithItsKeyAndAfterAWhile) {
  FakeExchange viewer = open();
  read(viewer);
  is_known_ = false;
  watch_->look();
  std::string part;
  EXPECT_EQ(net::BodyStream::Next::kEnd, viewer.response->stream->take(part));
  EXPECT_EQ(0u, watch_->viewers());
  is_known_ = true;
  FakeExchange another = open();
  now_ += Watch::kStreamLife;
  watch_->look();
  EXPECT_EQ(0u, watch_->viewers());
}

TEST_F(WatchTest, AQuietStreamSaysThatItLives) {
  FakeExchange viewer = open();
  read(viewer);
  now_ += Watch::kQuiet - std::chrono::seconds(1);
  watch_->look();
  EXPECT_EQ("", read(viewer));
  now_ += std::chrono::seconds(1);
  watch_->look();
  EXPECT_EQ(": \n\n", read(viewer));
}

TEST_F(WatchTest, WhereALookIsDearItLooksLessOften) {
  dear_ = std::chrono::milliseconds(100);
  FakeExchange viewer = open();
  const auto looks_after = [&](Duration pause) {
    const int before = node_.statuses;
    now_ += pause;
    node_.io.restart();
    for (int ticks = 0; ticks < 20; ++ticks) node_.io.run_one_for(std::chrono::minutes(2));
    return node_.statuses - before;
  };
  EXPECT_EQ(0, looks_after(WatchBounds::kShare * dear_ - dear_ - std::chrono::milliseconds(1)));
  EXPECT_EQ(1, looks_after(std::chrono::milliseconds(1)));
}

// Looking is bounded in time, also for who comes and goes.
TEST_F(WatchTest, WhoOpensAndClosesDoesNotMakeItLookMoreOften) {
  const int before = node_.statuses;
  for (int i = 0; i < 100; ++i) {
    FakeExchange viewer = open();
    leave(viewer);
  }
  EXPECT_EQ(before + 1, node_.statuses);
}

}  // namespace
}  // namespace fairlead
