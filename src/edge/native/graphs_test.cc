#include "edge/native/native_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

class GraphRoutes : public EdgeTest {
 protected:
  GraphRoutes() {
    serve(native_edge(node_.io, node_, [](Outcome) { return net::HttpResponse(); }));
  }
};

constexpr const char* kGraph = R"({"nodes": {"a": {"function": "f"}}})";

TEST_F(GraphRoutes, AGraphIsTakenAndItsRunShown) {
  const FakeExchange answer = call("POST", "/v1/graphs?wait=2.5", kGraph, {{"X-Fairlead-Tenant", "acme"}});
  EXPECT_EQ(202U, answer.response->status);
  EXPECT_EQ("run-1", answer.json()["run"]);
  EXPECT_EQ("running", answer.json()["state"]);
  EXPECT_EQ("acme", node_.fake_graphs.last_tenant);
  EXPECT_EQ("f", node_.fake_graphs.last_graph.nodes.at(0).function);
  EXPECT_EQ(from_seconds(2.5), node_.fake_graphs.last_patience);
}

TEST_F(GraphRoutes, ARunThatHasEndedIs200AndTellsOfItsNodes) {
  GraphRunStatus run{.run = "r", .tenant = "default", .name = "sum"};
  run.state = GraphRunState::kFailed;
  run.created_ms = 5;
  run.ended_ms = 9;
  run.done = 2;
  run.failed = 1;
  run.nodes = {{.name = "json", .function = "f"}, {.name = "bytes", .function = "f"}, {.name = "bad", .function = "g"}};
  run.nodes[0].state = run.nodes[1].state = GraphNodeState::kDone;
  run.nodes[0].result = R"({"n": 8})";
  run.nodes[1].result = "\xff";
  run.nodes[2].state = GraphNodeState::kFailed;
  run.nodes[2].error = "node bad failed: boom";
  run.nodes[2].result_bytes = 70'000;
  node_.fake_graphs.run = run;
  const FakeExchange answer = call("POST", "/v1/graphs", kGraph);
  EXPECT_EQ(200U, answer.response->status);
  const auto fields = answer.json();
  EXPECT_EQ("failed", fields["state"]);
  EXPECT_EQ(9, fields["ended_ms"]);
  EXPECT_EQ(2, fields["counts"]["done"]);
  EXPECT_EQ(8, fields["nodes"]["json"]["result"]["n"]);
  EXPECT_EQ("/w==", fields["nodes"]["bytes"]["result_base64"]);
  EXPECT_EQ("node bad failed: boom", fields["nodes"]["bad"]["error"]);
  EXPECT_EQ(70'000, fields["nodes"]["bad"]["result_bytes"]);
}

TEST_F(GraphRoutes, CheckShowListAndCancel) {
  EXPECT_EQ(R"({"inputs":["in"],"nodes":1})", call("POST", "/v1/graphs?check", kGraph).response->body);
  call("GET", "/v1/graphs/run-7?wait=3&ended=0");
  EXPECT_EQ("run-7", node_.fake_graphs.last_run);
  EXPECT_EQ(std::optional<std::size_t>(0), node_.fake_graphs.last_ended);
  call("GET", "/v1/graphs/run-7");
  EXPECT_EQ(std::nullopt, node_.fake_graphs.last_ended);
  EXPECT_EQ("run-1", call("GET", "/v1/graphs").json()["runs"][0]["run"]);
  EXPECT_EQ(200U, call("DELETE", "/v1/graphs/run-8").response->status);
  EXPECT_EQ("run-8", node_.fake_graphs.last_run);
}

TEST_F(GraphRoutes, RefusalsNameWhatIsWrong) {
  expect_error(call("POST", "/v1/graphs", "{}"), 400, "InvalidParameterValueException", "nodes");
  expect_error(call("POST", "/v1/graphs?wait=901", kGraph), 400, "InvalidParameterValueException", "wait is '901'");
  expect_error(call("GET", "/v1/graphs/r?ended=x"), 400, "InvalidParameterValueException", "ended is 'x'");
  expect_error(call("GET", "/v1/graphs", "", {{"X-Fairlead-Tenant", "../a"}}), 400, "InvalidParameterValueException",
               "tenant");
  expect_error(call("POST", "/v1/graphs", std::string(kMaxGraphBytes + 1, ' ')), 413, "RequestTooLargeException",
               "4194305 bytes");
  node_.fake_graphs.run = fail(Errc::kNotFound, "there is no run");
  expect_error(call("GET", "/v1/graphs/r"), 404, "ResourceNotFoundException", "there is no run");
}

}  // namespace
}  // namespace fairlead
