// Versions and aliases over Lambda's API: what is asked of the node, and how it is answered.
#include "edge/lambda/lambda_versions.h"

#include "base/base64.h"
#include "edge/lambda/lambda_edge.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead {
namespace {

using nlohmann::json;

const std::string kF = "/2015-03-31/functions/f";
const std::string kBad = "InvalidParameterValueException";
const std::string kNone = "ResourceNotFoundException";

class LambdaVersions : public EdgeTest {
 protected:
  LambdaVersions() {
    node_.add("f");
    serve(lambda_edge(node_));
  }
  FakeExchange publish(const json& body = json::object()) { return call("POST", kF + "/versions", body.dump()); }
  FakeExchange create_alias(const json& body) { return call("POST", kF + "/aliases", body.dump()); }
};

TEST_F(LambdaVersions, PublishGivesTheVersionsConfiguration) {
  const FakeExchange made = publish({{"Description", "first"}, {"CodeSha256", "c2hh"}, {"RevisionId", "revision-1"}});
  ASSERT_EQ(made.response->status, 201u) << made.response->body;
  EXPECT_EQ(made.json()["Version"], "1");
  EXPECT_EQ(made.json()["Description"], "first");
  EXPECT_EQ(made.json()["FunctionArn"], "arn:aws:lambda:us-east-1:000000000000:function:f:1");
  EXPECT_EQ(node_.fake_versions.last_digest, "c2hh");
  expect_error(publish({{"RevisionId", "other"}}), 412, "PreconditionFailedException", "revision-1");
  expect_error(publish({{"Description", 7}}), 400, kBad, "Description");
  expect_error(call("POST", "/2015-03-31/functions/g/versions"), 404, kNone, "g");
  expect_error(call("POST", kF + ":1/versions"), 400, kBad, "leave the qualifier out");
}

TEST_F(LambdaVersions, VersionsAreListedPageByPage) {
  publish();
  publish();
  const json first = call("GET", kF + "/versions?MaxItems=2").json();
  ASSERT_EQ(first["Versions"].size(), 2u);
  EXPECT_EQ(first["Versions"][0]["Version"], "$LATEST");
  EXPECT_EQ(first["Versions"][0]["FunctionArn"], "arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST");
  EXPECT_EQ(first["NextMarker"], "1");
  const json second = call("GET", kF + "/versions?MaxItems=2&Marker=1").json();
  ASSERT_EQ(second["Versions"].size(), 1u);
  EXPECT_EQ(second["Versions"][0]["Version"], "2");
  EXPECT_FALSE(second.contains("NextMarker"));
  EXPECT_EQ(call("GET", kF + "/versions?Marker=99").json()["Versions"].size(), 0u);
  expect_error(call("GET", kF + "/versions?MaxItems=0"), 400, kBad, "MaxItems is '0'");
}

TEST_F(LambdaVersions, AQualifierGetsAVersion) {
  publish();
  create_alias({{"Name", "live"}, {"FunctionVersion", "1"}});
  EXPECT_EQ(call("GET", kF + "?Qualifier=1").json()["Configuration"]["Version"], "1");
  EXPECT_EQ(call("GET", kF + ":1").json()["Configuration"]["Version"], "1");
  const json named = call("GET", kF + "/configuration?Qualifier=live").json();
  EXPECT_EQ(named["Version"], "1");
  EXPECT_EQ(named["FunctionArn"], "arn:aws:lambda:us-east-1:000000000000:function:f:live");
  expect_error(call("GET", kF + "?Qualifier=7"), 404, kNone, "7");
  expect_error(call("GET", kF + "?Qualifier=a%20b"), 400, kBad, "Qualifier is 'a b'");
  expect_error(call("GET", kF + ":1?Qualifier=2"), 400, kBad, "leave one of them out");
}

TEST_F(LambdaVersions, AVersionIsDeletedByItsNumber) {
  publish();
  EXPECT_EQ(call("DELETE", kF + "?Qualifier=1").response->status, 204u);
  EXPECT_TRUE(node_.functions.contains("f"));
  EXPECT_TRUE(node_.fake_versions.published["f"].empty());
  expect_error(call("DELETE", kF + "?Qualifier=%24LATEST"), 400, kBad, "$LATEST");
  expect_error(call("DELETE", kF + "?Qualifier=live"), 400, kBad, "DeleteAlias");
  EXPECT_EQ(call("DELETE", kF).response->status, 204u);
  EXPECT_FALSE(node_.functions.contains("f"));
}

TEST_F(LambdaVersions, AnAliasIsMadeAndSaysWhereItLeads) {
  const FakeExchange made = create_alias({{"Name", "live"},
                                          {"FunctionVersion", "3"},
                                          {"Description", "d"},
                                          {"RoutingConfig", {{"AdditionalVersionWeights", {{"4", 0.1}}}}}});
  ASSERT_EQ(made.response->status, 201u) << made.response->body;
  EXPECT_EQ(made.json(), (json{{"AliasArn", "arn:aws:lambda:us-east-1:000000000000:function:f:live"},
                               {"Name", "live"},
                               {"FunctionVersion", "3"},
                               {"Description", "d"},
                               {"RevisionId", "revision-1"},
                               {"RoutingConfig", {{"AdditionalVersionWeights", {{"4", 0.1}}}}}}));
  EXPECT_EQ(call("GET", kF + "/aliases/live").json(), made.json());
  expect_error(create_alias({{"Name", "live"}, {"FunctionVersion", "3"}}), 409, "ResourceConflictException", "exists");
  expect_error(create_alias({{"Name", "x"}}), 400, kBad, "FunctionVersion is missing");
  expect_error(create_alias({{"FunctionVersion", "3"}}), 400, kBad, "Name is ''");
  for (const json& version : {json("0"), json("03"), json("live"), json("")}) {
    expect_error(create_alias({{"Name", "x"}, {"FunctionVersion", version}}), 400, kBad, "FunctionVersion is");
  }
  for (const json& weights : {json{{"x", 0.1}}, json{{"4", "much"}}, json{{"04", 0.1}}, json::array(), json("4")}) {
    expect_error(
        create_alias(
            {{"Name", "x"}, {"FunctionVersion", "3"}, {"RoutingConfig", {{"AdditionalVersionWeights", weights}}}}),
        400, kBad, "AdditionalVersionWeights");
  }
}

TEST_F(LambdaVersions, AnUpdateChangesWhatItNames) {
  create_alias({{"Name", "live"},
                {"FunctionVersion", "3"},
                {"Description", "d"},
                {"RoutingConfig", {{"AdditionalVersionWeights", {{"4", 0.1}}}}}});
  const auto update = [&](const json& body) { return call("PUT", kF + "/aliases/live", body.dump()); };
  json now = update({{"Description", "e"}}).json();
  EXPECT_EQ(now["FunctionVersion"], "3");
  EXPECT_EQ(now["RoutingConfig"]["AdditionalVersionWeights"]["4"], 0.1);
  now = update({{"FunctionVersion", "4"}, {"RoutingConfig", {{"AdditionalVersionWeights", json::object()}}}}).json();
  EXPECT_EQ(now["FunctionVersion"], "4");
  EXPECT_FALSE(now.contains("RoutingConfig"));
  EXPECT_EQ(now["Description"], "e");
  expect_error(update({{"RevisionId", "revision-1"}}), 412, "PreconditionFailedException", "revision-3");
  expect_error(call("PUT", kF + "/aliases/other", "{}"), 404, kNone, "alias");
}

TEST_F(LambdaVersions, AliasesAreListedAndDeleted) {
  for (const char* name : {"b", "a", "c"})
    create_alias({{"Name", name}, {"FunctionVersion", name == std::string("c") ? "2" : "1"}});
  json page = call("GET", kF + "/aliases?MaxItems=2").json();
  EXPECT_EQ(page["Aliases"][0]["Name"], "a");
  EXPECT_EQ(page["NextMarker"], "b");
  page = call("GET", kF + "/aliases?MaxItems=2&Marker=b").json();
  EXPECT_EQ(page["Aliases"].size(), 1u);
  EXPECT_FALSE(page.contains("NextMarker"));
  EXPECT_EQ(call("GET", kF + "/aliases?FunctionVersion=2").json()["Aliases"].size(), 1u);
  EXPECT_EQ(call("DELETE", kF + "/aliases/a").response->status, 204u);
  EXPECT_EQ(call("DELETE", kF + "/aliases/a").response->status, 204u);
  expect_error(call("GET", kF + "/aliases/a"), 404, kNone, "alias");
}

TEST_F(LambdaVersions, ACallTakesItsQualifierAlong) {
  for (int i = 0; i < 3; ++i) publish();
  create_alias({{"Name", "live"}, {"FunctionVersion", "1"}});
  call("POST", kF + "/invocations?Qualifier=live", "{}");
  EXPECT_EQ(node_.invoked.back().qualifier, "live");
  EXPECT_EQ(node_.invoked.back().invocation.function, "f");
  call("POST", kF + ":3/invocations", "{}", {{"X-Amz-Invocation-Type", "Event"}});
  EXPECT_EQ(node_.events.back().qualifier, "3");
  node_.reply = Outcome{.payload = "1", .version = 3};
  EXPECT_EQ(call("POST", kF + "/invocations?Qualifier=3", "{}").response_header("X-Amz-Executed-Version"), "3");
  EXPECT_EQ(call("POST", kF + "/invocations?Qualifier=%24LATEST", "{}").response->status, 200u);
  expect_error(call("POST", kF + "/invocations?Qualifier=7&x=1", "{}", {{"X-Amz-Invocation-Type", "DryRun"}}), 404,
               kNone, "1");
}

TEST_F(LambdaVersions, PublishFollowsCodeThatWasTaken) {
  const json code{{"ZipFile", base64_encode("zip bytes")}, {"Publish", true}};
  EXPECT_EQ(call("PUT", kF + "/code", code.dump()).json()["Version"], "1");
  const json made{
      {"FunctionName", "g"}, {"Role", ""}, {"Publish", true}, {"Code", {{"ZipFile", base64_encode("zip")}}}};
  EXPECT_EQ(call("POST", "/2015-03-31/functions", made.dump()).json()["Version"], "1");
  const json again{
      {"FunctionName", "g"}, {"Role", ""}, {"Publish", true}, {"Code", {{"ZipFile", base64_encode("zip")}}}};
  EXPECT_EQ(call("POST", "/2015-03-31/functions", again.dump()).response->status, 409u);
  EXPECT_EQ(node_.fake_versions.published["g"].size(), 1u);
}

}  // namespace
}  // namespace fairlead
