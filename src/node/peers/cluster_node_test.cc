// Nodes of a cluster in one process: each a fake node behind a real HTTP server, on one event loop.
#include "node/peers/cluster_node.h"

#include <gmock/gmock.h>

#include "edge/error_document.h"
#include "edge/router.h"
#include "edge/testing/fake_node.h"
#include "node/peers/peers_edge.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Place {
  Place(boost::asio::io_context& loop, std::string called) : io(loop), name(std::move(called)) {
    server = std::make_unique<net::HttpServer>(
        loop, net::HttpLimits{}, [this](net::HttpExchange exchange) { router.dispatch(std::move(exchange)); });
    address = "http://" + server->listen("127.0.0.1:0").value();
    node.reply = Outcome{.request_id = "ran at " + name, .payload = name};
  }

  void join(const std::vector<std::string>& peers, bool runs_nothing = false, std::string key = std::string(32, 'k')) {
    if (!runs_nothing) node.node_status.gpus.push_back({.view = {.gpu = GpuId(1), .slots = 2}});
    ClusterOptions options{
        .state_dir = folder / "", .runs_nothing = runs_nothing, .peers = {.name = name, .key = std::move(key)}};
    if (!runs_nothing) {
      options.tenants = {.tenants = [this] { return tenants; },
                         .set_factors =
                             [this](const auto& news) {
                               for (const auto& [tenant, factor] : news) factors[tenant] = factor;
                             }};
    }
    for (const std::string& peer : peers) options.peers.peers.push_back(net::parse_endpoint(peer).value());
    cluster = ClusterNode::create(io, node, std::move(options)).value();
    ASSERT_TRUE(router.add(peers_edge(*cluster)));
    cluster->start();
  }
  std::string state(const std::string& of) {
    for (const PeerStatus& peer : cluster->peers().status()) {
      if (peer.name == of) return peer.state;
    }
    return "unknown";
  }

  boost::asio::io_context& io;
  std::string name, address;
  store::TestFolder folder;
  FakeNode node;
  std::vector<OwnTenant> tenants;
  std::map<std::string, double> factors;
  Router router{document_errors()};
  std::unique_ptr<ClusterNode> cluster;
  std::unique_ptr<net::HttpServer> server;
};

class ClusterNodeTest : public testing::Test {
 protected:
  // a and g, which has no GPUs: all of g's calls go to a.
  void join_both() {
    a_.join({g_.address});
    g_.join({a_.address}, true);
    until([&] { return a_.state("g") == "alive" && g_.state("a") == "alive"; });
  }
  template <typename Condition>
  void until(Condition condition) {
    const Instant end = monotonic_now() + 60s;
    while (!condition()) {
      ASSERT_LT(monotonic_now(), end) << "not so within a minute";
      io_.run_one_for(10ms);
    }
  }
  static InvokeRequest request(const std::string& function, std::string payload = "{}") {
    InvokeRequest request;
    request.invocation.function = function;
    request.invocation.payload = std::move(payload);
    return request;
  }
  Result<Outcome> call(Place& at, InvokeRequest request) {
    std::optional<Result<Outcome>> outcome;
    at.cluster->invoke(std::move(request), [&](Result<Outcome> got) { outcome = std::move(got); });
    until([&] { return outcome.has_value(); });
    return *std::move(outcome);
  }
  void deploy(Place& at, const std::string& name) {
    bool is_done = false;
    at.cluster->create_function(name, {}, {.zip = "zip"},
                                [&](const Result<FunctionRecord>& made) { is_done = made.has_value(); });
    until([&] { return is_done; });
  }

  boost::asio::io_context io_{1};
  Place a_{io_, "a"}, g_{io_, "g"};
};

TEST_F(ClusterNodeTest, AFunctionOfOneIsAFunctionOfAllAndItsCallsGoToItsHome) {
  join_both();
  deploy(g_, "f");
  EXPECT_TRUE(a_.node.functions.contains("f"));
  EXPECT_EQ(a_.node.last_code.zip, "zip");
  InvokeRequest wanted = request("f", "payload");
  wanted.sdk_invocation_id = "once";
  wanted.invocation.http = HttpPart{.method = "GET", .path = "/x", .headers = {{"A", "b"}}};
  const auto outcome = call(g_, wanted);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->payload, "a");
  EXPECT_EQ(outcome->request_id, "ran at a");
  ASSERT_EQ(a_.node.invoked.size(), 1u);
  EXPECT_EQ(a_.node.invoked[0].invocation.payload, "payload");
  EXPECT_EQ(a_.node.invoked[0].invocation.http, wanted.invocation.http);
  EXPECT_EQ(a_.node.invoked[0].sdk_invocation_id, "once");
  EXPECT_TRUE(g_.node.invoked.empty());
  EXPECT_EQ(call(a_, request("f"))->payload, "a");
  bool is_deleted = false;
  a_.cluster->delete_function("f", [&](const Status& status) { is_deleted = status.has_value(); });
  until([&] { return is_deleted; });
  EXPECT_FALSE(g_.node.functions.contains("f"));
}

