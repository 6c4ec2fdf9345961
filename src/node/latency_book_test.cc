#include "node/latency_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

RequestTrace request(Duration queue) {
  RequestTrace trace{.request_id = "r-1", .function = "f", .accepted_ms = 1'700'000'000'250};
  trace.queue = queue;
  return trace;
}

TEST(LatencyBook, BucketsAddUpAndABoundIsInItsOwn) {
  LatencyBook book;
  for (const Duration queue : std::vector<Duration>{100us, 500us, 501us, 1s, 2min}) book.add(request(queue), nullptr);
  const std::string text = book.metrics(false);
  EXPECT_THAT(text, HasSubstr("fairlead_queue_time_seconds_bucket{function=\"f\",le=\"0.0005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_time_seconds_bucket{function=\"f\",le=\"0.001\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_time_seconds_bucket{function=\"f\",le=\"60\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_time_seconds_bucket{function=\"f\",le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_queue_time_seconds_count{function=\"f\"} 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("fairlead_swap_seconds_count"))) << "there was none";
  EXPECT_THAT(text, Not(HasSubstr("r-1")));
}

TEST(LatencyBook, ABucketNamesItsLastRequestOrItsTrace) {
  LatencyBook book;
  book.add(request(2s), nullptr);
  EXPECT_THAT(book.metrics(true), HasSubstr("le=\"2.5\"} 1 # {request_id=\"r-1\"} 2 1700000000.250\n"));
  const TraceContext trace{0xab, 0xcd, 1, true};
  book.add(request(2s), &trace);
  EXPECT_THAT(book.metrics(true),
              HasSubstr("le=\"2.5\"} 2 # {trace_id=\"00000000000000ab00000000000000cd\"} 2 1700000000.250\n"));
}

TEST(LatencyBook, EachKindIsOnlyThereWhereItWas) {
  LatencyBook book;
  RequestTrace cold = request(1ms);
  cold.version = 3;
  cold.instance_start = 300ms;
  cold.memory = 20ms;
  cold.first_byte = 700ms;
  book.add(cold, nullptr);
  const std::string text = book.metrics(false);
  EXPECT_THAT(text, HasSubstr("fairlead_cold_start_seconds_sum{function=\"f:3\"} 0.3\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_swap_seconds_sum{function=\"f:3\"} 0.02\n"));
  EXPECT_THAT(text, HasSubstr("fairlead_first_byte_seconds_sum{function=\"f:3\"} 0.7\n"));
  book.forget("f:3");
  EXPECT_THAT(book.metrics(false), Not(HasSubstr("f:3")));
  EXPECT_THAT(book.metrics(false), HasSubstr("# TYPE fairlead_swap_seconds histogram\n"));
}

}  // namespace
}  // namespace fairlead
