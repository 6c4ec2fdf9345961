#include "edge/lambda/lambda_events.h"

#include "edge/lambda/lambda_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using nlohmann::json;

const std::string kConfig = "/2019-09-25/functions/f/event-invoke-config";
const std::string kBad = "InvalidParameterValueException";

class LambdaEvents : public EdgeTest {
 protected:
  LambdaEvents() {
    serve(lambda_edge(node_));
    node_.add("f");
  }
};

TEST_F(LambdaEvents, WhatIsPutIsGotten) {
  const auto put = call("PUT", kConfig, R"({"MaximumRetryAttempts":0,"MaximumEventAgeInSeconds":60})");
  ASSERT_EQ(200u, put.response->status) << put.response->body;
  const json wanted = {{"FunctionArn", "arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST"},
                       {"LastModified", 1'700'000'000.123},
                       {"MaximumRetryAttempts", 0},
                       {"MaximumEventAgeInSeconds", 60},
                       {"DestinationConfig", {{"OnSuccess", json::object()}, {"OnFailure", json::object()}}}};
  EXPECT_EQ(wanted, put.json());
  EXPECT_EQ(wanted, call("GET", kConfig).json());
  EXPECT_EQ(wanted, call("GET", kConfig + "?Qualifier=$LATEST").json());
  EXPECT_EQ(json({{"FunctionEventInvokeConfigs", {wanted}}}), call("GET", kConfig + "/list").json());
}

TEST_F(LambdaEvents, PutReplacesAndUpdateChangesWhatItNames) {
  call("PUT", kConfig, R"({"MaximumRetryAttempts":0,"MaximumEventAgeInSeconds":60})");
  const json updated = call("POST", kConfig, R"({"MaximumRetryAttempts":1})").json();
  EXPECT_EQ(1, updated["MaximumRetryAttempts"]);
  EXPECT_EQ(60, updated["MaximumEventAgeInSeconds"]);
  EXPECT_FALSE(call("PUT", kConfig, R"({"MaximumRetryAttempts":1})").json().contains("MaximumEventAgeInSeconds"));
}

TEST_F(LambdaEvents, WhatIsDeletedIsNotThere) {
  EXPECT_EQ(404u, call("GET", kConfig).response->status);
  EXPECT_EQ(404u, call("DELETE", kConfig).response->status);
  EXPECT_EQ(404u, call("POST", kConfig, "{}").response->status);
  EXPECT_EQ(json::array(), call("GET", kConfig + "/list").json()["FunctionEventInvokeConfigs"]);
  call("PUT", kConfig, "{}");
  EXPECT_EQ(204u, call("DELETE", kConfig).response->status);
  EXPECT_EQ(404u, call("GET", kConfig).response->status);
}

TEST_F(LambdaEvents, WhatCannotBeIsRefusedAndNothingSet) {
  expect_error(call("PUT", kConfig, R"({"MaximumRetryAttempts":3})"), 400, kBad, "must be between 0 and 2");
  expect_error(call("PUT", kConfig, R"({"MaximumEventAgeInSeconds":21601})"), 400, kBad, "between 60 and 21600");
  expect_error(call("PUT", kConfig, R"({"MaximumRetryAttempts":"1"})"), 400, kBad, "must be an integer");
  expect_error(call("PUT", kConfig, R"({"DestinationConfig":{"OnFailure":{"Destination":"arn:aws:sqs:x"}}})"), 400,
               kBad, "DestinationConfig.OnFailure.Destination: there are no destinations");
  expect_error(call("PUT", kConfig, R"({"DestinationConfig":7})"), 400, kBad, "DestinationConfig");
  expect_error(call("PUT", kConfig, "[]"), 400, kBad, "");
  for (const char* const method : {"PUT", "GET", "DELETE"}) {
    EXPECT_EQ(404u, call(method, "/2019-09-25/functions/unknown/event-invoke-config", "{}").response->status) << method;
  }
  EXPECT_TRUE(node_.fake_events.configs.empty());
}

}  // namespace
}  // namespace fairlead
