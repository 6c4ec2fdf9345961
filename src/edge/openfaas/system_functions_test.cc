// What faas-cli asks of /system: its recorded requests, and what else a client may say.
#include "edge/openfaas/system_functions.h"

#include "edge/openfaas/openfaas_error.h"
#include "edge/testing/edge_fixture.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kDeployment = R"({"service":"f","image":"reg/x:1","labels":{},"annotations":{}})";

class SystemFunctions : public EdgeTest {
 protected:
  SystemFunctions() {
    Edge edge{.name = "openfaas", .prefixes = {"/system"}, .errors = errors()};
    add_function_routes(edge.routes, node_, rollouts_);
    serve(std::move(edge));
  }
  void add_image(const std::string& name, const std::string& tenant = "default") {
    FunctionConfig config;
    config.package_type = PackageType::kImage;
    if (tenant != "default") config.tags["gpu:tenant"] = tenant;
    node_.add(name, config);
  }
  json list(const std::string& query = "") { return call("GET", "/system/functions" + query).json(); }

  std::shared_ptr<Rollouts> rollouts_ = std::make_shared<Rollouts>(node_.io);
};

TEST_F(SystemFunctions, PutOfWhatIsNotThereIs404AndPostMakesIt) {
  EXPECT_EQ(json::array(), list()) << "login reads this; null would break it";
  EXPECT_EQ(404u, call("PUT", "/system/functions", kDeployment).response->status);
  EXPECT_EQ(202u, call("POST", "/system/functions", kDeployment).response->status);
  EXPECT_EQ("reg/x:1", node_.last_code.image);
  EXPECT_EQ(PackageType::kImage, node_.functions.at("f").config.package_type);
  EXPECT_EQ(
      202u,
      call("PUT", "/system/functions", R"({"service":"f","image":"reg/x:2","envVars":{"A":"b"}})").response->status);
  EXPECT_EQ("reg/x:2", node_.last_code.image);
  EXPECT_EQ("b", node_.functions.at("f").config.environment.at("A"));
  EXPECT_EQ(409u, call("POST", "/system/functions", kDeployment).response->status);
  EXPECT_EQ("f", list()[0]["name"]);
  EXPECT_TRUE(rollouts_->all().empty());
}

TEST_F(SystemFunctions, AFunctionIsDescribedWithItsUse) {
  add_image("f");
  node_.node_status.functions = {{.name = "f", .stats = {.invocations = 3}, .instances_idle = 2}};
  const json status = call("GET", "/system/function/f?usage=1").json();
  EXPECT_EQ(3.0, status["invocationCount"]);
  EXPECT_EQ(2, status["availableReplicas"]);
  EXPECT_TRUE(status.contains("usage"));
  EXPECT_FALSE(call("GET", "/system/function/f").json().contains("usage"));
  EXPECT_EQ(404u, call("GET", "/system/function/nope?usage=1").response->status);
  EXPECT_EQ(404u, call("GET", "/system/function/f?namespace=acme").response->status);
}

TEST_F(SystemFunctions, NamespacesAreTenants) {
  EXPECT_EQ(
      202u,
      call("POST", "/system/functions", R"({"service":"g","image":"reg/x:1","namespace":"acme"})").response->status);
  EXPECT_EQ("acme", node_.functions.at("g").config.tags.at("gpu:tenant"));
  EXPECT_EQ(json::array(), list());
  EXPECT_EQ("acme", list("?namespace=acme")[0]["namespace"]);
  EXPECT_EQ(json({"acme", "fairlead"}), call("GET", "/system/namespaces").json());
  EXPECT_EQ(400u, call("GET", "/system/functions?namespace=../x").response->status);
  EXPECT_EQ(404u, call("PUT", "/system/functions", R"({"service":"g","image":"reg/x:1"})").response->status)
      << "it is another namespace's";
  EXPECT_EQ(501u, call("POST", "/system/namespace/x", "{}").response->status);
}

TEST_F(SystemFunctions, WhatIsRemovedIsGone) {
  add_image("f");
  EXPECT_EQ(404u, call("DELETE", "/system/functions", R"({"functionName":"f","namespace":"acme"})").response->status);
  EXPECT_EQ(202u, call("DELETE", "/system/functions", R"({"functionName":"f"})").response->status);
  EXPECT_EQ(404u, call("DELETE", "/system/functions", R"({"functionName":"f"})").response->status);
  EXPECT_EQ(404u, call("DELETE", "/system/functions", "{}").response->status);
  EXPECT_EQ(400u, call("DELETE", "/system/functions", R"({"functionName":7})").response->status);
}

TEST_F(SystemFunctions, ScaleKeepsInstancesAndZeroLetsThemGo) {
  add_image("f");
  EXPECT_EQ(202u, call("POST", "/system/scale-function/f", R"({"serviceName":"f","replicas":3})").response->status);
  EXPECT_EQ("3:1000", node_.functions.at("f").config.tags.at("gpu:replicas"));
  EXPECT_EQ(202u, call("POST", "/system/scale-function/f.openfaas-fn", R"({"replicas":0})").response->status);
  EXPECT_FALSE(node_.functions.at("f").config.tags.contains("gpu:replicas"));
  EXPECT_TRUE(node_.functions.at("f").config.tags.contains("gpu:unloaded-at"));
  EXPECT_EQ(404u, call("POST", "/system/scale-function/nope", R"({"replicas":1})").response->status);
  for (const char* body : {"{}", R"({"replicas":-1})", R"({"replicas":1001})", R"({"replicas":"1"})",
                           R"({"serviceName":"g","replicas":1})", "["}) {
    EXPECT_EQ(400u, call("POST", "/system/scale-function/f", body).response->status) << body;
  }
}

