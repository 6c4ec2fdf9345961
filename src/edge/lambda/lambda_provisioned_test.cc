#include "edge/lambda/lambda_provisioned.h"

#include "edge/lambda/lambda_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using nlohmann::json;

const std::string kPath = "/2019-09-30/functions/f/provisioned-concurrency";
const std::string kBad = "InvalidParameterValueException";
const std::string kNone = "ProvisionedConcurrencyConfigNotFoundException";

class LambdaProvisioned : public EdgeTest {
 protected:
  LambdaProvisioned() {
    serve(lambda_edge(node_));
    keep("");
  }
  std::string tag() {
    const auto& tags = node_.functions["f"].config.tags;
    return tags.contains("gpu:replicas") ? tags.at("gpu:replicas") : "";
  }
  // The function has this gpu:replicas; one of its instances in seats is ready, one starts.
  void keep(const std::string& replicas) {
    FunctionConfig config;
    if (!replicas.empty()) config.tags["gpu:replicas"] = replicas;
    node_.add("f", config);
    FunctionStatus status{.name = "f"};
    status.flow.flow = FlowId(7);
    node_.node_status.functions = {status};
    node_.node_status.instances.clear();
    for (const InstanceState state : {InstanceState::kIdle, InstanceState::kStarting}) {
      InstanceView instance{};
      instance.flow = FlowId(7);
      instance.state = state;
      instance.seated = true;
      node_.node_status.instances.push_back(instance);
    }
    InstanceView beside{};  // that nobody keeps
    beside.flow = FlowId(7);
    beside.state = InstanceState::kIdle;
    node_.node_status.instances.push_back(beside);
  }
};

TEST_F(LambdaProvisioned, PutKeepsInstancesAndSaysHowManyAreReady) {
  const auto put = call("PUT", kPath + "?Qualifier=$LATEST", R"({"ProvisionedConcurrentExecutions":2})");
  ASSERT_EQ(202u, put.response->status) << put.response->body;
  EXPECT_EQ("2:1000", tag());
  EXPECT_EQ(2, put.json()["RequestedProvisionedConcurrentExecutions"]);
  EXPECT_EQ(1, put.json()["AvailableProvisionedConcurrentExecutions"]);
  EXPECT_EQ("IN_PROGRESS", put.json()["Status"]);
}

TEST_F(LambdaProvisioned, WhatIsReadyIsReadyAndWhatLacksAPlaceFailed) {
  keep("1:5");
  EXPECT_EQ("READY", call("GET", kPath).json()["Status"]);
  keep("3:5");
  node_.node_status.functions[0].share.lacking = "no GPU has room";
  EXPECT_EQ("FAILED", call("GET", kPath).json()["Status"]);
  EXPECT_EQ("no GPU has room", call("GET", kPath).json()["StatusReason"]);
}

TEST_F(LambdaProvisioned, WhereNoneIsKeptThereIsNoConfig) {
  expect_error(call("GET", kPath), 404, kNone, "function f");
  expect_error(call("DELETE", kPath), 404, kNone, "function f");
  EXPECT_EQ(json::array(), call("GET", kPath + "?List=ALL").json()["ProvisionedConcurrencyConfigs"]);
}

TEST_F(LambdaProvisioned, DeleteKeepsNone) {
  keep("2:1000");
  EXPECT_EQ("arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST",
            call("GET", kPath + "?List=ALL").json()["ProvisionedConcurrencyConfigs"][0]["FunctionArn"]);
  EXPECT_EQ(204u, call("DELETE", kPath).response->status);
  EXPECT_EQ("", tag());
}

TEST_F(LambdaProvisioned, BoundsAreNamedAndNothingIsSet) {
  for (const char* body :
       {"{}", R"({"ProvisionedConcurrentExecutions":0})", R"({"ProvisionedConcurrentExecutions":1001})",
        R"({"ProvisionedConcurrentExecutions":"1"})", "[]"}) {
    EXPECT_EQ(400u, call("PUT", kPath, body).response->status) << body;
  }
  EXPECT_EQ("", tag());
  EXPECT_EQ(404u, call("PUT", "/2019-09-30/functions/unknown/provisioned-concurrency", "{}").response->status);
}

// Version 1 of `f` has one instance that is ready in its seat, and one that starts.
class LambdaProvisionedVersions : public LambdaProvisioned {
 protected:
  LambdaProvisionedVersions() {
    EXPECT_EQ(201u, call("POST", "/2015-03-31/functions/f/versions", "{}").response->status);
    EXPECT_EQ(
        201u,
        call("POST", "/2015-03-31/functions/f/aliases", R"({"Name":"live","FunctionVersion":"1"})").response->status);
    EXPECT_EQ(201u, call("POST", "/2015-03-31/functions/f/aliases", R"({"Name":"new","FunctionVersion":"$LATEST"})")
                        .response->status);
    FunctionStatus status{.name = "f:1"};
    status.flow.flow = FlowId(7);
    node_.node_status.functions = {status};
  }
  std::string provisioned() {
    const auto& tags = node_.functions["f"].config.tags;
    return tags.contains("gpu:provisioned") ? tags.at("gpu:provisioned") : "";
  }
};

