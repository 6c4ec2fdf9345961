#include "edge/metrics/metrics.h"

#include <sstream>

#include "edge/testing/edge_fixture.h"
#include "edge/testing/sample_status.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

class MetricsEdge : public EdgeTest {
 protected:
  MetricsEdge() { serve(metrics_edge(node_)); }
};

TEST_F(MetricsEdge, TheyAreServedAsPrometheusText) {
  const auto exchange = call("GET", "/metrics");
  EXPECT_EQ("text/plain; version=0.0.4; charset=utf-8", exchange.response_header("Content-Type"));
  EXPECT_THAT(exchange.response->body, HasSubstr("# TYPE fairlead_queue_depth gauge\n"));
  EXPECT_EQ(405u, call("PUT", "/metrics").response->status);
}

TEST(Metrics, CountersAndGauges) {
  const std::string text = render_metrics(sample_status());
  for (const char* line :
       {"fairlead_info{version=\"1.2.3\",policy=\"mqfq-sticky\",sharing=\"mps\",memory_policy=\"prefetch-swap\"} 1\n",
        "fairlead_queued 4\n",
        "fairlead_evictions_total 5\n",
        "fairlead_queue_depth{function=\"f\"} 4\n",
        "fairlead_in_flight{function=\"f\"} 2\n",
        "fairlead_virtual_time_seconds{function=\"f\"} 1.5\n",
        "fairlead_flow_state{function=\"f\",state=\"throttled\"} 1\n",
        "fairlead_flow_state{function=\"f\",state=\"active\"} 0\n",
        "fairlead_starts_total{function=\"f\",start=\"cold\"} 3\n",
        "fairlead_starts_total{function=\"f\",start=\"device-warm\"} 5\n",
        "fairlead_starts_total{function=\"f\",start=\"host-warm\"} 2\n",
        "fairlead_device_memory_bytes{function=\"f\",part=\"away\"} 209715200\n",
        "fairlead_device_memory_bytes{function=\"f\",part=\"expected\"} 419430400\n",
        "fairlead_swaps_total{direction=\"out\"} 4\n",
        "fairlead_swap_bytes_total{direction=\"out\"} 4096\n",
        "fairlead_prefetches_total{result=\"late\"} 2\n",
        "fairlead_room_requests_total{result=\"refused\"} 1\n",
        "fairlead_quota_request_percent{function=\"f\"} 34\n",
        "fairlead_quota_limit_percent{function=\"f\"} 50\n",
        "fairlead_seats_wanted{function=\"f\"} 2\n",
        "fairlead_seats{function=\"f\",gpu=\"1\"} 2\n",
        "fairlead_share_delivered_percent{function=\"f\"} 33.5\n",
        "fairlead_share_delivered_last_minute_percent{function=\"f\"} 34.25\n",
        "fairlead_share_credit_seconds{function=\"f\"} 0.0625\n",
        "fairlead_gate_wait_seconds_bucket{function=\"f\",le=\"4e-06\"} 0\n",
        "fairlead_gate_wait_seconds_bucket{function=\"f\",le=\"1.6e-05\"} 4\n",
        "fairlead_gate_wait_seconds_bucket{function=\"f\",le=\"+Inf\"} 7\n",
        "fairlead_gate_wait_seconds_sum{function=\"f\"} 0.5\n",
        "fairlead_gate_wait_seconds_count{function=\"f\"} 7\n",
        "fairlead_turns_evaded_total{function=\"f\",what=\"named\"} 2\n",
        "fairlead_turns_evaded_total{function=\"f\",what=\"stopped\"} 1\n",
        "fairlead_instances{function=\"f\",state=\"busy\"} 2\n",
        "process_resident_memory_bytes 10485760\n"}) {
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
  EXPECT_THAT(text, HasSubstr(R"(fairlead_gpu_utilisation{gpu="1",uuid="MIG-1",name="GPU \"x\"\\"} 0.5)"));
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