// Whoever is served at two nodes counts less where one waits that is served at one.
TEST_F(ClusterNodeTest, TenantsOfAllNodesAreWeighedTogetherAndShown) {
  Place b{io_, "b"};
  a_.node.node_status.tenants = {{.name = "both"}, {.name = "one"}};
  a_.join({b.address});
  b.join({a_.address});
  const Instant begin = monotonic_now();
  until([&] {
    const double seconds = to_seconds(monotonic_now() - begin);  // a slot of two for each
    a_.tenants = {{"both", 1, seconds, true}, {"one", 1, seconds, true}};
    b.tenants = {{"both", 1, 2 * seconds, true}};
    return a_.factors["one"] > 2 && a_.factors["both"] > 0 && a_.factors["both"] < 0.5;
  });
  EXPECT_EQ(b.factors.count("both"), 0U) << "it waits there alone";
  const NodeStatus status = a_.cluster->status();
  ASSERT_TRUE(status.tenants.at(0).over_cluster && status.tenants.at(1).over_cluster);
  EXPECT_EQ(status.tenants[0].over_cluster->factor, a_.factors["both"]);
  EXPECT_GT(status.tenants[0].over_cluster->lead_s, 0);
  EXPECT_LT(status.tenants[1].over_cluster->lead_s, 0);
  EXPECT_THAT(peer_metrics(*a_.cluster), HasSubstr("fairlead_peer_tenant_factor{tenant=\"one\"}"));
}

TEST_F(ClusterNodeTest, AnEventAndAnErrorComeBackAsWhatTheyAre) {
  join_both();
  deploy(a_, "f");
  std::optional<Result<std::string>> id;
  g_.cluster->invoke_event(request("f"), [&](Result<std::string> got) { id = std::move(got); });
  until([&] { return id.has_value(); });
  EXPECT_EQ(**id, "event-1");
  EXPECT_EQ(a_.node.events.size(), 1u);
  a_.node.reply = fail(Errc::kResourceExhausted, "the queue is full");
  const auto full = call(g_, request("f"));
  EXPECT_EQ(full.error().code, Errc::kResourceExhausted);
  EXPECT_THAT(full.error().message, HasSubstr("'a': the queue is full"));
}

TEST_F(ClusterNodeTest, ACallerThatGoesIsSeenAtTheHome) {
  join_both();
  deploy(a_, "f");
  a_.node.hold = true;
  const auto cancel = g_.cluster->invoke(request("f"), [](const auto&) { FAIL() << "answered"; });
  until([&] { return a_.node.held.size() == 1; });
  EXPECT_TRUE(g_.cluster->busy());
  cancel();
  until([&] { return a_.node.cancelled == 1; });
  EXPECT_FALSE(g_.cluster->busy());
}

TEST_F(ClusterNodeTest, WhatAHomeTookAndDidNotAnswerIsGivenToNobodyElse) {
  Place b{io_, "b"};
  a_.join({g_.address});
  b.join({g_.address});
  g_.join({a_.address, b.address}, true);
  until([&] {
    return g_.state("a") == "alive" && g_.state("b") == "alive" && a_.state("g") == "alive" && b.state("g") == "alive";
  });
  deploy(g_, "f");
  a_.node.hold = b.node.hold = true;
  std::optional<Result<Outcome>> outcome;
  g_.cluster->invoke(request("f"), [&](Result<Outcome> got) { outcome = std::move(got); });
  until([&] { return a_.node.held.size() + b.node.held.size() == 1; });
  Place& home = a_.node.held.empty() ? b : a_;
  Place& other = a_.node.held.empty() ? a_ : b;
  home.server.reset();
  until([&] { return outcome.has_value(); });
  EXPECT_EQ(outcome->error().code, Errc::kUnavailable);
  EXPECT_THAT(outcome->error().message, HasSubstr("'" + home.name + "'"));
  EXPECT_TRUE(other.node.held.empty());
  // The next one finds nobody at that address, and has another home at once.
  other.node.hold = false;
  EXPECT_EQ(call(g_, request("f"))->payload, other.name);
}

