// What is shown, to whom; and what of it a tenant is not.
#include "edge/console/live_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "edge/testing/sample_status.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::optional<int> nothing_reserved(const std::string&) {
  return std::nullopt;
}

// One function of tenant "a" and one of "b", on a busy GPU.
NodeStatus two_tenants() {
  NodeStatus status = sample_status();
  status.functions[0].name = "mine";
  status.functions[0].settings.tenant = "a";
  FunctionStatus other{.name = "others-secret"};
  other.flow = {.flow = FlowId(8), .queued = 77};
  other.settings.tenant = "b-secret";
  status.functions.push_back(other);
  return status;
}

TEST(LiveItems, ThereIsOneForEachThing) {
  const NodeStatus status = sample_status();
  const LiveView::Items items = live_items({status, nothing_reserved}, std::nullopt);
  EXPECT_EQ(5u, items.size());
  const Json function = Json::parse(items.at("fn/f")), gpu = Json::parse(items.at("gpu/1"));
  EXPECT_EQ("throttled", function["state"]);
  EXPECT_EQ(1.5, function["vt_s"]);
  EXPECT_EQ("no GPU takes calls", function["why"]);
  EXPECT_EQ(3, function["stats"]["cold"]);
  EXPECT_EQ("Xid 48", gpu["reason"]);
  EXPECT_EQ("f", Json::parse(items.at("inst/9"))["function"]);
  EXPECT_EQ(3, Json::parse(items.at("tenant/vision"))["limit"]);
  EXPECT_EQ(std::size(kDurationBucketsSeconds), Json::parse(items.at("node"))["buckets_s"].size());
}

TEST(LiveItems, ATenantSeesItsOwnFunctionsAndNothingOfOthers) {
  const NodeStatus status = two_tenants();
  const LiveView::Items items = live_items({status, nothing_reserved}, "a");
  ASSERT_EQ(2u, items.size());
  std::string all;
  for (const auto& [name, json] : items) all += name + json;
  for (const char* secret : {"secret", "77", "gpu/", "Xid", "vision", "vt_s", "gvt_s", "tau_s", "state", "counters"}) {
    EXPECT_THAT(all, Not(HasSubstr(secret)));
  }
  const Json function = Json::parse(items.at("fn/mine"));
  EXPECT_EQ(4, function["queued"]);
  EXPECT_EQ("others are before it", function["why"]) << "that no GPU serves is the operator's to know";
  EXPECT_EQ(1, Json::parse(items.at("node"))["functions"]);
}

TEST(LiveItems, AReasonThatIsItsOwnIsToldToATenant) {
  NodeStatus status = two_tenants();
  status.gpus[0].view.serves = true;
  const auto reserved = [](const std::string& function) { return std::optional<int>(function == "mine" ? 1 : 9); };
  EXPECT_EQ("its reserved concurrency: 2 of 1 run",
            Json::parse(live_items({status, reserved}, "a").at("fn/mine"))["why"]);
}

TEST(LiveItems, OfVeryManyThoseWithMostToDoAreShownAndFitAFrame) {
  NodeStatus status = sample_status();
  const FunctionStatus function = status.functions[0];
  status.functions.clear();
  for (int i = 0; i < 10'000; ++i) {
    status.functions.push_back(function);
    status.functions.back().name = fmt::format("{:0>140}", i);
    status.functions.back().flow.queued = i == 5'000 ? 9 : 0;
    status.instances.push_back({InstanceId(100 + i), FlowId(7), GpuId(1), InstanceState::kBusy, {}});
  }
  LiveView view;
  view.update(live_items({status, nothing_reserved}, std::nullopt));
  const Json frame = Json::parse(view.text_since(0));
  EXPECT_TRUE(frame["set"].contains(fmt::format("fn/{:0>140}", 5'000)));
  EXPECT_EQ(kMostShownFunctions, frame["set"]["node"]["shown"]);
  EXPECT_EQ(10'000, frame["set"]["node"]["functions"]);
  EXPECT_LE(view.text_since(0).size(), std::size_t{1} << 20);
}

TEST(LiveItems, NamesThatAreNoTextAreStillJson) {
  NodeStatus status = sample_status();
  status.functions[0].name = "\xff<img src=x>";
  status.spawner_obstacle = "\x80\n</script>";
  for (const auto& [name, json] : live_items({status, nothing_reserved}, std::nullopt)) {
    EXPECT_TRUE(Json::accept(json)) << json;
  }
}

}  // namespace
}  // namespace fairlead