TEST_F(LambdaProvisionedVersions, OfAVersionAndOfAnAliasAreApart) {
  const auto put = call("PUT", kPath + "?Qualifier=1", R"({"ProvisionedConcurrentExecutions":1})");
  ASSERT_EQ(202u, put.response->status) << put.response->body;
  EXPECT_EQ("1=1", provisioned());
  EXPECT_EQ("READY", put.json()["Status"]);
  EXPECT_EQ(202u, call("PUT", kPath + "?Qualifier=live", R"({"ProvisionedConcurrentExecutions":3})").response->status);
  EXPECT_EQ("1=1,live=3", provisioned());
  EXPECT_EQ("", tag());
  EXPECT_EQ(3, call("GET", kPath + "?Qualifier=live").json()["RequestedProvisionedConcurrentExecutions"]);
  EXPECT_EQ(1, call("GET", kPath + "?Qualifier=live").json()["AvailableProvisionedConcurrentExecutions"]);
  expect_error(call("GET", kPath + "?Qualifier=$LATEST"), 404, kNone, "function f");
  std::vector<std::string> arns;
  const json listed = call("GET", kPath + "?List=ALL").json();
  for (const json& one : listed["ProvisionedConcurrencyConfigs"]) arns.push_back(one["FunctionArn"]);
  const std::string arn = "arn:aws:lambda:us-east-1:000000000000:function:f:";
  EXPECT_EQ((std::vector<std::string>{arn + "1", arn + "live"}), arns);
  EXPECT_EQ(204u, call("DELETE", kPath + "?Qualifier=1").response->status);
  EXPECT_EQ("live=3", provisioned());
  expect_error(call("DELETE", kPath + "?Qualifier=1"), 404, kNone, "function f:1");
}

TEST_F(LambdaProvisionedVersions, WhatIsNotThereIsNotKept) {
  for (const char* qualifier : {"2", "absent"}) {
    const auto put = call("PUT", kPath + "?Qualifier=" + qualifier, R"({"ProvisionedConcurrentExecutions":1})");
    EXPECT_EQ(404u, put.response->status) << put.response->body;
  }
  expect_error(call("PUT", kPath + "?Qualifier=new", R"({"ProvisionedConcurrentExecutions":1})"), 400, kBad,
               "leads to $LATEST");
  EXPECT_EQ("", provisioned());
}

TEST_F(LambdaProvisionedVersions, WhatLacksAPlaceFailed) {
  ASSERT_EQ(202u, call("PUT", kPath + "?Qualifier=live", R"({"ProvisionedConcurrentExecutions":3})").response->status);
  node_.node_status.functions[0].share.lacking = "no GPU has room";
  EXPECT_EQ("FAILED", call("GET", kPath + "?Qualifier=live").json()["Status"]);
  EXPECT_EQ("no GPU has room", call("GET", kPath + "?Qualifier=live").json()["StatusReason"]);
  node_.node_status.functions[0].share.lacking.clear();
  ASSERT_EQ(200u,
            call("PUT", "/2015-03-31/functions/f/aliases/live", R"({"FunctionVersion":"$LATEST"})").response->status);
  EXPECT_EQ("FAILED", call("GET", kPath + "?Qualifier=live").json()["Status"]);
}

TEST_F(LambdaProvisionedVersions, WhoseInstancesDoNotStartFailedUntilOneDoes) {
  ASSERT_EQ(202u, call("PUT", kPath + "?Qualifier=live", R"({"ProvisionedConcurrentExecutions":3})").response->status);
  EXPECT_EQ("IN_PROGRESS", call("GET", kPath + "?Qualifier=live").json()["Status"]);
  node_.node_status.functions[0].start_failure = "exit status 1";
  EXPECT_EQ("FAILED", call("GET", kPath + "?Qualifier=live").json()["Status"]);
  EXPECT_EQ("FUNCTION_ERROR_INIT_FAILURE: the last instance did not get ready: exit status 1",
            call("GET", kPath + "?Qualifier=live").json()["StatusReason"]);
  node_.node_status.functions[0].start_failure.clear();
  EXPECT_EQ("IN_PROGRESS", call("GET", kPath + "?Qualifier=live").json()["Status"]);
}

// What deleting a version leaves when the node ends in the middle of it.
TEST_F(LambdaProvisionedVersions, WhatTheTagNamesAndIsNotThereCanBeTakenAway) {
  node_.functions["f"].config.tags["gpu:provisioned"] = "9=2,gone=1";
  expect_error(call("GET", kPath + "?Qualifier=9"), 404, "ResourceNotFoundException", "f:9");
  EXPECT_EQ(204u, call("DELETE", kPath + "?Qualifier=9").response->status);
  EXPECT_EQ(204u, call("DELETE", kPath + "?Qualifier=gone").response->status);
  EXPECT_EQ("", provisioned());
  EXPECT_EQ(404u, call("DELETE", kPath + "?Qualifier=gone").response->status);
}

TEST_F(LambdaProvisionedVersions, AreReadyOnceAllThatLeadThereAre) {
  node_.functions["f"].config.tags["gpu:provisioned"] = "1=1,live=1";
  node_.node_status.functions[0].settings.replicas.least = 2;
  EXPECT_EQ("IN_PROGRESS", call("GET", kPath + "?Qualifier=1").json()["Status"]);
  node_.node_status.functions[0].settings.replicas.least = 1;
  EXPECT_EQ("READY", call("GET", kPath + "?Qualifier=1").json()["Status"]);
}

TEST_F(LambdaProvisionedVersions, WhoIsDeletedKeepsNothing) {
  for (const char* qualifier : {"1", "live"}) {
    ASSERT_EQ(
        202u,
        call("PUT", kPath + "?Qualifier=" + qualifier, R"({"ProvisionedConcurrentExecutions":1})").response->status);
  }
  EXPECT_EQ(204u, call("DELETE", "/2015-03-31/functions/f/aliases/live").response->status);
  EXPECT_EQ("1=1", provisioned());
  EXPECT_EQ(204u, call("DELETE", "/2015-03-31/functions/f?Qualifier=1").response->status);
  EXPECT_EQ("", provisioned());
}

}  // namespace
}  // namespace fairlead