struct Reader final : AnswerStream {
  void begin(const AnswerHead& head) override { request_id = head.request_id; }
  void part(std::string_view bytes) override { parts += bytes; }
  bool is_full() const override { return full; }
  bool is_gone() const override { return gone; }
  void on_change(std::function<void()> callback) override { change = std::move(callback); }
  std::string request_id, parts;
  bool full = false, gone = false;
  std::function<void()> change;
};

class ClusterStreamTest : public ClusterNodeTest {
 protected:
  // A call through the gateway that the home holds, begun.
  void call_in_parts() {
    join_both();
    deploy(a_, "f");
    a_.node.hold = true;
    InvokeRequest wanted = request("f");
    wanted.stream = reader_;
    g_.cluster->invoke(std::move(wanted), [this](Result<Outcome> got) { outcome_ = std::move(got); });
    until([&] { return a_.node.held.size() == 1; });
    home_ = a_.node.invoked.back().stream;
    ASSERT_TRUE(home_);
    home_->begin({.request_id = "r", .content_type = "text/plain"});
    home_->part("first ");
    until([&] { return reader_->parts == "first "; });
  }

  std::shared_ptr<Reader> reader_ = std::make_shared<Reader>();
  std::optional<Result<Outcome>> outcome_;
  std::shared_ptr<AnswerStream> home_;
};

TEST_F(ClusterStreamTest, AnAnswerOfAHomeComesPartByPart) {
  call_in_parts();
  EXPECT_EQ(reader_->request_id, "r");
  EXPECT_FALSE(outcome_);
  home_->part("second");
  a_.node.held.back()(Outcome{.request_id = "r", .was_streamed = true});
  until([&] { return outcome_.has_value(); });
  ASSERT_TRUE(*outcome_) << outcome_->error().message;
  EXPECT_EQ(reader_->parts, "first second");
  EXPECT_TRUE((*outcome_)->was_streamed);
  EXPECT_FALSE(g_.cluster->busy());
}

TEST_F(ClusterStreamTest, ASlowCallerOfAGatewayFillsTheHome) {
  call_in_parts();
  reader_->full = true;
  std::size_t sent = 6;
  // Sockets of the two nodes take some MiB; without a bound this goes on for ever.
  while (!home_->is_full() || io_.poll_one() > 0) {
    if (!home_->is_full()) home_->part(std::string(64 << 10, 'x')), sent += 64 << 10;
    ASSERT_LT(sent, std::size_t{64} << 20);
  }
  const std::size_t waiting = reader_->parts.size();
  EXPECT_LT(waiting, sent);
  reader_->full = false;
  reader_->change();
  until([&] { return reader_->parts.size() == sent; });
}

TEST_F(ClusterStreamTest, ACallerOfAGatewayThatLeavesIsSeenAtTheHome) {
  call_in_parts();
  reader_->gone = true;
  reader_->change();
  ASSERT_TRUE(outcome_);
  EXPECT_FALSE(*outcome_);
  until([&] { return home_->is_gone(); });
  EXPECT_FALSE(g_.cluster->busy());
}

TEST_F(ClusterStreamTest, AHomeThatDiesInTheMiddleIsAnErrorAndNobodyElseRunsIt) {
  call_in_parts();
  a_.server.reset();
  until([&] { return outcome_.has_value(); });
  ASSERT_FALSE(*outcome_);
  EXPECT_THAT(outcome_->error().message, HasSubstr("'a' was given this call"));
  EXPECT_EQ(reader_->parts, "first ");
}

TEST_F(ClusterStreamTest, AFunctionThatAnswersWholeIsAnsweredWhole) {
  join_both();
  deploy(a_, "f");
  InvokeRequest wanted = request("f");
  wanted.stream = reader_;
  const auto outcome = call(g_, std::move(wanted));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->payload, "a");
  EXPECT_EQ(reader_->request_id, "");
}

TEST_F(ClusterNodeTest, AHomeThatDrainsSendsCallsBackAndTheyGoElsewhere) {
  join_both();
  deploy(a_, "f");
  a_.cluster->drain();
  const auto nobody = call(g_, request("f"));
  EXPECT_EQ(nobody.error().code, Errc::kUnavailable);
  EXPECT_TRUE(a_.node.invoked.empty());
  until([&] { return g_.state("a") == "draining"; });
}

