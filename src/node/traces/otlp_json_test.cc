#include "node/traces/otlp_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::int64_t kBegan = 1'700'000'000'000'000'000;

TracedRequest request() {
  TracedRequest traced;
  traced.ids = {.caller = {0x5759e988bd862e3f, 0xe1be46a994272793, 0x53995c3f42cd8ad8, true}, .root = 0xa, .work = 0xb};
  traced.request = {.request_id = "r", .function = "f", .tenant = "t", .start = StartKind::kCold, .gpu = GpuId(1)};
  traced.request.instance_start = 300ms;
  traced.request.gpu_time = 40ms;
  traced.began_ns = kBegan;
  traced.chosen = 100ms;
  traced.delivered = 500ms;
  traced.over = 600ms;
  return traced;
}

json spans_of(const TracedRequest& traced) {
  Rng rng(1);
  const json body = json::parse(otlp_json({{"service.name", "fairlead"}}, {traced}, rng));
  return body["resourceSpans"][0]["scopeSpans"][0]["spans"];
}

json named(const json& spans, const std::string& name) {
  for (const json& span : spans) {
    if (span["name"] == name) return span;
  }
  return nullptr;
}

json attribute(const json& span, const std::string& key) {
  for (const json& one : span["attributes"]) {
    if (one["key"] == key) return one["value"];
  }
  return nullptr;
}

std::string at(Duration since) {
  return std::to_string(kBegan + since.count());
}

TEST(OtlpJson, TheTimesOfARequestAreItsSpans) {
  const json spans = spans_of(request());
  ASSERT_EQ(spans.size(), 4u);
  const json root = named(spans, "f"), queue = named(spans, "queue"), start = named(spans, "start"),
             run = named(spans, "run");
  EXPECT_EQ(root["traceId"], "5759e988bd862e3fe1be46a994272793");
  EXPECT_EQ(root["parentSpanId"], "53995c3f42cd8ad8");
  EXPECT_EQ(root["spanId"], "000000000000000a");
  EXPECT_EQ(root["kind"], 2);
  EXPECT_EQ(root["startTimeUnixNano"], at(0ms));
  EXPECT_EQ(root["endTimeUnixNano"], at(600ms));
  EXPECT_FALSE(root.contains("status"));
  EXPECT_EQ(attribute(root, "faas.coldstart")["boolValue"], true);
  EXPECT_EQ(attribute(root, "fairlead.gpu")["intValue"], "1");
  for (const json& child : {queue, start, run}) {
    EXPECT_EQ(child["parentSpanId"], root["spanId"]);
    EXPECT_EQ(child["traceId"], root["traceId"]);
  }
  EXPECT_EQ(queue["endTimeUnixNano"], at(100ms));
  EXPECT_EQ(start["startTimeUnixNano"], at(100ms));
  EXPECT_EQ(attribute(start, "fairlead.start")["stringValue"], "cold");
  EXPECT_EQ(attribute(start, "fairlead.instance_start_seconds")["doubleValue"], 0.3);
  EXPECT_EQ(run["startTimeUnixNano"], at(500ms));
  EXPECT_EQ(run["spanId"], "000000000000000b");
  EXPECT_EQ(attribute(run, "fairlead.gpu_seconds")["doubleValue"], 0.04);
}

TEST(OtlpJson, MemoryIsASpanWhereItWasAway) {
  TracedRequest traced = request();
  traced.request.memory = 50ms;
  traced.memory_ended = 450ms;
  const json memory = named(spans_of(traced), "memory");
  EXPECT_EQ(memory["startTimeUnixNano"], at(400ms));
  EXPECT_EQ(memory["endTimeUnixNano"], at(450ms));
}

TEST(OtlpJson, WhatNeverRanHasAQueueAlone) {
  TracedRequest traced = request();
  traced.request.gpu = {};
  traced.request.outcome = OutcomeKind::kExpired;
  const json spans = spans_of(traced);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(named(spans, "f")["status"], (json{{"code", 2}, {"message", "expired"}}));
}

TEST(OtlpJson, TimesThatCannotBeStayWithinTheRequest) {
  TracedRequest traced = request();
  traced.request.memory = 5h;  // a move that began before the request, or was measured badly
  traced.memory_ended = 6h;
  traced.chosen = 7h;
  for (const json& span : spans_of(traced)) {
    const auto from = std::stoll(span["startTimeUnixNano"].get<std::string>());
    const auto until = std::stoll(span["endTimeUnixNano"].get<std::string>());
    EXPECT_LE(kBegan, from) << span;
    EXPECT_LE(from, until) << span;
    EXPECT_LE(until, kBegan + Duration(600ms).count()) << span;
  }
}

TEST(OtlpJson, WhateverAProcessSaidIsJson) {
  TracedRequest traced = request();
  traced.request.outcome = OutcomeKind::kCrashed;
  traced.request.failure = std::string("\xff\"\\\n\0\x01{", 7) + "end";
  const std::string message = named(spans_of(traced), "f")["status"]["message"];
  EXPECT_THAT(message, testing::EndsWith("{end"));
}

TEST(OtlpJson, ACallThatWasGivenOnIsOneSpanOfAClient) {
  TracedRequest traced = request();
  traced.peer = "b";
  const json spans = spans_of(traced);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["name"], "forward");
  EXPECT_EQ(spans[0]["kind"], 3);
  EXPECT_EQ(attribute(spans[0], "fairlead.node")["stringValue"], "b");
}

TEST(OtlpJson, ARootHasNoParent) {
  TracedRequest traced = request();
  traced.ids.caller.span = 0;
  EXPECT_FALSE(named(spans_of(traced), "f").contains("parentSpanId"));
}

}  // namespace
}  // namespace fairlead
