#include "edge/native/scaling.h"

#include "edge/native/native_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

class ScalingRoutes : public EdgeTest {
 protected:
  ScalingRoutes() {
    serve(native_edge(node_.io, node_, [](Outcome) { return net::HttpResponse{}; }));
    node_.add("f");
  }
  static FunctionProfile profile() {
    FunctionProfile made{.function = "f", .code_sha256 = "c2hh", .device = "V100"};
    made.trials = {{.rate_per_s = 10, .error = 0.02}};
    made.work_ms = 100;
    return made;
  }
};

constexpr const char* kProfile = "/fairlead/v1/functions/f/profile";

TEST_F(ScalingRoutes, AnExperimentIsStartedWithTheBodyAsItsPayload) {
  EXPECT_EQ(202U,
            call("POST", std::string(kProfile) + "?grid=1&trial-seconds=2.5&alone=1", "payload").response->status);
  EXPECT_EQ("f", node_.fake_scaling.last_request.function);
  EXPECT_EQ("payload", node_.fake_scaling.last_request.payload);
  EXPECT_TRUE(node_.fake_scaling.last_request.is_grid);
  EXPECT_EQ(2.5, node_.fake_scaling.last_request.trial_seconds);
  EXPECT_TRUE(node_.fake_scaling.last_request.is_alone);
  expect_error(call("POST", std::string(kProfile) + "?trial-seconds=601", ""), 400, "InvalidParameterValueException",
               "trial-seconds is '601'; it must be between 0 and 600");
}

TEST_F(ScalingRoutes, ProfilesAndTheExperimentAreShown) {
  node_.fake_scaling.known = {.profiles = {profile()},
                              .experiment = ExperimentStatus{.function = "f", .is_running = true, .state = "measures"}};
  const auto shown = nlohmann::json::parse(call("GET", kProfile).response->body);
  EXPECT_EQ("V100", shown["profiles"][0]["device"]);
  EXPECT_TRUE(shown["experiment"]["running"]);
  EXPECT_EQ(200U, call("DELETE", kProfile).response->status);
  EXPECT_TRUE(node_.fake_scaling.is_stopped);
}

TEST_F(ScalingRoutes, WhatIsImportedIsChecked) {
  EXPECT_EQ(200U, call("PUT", kProfile, to_json(profile())).response->status);
  EXPECT_EQ(profile(), node_.fake_scaling.last_imported);
  expect_error(call("PUT", kProfile, "{}"), 400, "InvalidParameterValueException", "function must be a string");
}

TEST_F(ScalingRoutes, DecisionsAreExplained) {
  node_.fake_scaling.status = {
      .function = "f", .state = "scaled", .notes = {{.saw = "much", .did = {"a"}, .rejected = {"b"}}}};
  const auto one = nlohmann::json::parse(call("GET", "/fairlead/v1/functions/f/scaling").response->body);
  EXPECT_EQ("much", one["notes"][0]["saw"]);
  EXPECT_EQ("b", one["notes"][0]["rejected"][0]);
  const auto all = nlohmann::json::parse(call("GET", "/fairlead/v1/scaling").response->body);
  EXPECT_EQ("f", all["functions"][0]["function"]);
}

TEST_F(ScalingRoutes, BooksSayWhatWasHeldWhoWasLateAndWhereSeatsWere) {
  node_.fake_scaling.status = {.function = "f", .state = "scaled", .objective_ms = 69};
  node_.fake_scaling.status.totals = {
      .since_ms = 5, .arrived = 10, .answered = 9, .late = 2, .held_s = 12, .bound_s = 10};
  node_.fake_scaling.status.seconds = {{.at_s = 7, .arrived = 3, .late = 1, .seats = 2}};
  node_.fake_scaling.placed = {
      {.at_ms = 8, .function = "f", .width_percent = 24, .quota_percent = 50, .seats = {{GpuId(2), 3}}},
      {.at_ms = 9, .function = "somebody-elses", .seats = {{GpuId(1), 1}}}};
  const auto one = nlohmann::json::parse(call("GET", "/fairlead/v1/functions/f/scaling").response->body);
  EXPECT_EQ(69, one["objective_ms"]);
  EXPECT_EQ(2, one["totals"]["late"]);
  EXPECT_EQ(12, one["totals"]["held_gpu_seconds"]);
  EXPECT_EQ(10, one["totals"]["bound_gpu_seconds"]);
  EXPECT_EQ(1, one["seconds"][0]["late"]);
  const auto all = nlohmann::json::parse(call("GET", "/fairlead/v1/scaling").response->body);
  ASSERT_EQ(2U, all["placements"].size()) << "who calls here sees all tenants'";
  EXPECT_EQ(3, all["placements"][0]["seats"]["2"]);
}

TEST_F(ScalingRoutes, APipelineIsShownAndWhatIsNoneIsRefused) {
  EXPECT_EQ(200U, call("GET", "/fairlead/v1/functions/chain/pipeline").response->status);
  EXPECT_EQ(400U, call("GET", "/fairlead/v1/functions/f/pipeline").response->status);
}

}  // namespace
}  // namespace fairlead