TEST_F(ClusterNodeTest, ANodeThatGivesWaySendsItsCallsToOthersUntilItResumes) {
  Place b{io_, "b"};
  a_.join({b.address});
  b.join({a_.address});
  until([&] { return a_.state("b") == "alive" && b.state("a") == "alive"; });
  deploy(a_, "f");
  a_.cluster->give_way();
  a_.cluster->give_way();  // said twice
  EXPECT_TRUE(a_.cluster->drains());
  until([&] { return b.state("a") == "draining"; });
  EXPECT_EQ(call(a_, request("f"))->payload, "b");
  EXPECT_EQ(call(b, request("f"))->payload, "b");
  EXPECT_TRUE(a_.node.invoked.empty());

  ASSERT_TRUE(a_.cluster->resume());
  until([&] { return b.state("a") == "alive"; });
  const auto home = a_.cluster->home_of(a_.node.functions.at("f"));
  ASSERT_TRUE(home);
  const std::string name = a_.cluster->peers().view().name(home->node);
  EXPECT_EQ(call(b, request("f"))->payload, name);
  a_.cluster->drain();  // for good
  EXPECT_EQ(a_.cluster->resume().error().code, Errc::kConflict);
}

TEST_F(ClusterNodeTest, AnotherKeyIsNoPeer) {
  a_.join({g_.address});
  g_.join({a_.address}, true, std::string(32, 'x'));
  until([&] { return a_.cluster->peers().refused() > 0; });
  EXPECT_EQ(g_.state("a"), "unknown");
  EXPECT_EQ(a_.state("g"), "unknown");
  a_.node.add("f");
  g_.node.add("f");
  EXPECT_EQ(call(g_, request("f")).error().code, Errc::kUnavailable);
}

TEST_F(ClusterNodeTest, VersionsOutliveAStart) {
  join_both();
  deploy(a_, "f");
  const std::uint64_t digest = a_.cluster->brought().functions->digest();
  EXPECT_EQ(FunctionSync::open(a_.node, a_.folder / "", "a").value()->digest(), digest);
  EXPECT_EQ(g_.cluster->brought().functions->digest(), digest);
}

// As after a start whose clock was ahead: neither the node nor what else it has suffers from that.
TEST_F(ClusterNodeTest, AVersionFarAheadIsKeptWhereItIsAndHoldsBackNoOther) {
  const std::int64_t ahead_ms = wall_clock_ms() + 2 * FunctionVersions::kMostAheadMs;
  a_.node.add("ahead");
  a_.folder.write("peer-functions", std::to_string(ahead_ms) + " a there ahead\n");
  join_both();
  deploy(a_, "f");
  EXPECT_TRUE(g_.node.functions.contains("f"));
  EXPECT_FALSE(g_.node.functions.contains("ahead"));
  const FunctionSync& kept = *a_.cluster->brought().functions;
  EXPECT_EQ(kept.versions().find("ahead")->ms, ahead_ms);
  bool is_deleted = false;
  a_.cluster->delete_function("ahead", [&](const Status& status) { is_deleted = status.has_value(); });
  until([&] { return is_deleted; });
  EXPECT_EQ(kept.versions().find("ahead")->ms, ahead_ms + 1);
}

TEST_F(ClusterNodeTest, AGatewayRunsNoTasksAndNoGraphs) {
  join_both();
  Result<Outcome> outcome;
  g_.cluster->run_task({}, [&](Result<Outcome> got) { outcome = std::move(got); });
  EXPECT_EQ(outcome.error().code, Errc::kUnavailable);
  EXPECT_EQ(g_.cluster->graphs().submit("default", {}).error().code, Errc::kUnavailable);
  EXPECT_TRUE(a_.cluster->graphs().submit("default", {}));
}

TEST_F(ClusterNodeTest, MetricsNameEachPeer) {
  join_both();
  EXPECT_THAT(peer_metrics(*g_.cluster), HasSubstr("fairlead_peer_state{peer=\"a\",state=\"alive\"} 1\n"));
  EXPECT_THAT(peer_metrics(*g_.cluster), HasSubstr("fairlead_peer_slots{peer=\"a\"} 2\n"));
}

}  // namespace
}  // namespace fairlead
