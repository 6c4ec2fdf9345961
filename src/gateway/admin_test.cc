#include "gateway/admin.h"

#include "gateway/gateway_fixture.h"
#include "gateway/metrics.h"

namespace fairlead {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

NodeStatus sample_status() {
  NodeStatus status{.version = "1.2.3", .policy = "mqfq-sticky"};
  status.uptime = std::chrono::seconds(90);
  status.memory_policy = "prefetch-swap";
  status.queued = 4;
  status.counters.evictions = 5;
  status.counters.memory = {.swap_ins = 3, .swap_outs = 4, .bytes_out = 4096, .prefetches_late = 2, .room_refused = 1};
  status.resident = mib(10);
  FunctionStatus function{.name = "f"};
  function.flow = {.flow = FlowId(7), .state = FlowState::kThrottled, .queued = 4, .in_flight = 2};
  function.flow.virtual_time = std::chrono::milliseconds(1500);
  function.stats = {.invocations = 10,
                    .errors = 4,
                    .timeouts = 1,
                    .crashes = 1,
                    .device_warm_starts = 5,
                    .host_warm_starts = 2,
                    .cold_starts = 3};
  function.stats.service = std::chrono::seconds(2);
  function.stats.duration_histogram.assign(std::size(kDurationBucketsSeconds) + 1, 0);
  function.stats.duration_histogram[0] = 6;
  function.stats.duration_histogram[1] = 3;
  function.stats.duration_histogram.back() = 1;
  function.instances_busy = 2;
  function.memory = {.held = mib(300), .resident = mib(100), .away = mib(200), .fixed = mib(10)};
  function.memory_expected = mib(400);
  status.functions.push_back(function);
  GpuStatus gpu{.view = {.gpu = GpuId(1), .slots_in_use = 2, .instances = 2}, .name = "GPU \"x\"\\", .uuid = "GPU-1"};
  gpu.memory_total = gib(80);
  gpu.view.slots = 3;
  gpu.view.serves = false;
  gpu.state = "draining";
  gpu.reason = "Xid 48";
  gpu.mps_restarts = 4;
  status.sharing = "mps";
  gpu.utilisation = 0.5;
  status.gpus.push_back(gpu);
  status.settings.policy.by_tenant = true;
  status.settings.core.eviction = EvictionKind::kCost;
  status.tenants = {{.name = "vision", .share = {.weight = 2, .max_concurrency = 3}, .functions = 1, .in_flight = 2}};
  status.instances.push_back({InstanceId(9), FlowId(7), GpuId(1), InstanceState::kBusy, {}});
  return status;
}

class Admin : public GatewayTest {};

TEST_F(Admin, HealthFollowsDraining) {
  EXPECT_EQ(200u, call("GET", "/healthz").response->status);
  EXPECT_EQ(200u, call("HEAD", "/healthz").response->status);
  node_.node_status.draining = true;
  EXPECT_EQ(503u, call("GET", "/healthz").response->status);
  EXPECT_EQ(405u, call("POST", "/healthz").response->status);
}

TEST_F(Admin, HealthSaysWhyNoGpuServes) {
  GpuStatus gpu{.view = {.gpu = GpuId(1)}, .name = "V100", .uuid = "GPU-1"};
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
  EXPECT_EQ("draining", answer["gpus"][0]["state"]);
  EXPECT_EQ("Xid 48", answer["gpus"][0]["reason"]);
  EXPECT_EQ("f", answer["instances"][0]["function"]);
  EXPECT_EQ("busy", answer["instances"][0]["state"]);
  EXPECT_EQ("default", function["tenant"]);
  EXPECT_TRUE(function["objective_ms"].is_null());
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
}

TEST_F(Admin, MetricsAreServedAsPrometheusText) {
  const auto exchange = call("GET", "/metrics");
  EXPECT_EQ("text/plain; version=0.0.4; charset=utf-8", exchange.response_header("Content-Type"));
  EXPECT_THAT(exchange.response->body, HasSubstr("# TYPE fairlead_queue_depth gauge\n"));
}

TEST(Metrics, CountersAndGauges) {
  const std::string text = render_metrics(sample_status());
  for (const char* line :
       {"fairlead_info{version=\"1.2.3\",policy=\"mqfq-sticky\",sharing=\"mps\",memory_policy=\"prefetch-swap\"} 1\n",
        "fairlead_queued 4\n", "fairlead_evictions_total 5\n", "fairlead_queue_depth{function=\"f\"} 4\n",
        "fairlead_in_flight{function=\"f\"} 2\n", "fairlead_virtual_time_seconds{function=\"f\"} 1.5\n",
        "fairlead_flow_state{function=\"f\",state=\"throttled\"} 1\n",
        "fairlead_flow_state{function=\"f\",state=\"active\"} 0\n",
        "fairlead_starts_total{function=\"f\",start=\"cold\"} 3\n",
        "fairlead_starts_total{function=\"f\",start=\"device-warm\"} 5\n",
        "fairlead_starts_total{function=\"f\",start=\"host-warm\"} 2\n",
        "fairlead_device_memory_bytes{function=\"f\",part=\"away\"} 209715200\n",
        "fairlead_device_memory_bytes{function=\"f\",part=\"expected\"} 419430400\n",
        "fairlead_swaps_total{direction=\"out\"} 4\n", "fairlead_swap_bytes_total{direction=\"out\"} 4096\n",
        "fairlead_prefetches_total{result=\"late\"} 2\n", "fairlead_room_requests_total{result=\"refused\"} 1\n",
        "fairlead_instances{function=\"f\",state=\"busy\"} 2\n", "process_resident_memory_bytes 10485760\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(Metrics, OutcomesAddUpToAllInvocations) {
  const std::string text = render_metrics(sample_status());
  EXPECT_THAT(text, HasSubstr("fairlead_invocations_total{function=\"f\",outcome=\"success\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocations_total{function=\"f\",outcome=\"error\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocations_total{function=\"f\",outcome=\"timeout\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocations_total{function=\"f\",outcome=\"crash\"} 1\n"));
}

TEST(Metrics, HistogramBucketsAreCumulative) {
  const std::string text = render_metrics(sample_status());
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_bucket{function=\"f\",le=\"0.0005\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_bucket{function=\"f\",le=\"0.001\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_bucket{function=\"f\",le=\"300\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_bucket{function=\"f\",le=\"+Inf\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_count{function=\"f\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_invocation_duration_seconds_sum{function=\"f\"} 2"));
}

TEST(Metrics, LabelsAreEscaped) {
  const std::string text = render_metrics(sample_status());
  EXPECT_THAT(text, HasSubstr(R"(fairlead_gpu_utilisation{gpu="1",uuid="GPU-1",name="GPU \"x\"\\"} 0.5)"));
}

TEST(Metrics, EveryFamilyHasHelpAndTypeOnce) {
  std::istringstream lines(render_metrics(sample_status()));
  std::map<std::string, int> helps, types;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, kind, name;
    words >> hash >> kind >> name;
    if (hash != "#") continue;
    ++(kind == "HELP" ? helps : types)[name];
  }
  EXPECT_GT(helps.size(), 20u);
  EXPECT_EQ(helps, types);
  for (const auto& [name, count] : helps) EXPECT_EQ(1, count) << name;
}

}  // namespace
}  // namespace fairlead