TEST_F(SystemFunctions, WhatIsWrongIsALineOfText) {
  const auto answer = call("POST", "/system/functions", R"({"service":"a b","image":"reg/x:1"})");
  EXPECT_EQ(400u, answer.response->status);
  EXPECT_THAT(answer.response->body, HasSubstr("service: FunctionName is 'a b'"));
  EXPECT_THAT(answer.response_header("Content-Type"), HasSubstr("text/plain"));
  EXPECT_EQ(413u, call("POST", "/system/functions", std::string(kMostDocumentBytes + 1, ' ')).response->status);
  EXPECT_EQ(400u, call("POST", "/system/functions", "not json").response->status);
  EXPECT_EQ(404u, call("GET", "/system/telemetry").response->status);
  EXPECT_EQ(405u, call("PATCH", "/system/functions").response->status);
  FunctionConfig code;
  node_.add("zip", code);
  EXPECT_EQ(409u, call("PUT", "/system/functions", R"({"service":"zip","image":"reg/x:1"})").response->status);
}

TEST_F(SystemFunctions, FoldersOfTheMachineAreForOperatorsThere) {
  const std::string folder = R"({"service":"f","image":"oci:/srv/layout:1"})";
  EXPECT_EQ(400u, call("POST", "/system/functions", folder, {}, /*is_local=*/false).response->status);
  EXPECT_EQ(202u, call("POST", "/system/functions", folder).response->status);
  EXPECT_EQ(0u, node_.last_code.reader);
}

TEST_F(SystemFunctions, InfoHasBothVersions) {
  node_.node_status.version = "1.2.3";
  const json info = call("GET", "/system/info").json();
  EXPECT_EQ("fairlead", info["provider"]["provider"]);
  EXPECT_EQ("1.2.3", info["provider"]["version"]["release"]);
  EXPECT_EQ("1.2.3", info["version"]["release"]);
  EXPECT_EQ(200u, call("POST", "/system/alert", "anything").response->status);
}

// ---- rollouts

class RolloutsTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeExchange> exchange_ = std::make_shared<FakeExchange>();
  boost::asio::io_context io_;
  Rollouts rollouts_{io_, std::chrono::milliseconds(1)};

  Rollouts::Ended begin(const std::string& function = "f") {
    exchange_ = std::make_shared<FakeExchange>();
    return rollouts_.begin(net::HttpExchange(exchange_),
                           {.function = function, .tenant = "default", .image = "i", .begun_ms = 1});
  }
  void wait() {
    io_.restart();
    while (io_.run_one_for(std::chrono::minutes(2)) > 0) {
    }
  }
};

TEST_F(RolloutsTest, WhoWaitsIsToldHowItEnded) {
  begin()({});
  EXPECT_EQ(202u, exchange_->response->status);
  begin()(fail(Errc::kInvalidArgument, "no such image"));
  EXPECT_EQ(400u, exchange_->response->status);
  EXPECT_EQ("no such image\n", exchange_->response->body);
  EXPECT_EQ(nullptr, rollouts_.find("f")) << "its caller knows";
}

TEST_F(RolloutsTest, WhatTakesLongIsAcceptedAndItsEndIsKept) {
  auto ended = begin();
  EXPECT_FALSE(exchange_->response);
  wait();
  ASSERT_TRUE(exchange_->response);
  EXPECT_EQ(202u, exchange_->response->status);
  EXPECT_EQ("", rollouts_.find("f")->error);
  ended(fail(Errc::kUnavailable, "the registry has gone"));
  EXPECT_EQ("the registry has gone", rollouts_.find("f")->error);
  rollouts_.forget("f");
  EXPECT_EQ(nullptr, rollouts_.find("f"));
  ended = begin();
  wait();
  ended({});
  EXPECT_EQ(nullptr, rollouts_.find("f"));
}

TEST_F(RolloutsTest, ASecondOneDoesNotEndTheFirst) {
  auto first = begin();
  wait();
  begin()(fail(Errc::kConflict, "the function is being changed"));
  EXPECT_EQ(409u, exchange_->response->status);
  ASSERT_NE(nullptr, rollouts_.find("f"));
  EXPECT_EQ("", rollouts_.find("f")->error);
  first({});
  EXPECT_EQ(nullptr, rollouts_.find("f"));
}

TEST_F(RolloutsTest, SoManyFailuresAreKept) {
  for (std::size_t i = 0; i < Rollouts::kMostFailures + 3; ++i) {
    auto ended = begin("f" + std::to_string(i));
    wait();
    ended(fail(Errc::kUnavailable, "x"));
  }
  EXPECT_EQ(Rollouts::kMostFailures, rollouts_.all().size());
  EXPECT_EQ(nullptr, rollouts_.find("f2"));
  EXPECT_NE(nullptr, rollouts_.find("f3"));
}

TEST_F(SystemFunctions, ADeploymentUnderWayAndOneThatFailedAreSeen) {
  const auto exchange = std::make_shared<FakeExchange>();
  auto ended = rollouts_->begin(net::HttpExchange(exchange),
                                {.function = "slow", .tenant = "default", .image = "reg/x:1", .begun_ms = 1});
  EXPECT_EQ(0, call("GET", "/system/function/slow").json()["availableReplicas"]);
  EXPECT_EQ("slow", list()[0]["name"]);
  EXPECT_EQ(404u, call("GET", "/system/function/slow.acme").response->status);
  exchange->response.emplace();
  node_.io.run_one_for(std::chrono::seconds(0));
  ended(fail(Errc::kUnavailable, "x"));
}

}  // namespace
}  // namespace fairlead::openfaas
