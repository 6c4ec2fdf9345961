#include "edge/native/admin.h"

#include "edge/native/native_edge.h"
#include "edge/testing/edge_fixture.h"
#include "edge/testing/sample_status.h"

namespace fairlead {
namespace {

using nlohmann::json;

class Admin : public EdgeTest {
 protected:
  Admin() {
    serve(native_edge(node_.io, node_, [](Outcome) { return net::HttpResponse(); }));
  }
};

TEST_F(Admin, HealthFollowsDraining) {
  EXPECT_EQ("no GPU is there\n", call("GET", "/healthz").response->body);
  node_.node_status.gpus = {{.view = {.gpu = GpuId(1)}, .device = {.id = GpuId(1)}}};
  EXPECT_EQ(200u, call("GET", "/healthz").response->status);
  EXPECT_EQ(200u, call("HEAD", "/healthz").response->status);
  node_.node_status.draining = true;
  EXPECT_EQ(503u, call("GET", "/healthz").response->status);
  node_.node_status.draining = false;
  node_.node_status.spawner_obstacle = "the spawner has ended";
  EXPECT_EQ(503u, call("GET", "/healthz").response->status);
  EXPECT_EQ("the spawner has ended\n", call("GET", "/healthz").response->body);
  EXPECT_EQ(405u, call("POST", "/healthz").response->status);
}

TEST_F(Admin, AGatewayIsWellWithoutAGpuUntilItDrains) {
  node_.node_status.is_gateway = true;
  EXPECT_EQ(200u, call("GET", "/healthz").response->status);
  node_.node_status.draining = true;
  EXPECT_EQ(503u, call("GET", "/healthz").response->status);
}

TEST_F(Admin, HealthSaysWhyNoGpuServes) {
  GpuStatus gpu{.view = {.gpu = GpuId(1)},
                .device = {.id = GpuId(1), .name = "V100", .uuid = "GPU-1", .gpu_uuid = "GPU-1"}};
  gpu.view.serves = false;
  gpu.state = "repairing";
  gpu.reason = "the device is lost";
  node_.node_status.gpus = {gpu};
  const FakeExchange none = call("GET", "/healthz");
  EXPECT_EQ(503u, none.response->status);
  EXPECT_EQ("GPU 1: repairing: the device is lost\n", none.response->body);
  gpu.view.serves = true;
  node_.node_status.gpus.push_back(gpu);
  EXPECT_EQ(200u, call("GET", "/healthz").response->status) << "calls run on the other";
}

TEST_F(Admin, StatusShowsFlowsGpusAndInstances) {
  node_.node_status = sample_status();
  const json answer = call("GET", "/fairlead/v1/status").json();
  EXPECT_EQ("1.2.3", answer["version"]);
  EXPECT_EQ(90.0, answer["uptime_seconds"]);
  EXPECT_EQ(5, answer["counters"]["evictions"]);
  const json& function = answer["functions"][0];
  EXPECT_EQ("f", function["name"]);
  EXPECT_EQ("throttled", function["state"]);
  EXPECT_EQ(1.5, function["virtual_time_seconds"]);
  EXPECT_EQ(2, function["instances"]["busy"]);
  EXPECT_EQ(10, function["stats"]["invocations"]);
  EXPECT_EQ(2, function["stats"]["host_warm_starts"]);
  EXPECT_EQ(209715200, function["memory"]["away_bytes"]);
  EXPECT_EQ(4, answer["counters"]["memory"]["swap_outs"]);
  EXPECT_EQ(0.5, answer["gpus"][0]["utilisation"]);
  EXPECT_EQ("mps", answer["sharing"]);
  EXPECT_EQ(2, answer["gpus"][0]["slots_in_use"]);
  EXPECT_EQ(3, answer["gpus"][0]["slots"]);
  EXPECT_EQ("3g.40gb", answer["gpus"][0]["slice"]["profile"]);
  EXPECT_EQ(4, answer["gpus"][0]["slice"]["start"]);
  EXPECT_EQ("GPU-1", answer["gpus"][0]["gpu_uuid"]);
  EXPECT_EQ(answer["gpus"][0]["tokens"], answer["gpus"][0]["slots"]) << "the old name, for one release";
  EXPECT_EQ(answer["gpus"][0]["tokens_in_use"], answer["gpus"][0]["slots_in_use"]);
  EXPECT_EQ("draining", answer["gpus"][0]["state"]);
  EXPECT_EQ("Xid 48", answer["gpus"][0]["reason"]);
  EXPECT_EQ("f", answer["instances"][0]["function"]);
  EXPECT_EQ("busy", answer["instances"][0]["state"]);
  EXPECT_EQ("default", function["tenant"]);
  EXPECT_TRUE(function["objective_ms"].is_null());
  EXPECT_EQ(function["share"], (json{{"compute_percent", 100},
                                     {"quota_request_percent", 34},
                                     {"quota_limit_percent", 50},
                                     {"memory_mib", 0},
                                     {"least_replicas", 2},
                                     {"most_replicas", 3},
                                     {"seats", {1, 1}},
                                     {"seats_wanted", 2},
                                     {"lacking", ""},
                                     {"delivered_percent", 33.5},
                                     {"delivered_last_minute_percent", 34.25},
                                     {"credit_seconds", 0.0625},
                                     {"gate_waits", 7},
                                     {"gate_wait_seconds", 0.5},
                                     {"turns_evaded", {{"named", 2}, {"stopped", 1}, {"last", "instance 9 used"}}}}));
  EXPECT_EQ(2, answer["tenants"][0]["weight"]);
  EXPECT_EQ(3, answer["tenants"][0]["max_in_flight"]);
  EXPECT_EQ("cost", answer["settings"]["eviction"]);
  EXPECT_EQ(10, answer["settings"]["over_run_seconds"]);
}

TEST_F(Admin, HistoryIsHandedOutInPages) {
  expect_error(call("GET", "/fairlead/v1/history"), 404, "ResourceNotFoundException", "no history");
  node_.pages = {{0, {"1,f,success,cold,1,2,3,4,5\n", 27}}};
  const auto first = call("GET", "/fairlead/v1/history");
  EXPECT_EQ("1,f,success,cold,1,2,3,4,5\n", first.response->body);
  EXPECT_EQ("27", first.response_header("X-Fairlead-Next"));
  EXPECT_EQ("", call("GET", "/fairlead/v1/history?from=27").response->body);
  expect_error(call("GET", "/fairlead/v1/history?from=-1"), 400, "InvalidParameterValueException", "from is '-1'");
}

TEST_F(Admin, LogIsTextWithABound) {
  node_.add("f");
  node_.log_text = "START\nEND\n";
  const auto exchange = call("GET", "/fairlead/v1/functions/f/log?tail=100");
  EXPECT_EQ("START\nEND\n", exchange.response->body);
  EXPECT_EQ(100u, node_.last_limit);
  expect_error(call("GET", "/fairlead/v1/functions/f/log?tail=0"), 400, "InvalidParameterValueException",
               "tail is '0'");
  expect_error(call("GET", "/fairlead/v1/functions/g/log"), 404, "ResourceNotFoundException", "g");
}

TEST_F(Admin, DeadLettersCarryTheirPayload) {
  node_.letters = {{.request_id = "r",
                    .function = "f",
                    .payload = std::string("\0\xff", 2),
                    .error_type = "E",
                    .error_message = "m \xff",
                    .attempts = 3,
                    .accepted_ms = 1,
                    .failed_ms = 2}};
  const json answer = call("GET", "/fairlead/v1/dead-letters?function=f&limit=5").json();
  EXPECT_EQ("r", answer["dead_letters"][0]["request_id"]);
  EXPECT_EQ("AP8=", answer["dead_letters"][0]["payload_base64"]);
  EXPECT_EQ(3, answer["dead_letters"][0]["attempts"]);
  EXPECT_EQ("f", node_.last_letters_function);
  EXPECT_EQ(5u, node_.last_limit);
  expect_error(call("GET", "/fairlead/v1/dead-letters?limit=x"), 400, "InvalidParameterValueException", "limit is 'x'");
  EXPECT_EQ(json({{"redriven", 2}, {"left", 1}}), call("POST", "/fairlead/v1/functions/f/dead-letters/redrive").json());
  EXPECT_EQ("f", node_.fake_events.last_redriven);
  call("POST", "/fairlead/v1/dead-letters/redrive");
  EXPECT_EQ("", node_.fake_events.last_redriven) << "the operator's: of all";
}

}  // namespace
}  // namespace fairlead
