// What faas-cli says of a function, what becomes of it, and what is told again.
#include "edge/openfaas/deployment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edge/openfaas/function_name.h"

namespace fairlead::openfaas {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Result<Deployment> read(const char* extra) {
  json body = json::parse(R"({"service": "f", "image": "reg.example.com/x:1"})");
  body.update(json::parse(extra));
  return read_deployment(body);
}

void refused(const char* extra, const char* why) {
  const auto read_as = read(extra);
  ASSERT_FALSE(read_as) << extra;
  EXPECT_EQ(read_as.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(read_as.error().message, HasSubstr(why)) << extra;
}

// The recorded request of faas-cli.
constexpr const char* kRecorded =
    R"({"service":"f","image":"reg/x:1","envVars":{"A":"b"},"secrets":["s1"],"labels":{"com.openfaas.scale.min":"1"},)"
    R"("annotations":{"topic":"t"},"limits":{"memory":"128Mi"}})";

TEST(Deployment, WhatFaasCliSendsBecomesAConfigurationAndIsToldAgain) {
  const auto deployment = read_deployment(json::parse(kRecorded));
  ASSERT_TRUE(deployment) << deployment.error().message;
  EXPECT_EQ("f", deployment->service);
  EXPECT_EQ("reg/x:1", deployment->image);
  const FunctionConfig& config = deployment->config;
  EXPECT_EQ(PackageType::kImage, config.package_type);
  EXPECT_EQ(128, config.memory_mib);
  EXPECT_EQ("b", config.environment.at("A"));
  EXPECT_EQ("{{resolve:secret-file:s1}}", config.environment.at("SECRET_S1"));
  EXPECT_EQ("1:1000", config.tags.at("gpu:replicas"));
  const FunctionRecord record{
      .name = "f", .config = config, .image = FunctionImage{.uri = "reg/x:1"}, .last_modified_ms = 1'700'000'000'123};
  const json status = status_json(record, {.invocations = 7}, true);
  EXPECT_EQ("f", status["name"]);
  EXPECT_EQ("fairlead", status["namespace"]);
  EXPECT_EQ("reg/x:1", status["image"]);
  EXPECT_EQ(json({{"A", "b"}}), status["envVars"]) << "a secret is no variable here";
  EXPECT_EQ(json({"s1"}), status["secrets"]);
  EXPECT_EQ(json({{"com.openfaas.scale.min", "1"}}), status["labels"]);
  EXPECT_EQ(json({{"topic", "t"}}), status["annotations"]);
  EXPECT_EQ(json({{"memory", "128Mi"}}), status["limits"]);
  EXPECT_EQ(7.0, status["invocationCount"]);
  EXPECT_EQ("2023-11-14T22:13:20.123Z", status["createdAt"]);
  EXPECT_TRUE(status.contains("usage"));
}

TEST(Deployment, AnnotationsOfFastGshareAreTheShare) {
  const auto deployment = read(R"({"annotations": {"faasshare/sm_partition": "12", "faasshare/quota_limit": "0.8",
                                   "faasshare/quota_request": "0.3", "faasshare/gpu_mem": "1073741824"}})");
  ASSERT_TRUE(deployment) << deployment.error().message;
  const auto gpu = gpu_settings(deployment->config);
  EXPECT_EQ(12, gpu->share.width_percent);
  EXPECT_EQ(80, gpu->share.limit_percent);
  EXPECT_EQ(30, gpu->share.request_percent);
  EXPECT_EQ(mib(1024), gpu->share.memory);
}

TEST(Deployment, GpuWishesComeAsAnnotationsAndAsLabels) {
  const auto deployment = read(R"({"annotations": {"gpu:weight": "2"}, "labels": {"gpu.memory-mib": "100"}})");
  ASSERT_TRUE(deployment) << deployment.error().message;
  EXPECT_EQ("2", deployment->config.tags.at("gpu:weight"));
  EXPECT_EQ("100", deployment->config.tags.at("gpu:memory-mib"));
}

TEST(Deployment, ScaleLabelsAreTheReplicas) {
  const auto replicas = [](const char* extra) -> std::string {
    const auto deployment = read(extra);
    if (!deployment) return deployment.error().message;
    const auto tag = deployment->config.tags.find("gpu:replicas");
    return tag == deployment->config.tags.end() ? "" : tag->second;
  };
  EXPECT_EQ("", replicas("{}"));
  EXPECT_EQ("2:5", replicas(R"({"labels": {"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "5"}})"));
  EXPECT_EQ("0:5", replicas(R"({"labels": {"com.openfaas.scale.max": "5"}})"));
  EXPECT_EQ(
      "0:5",
      replicas(
          R"({"labels": {"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "5", "com.openfaas.scale.zero": "true"}})"));
  EXPECT_EQ("3:4", replicas(R"({"labels": {"com.openfaas.scale.min": "2"}, "annotations": {"gpu:replicas": "3:4"}})"));
  refused(R"({"labels": {"com.openfaas.scale.min": "6", "com.openfaas.scale.max": "5"}})", "which is more than");
  refused(R"({"labels": {"com.openfaas.scale.min": "-1"}})", "between 0 and 1000");
  refused(R"({"labels": {"com.openfaas.scale.max": "many"}})", "is 'many'");
  refused(R"({"labels": {"com.openfaas.scale.zero": "perhaps"}})", "must be true or false");
}

TEST(Deployment, MemoryIsRoundedUpToWhatAFunctionMayHave) {
  EXPECT_EQ(kMinMemoryMib, read(R"({"limits": {"memory": "40Mi"}})")->config.memory_mib);
  EXPECT_EQ(954, read(R"({"limits": {"memory": "1G"}})")->config.memory_mib);
  refused(R"({"limits": {"memory": "11Gi"}})", "limits.memory is '11Gi'; it must be at most 10240Mi");
  refused(R"({"limits": {"memory": "lots"}})", "limits.memory is 'lots'");
  refused(R"({"limits": {"nvidia.com/gpu": "2"}})", "a function has one GPU");
  EXPECT_TRUE(read(R"({"limits": {"nvidia.com/gpu": "1", "cpu": "500m"}, "requests": {"cpu": "1"}})"));
}

TEST(Deployment, TheWatchdogsVariablesAreKnown) {
  const auto deployment = read(R"({"envProcess": "cat", "envVars": {"exec_timeout": "1m30s"}})");
  EXPECT_EQ("cat", deployment->config.environment.at("fprocess"));
  EXPECT_EQ(90, deployment->config.timeout_seconds);
  refused(R"({"envVars": {"exec_timeout": "16m"}})", "exec_timeout is '16m'; it must be between 1 and 900 seconds");
  refused(R"({"envVars": {"exec_timeout": "soon"}})", "exec_timeout is 'soon'");
}

TEST(Deployment, WhatIsHostileIsNamed) {
  refused(R"({"service": "../etc"})", "service: FunctionName is '../etc'");
  refused(R"({"service": ""})", "service: ");
  refused(R"({"image": ""})", "image is missing");
  refused(R"({"image": "docker://a b"})", "image is");
  refused(R"({"envVars": {"A": 1}})", "envVars must be an object of strings");
  refused(R"({"secrets": ["../x"]})", "secrets: the name of a secret is '../x'");
  refused(R"({"secrets": ["a.b", "a-b"]})", "in the variable SECRET_A_B");
  refused(R"({"secrets": ["a"], "envVars": {"SECRET_A": "mine"}})", "SECRET_A");
  refused(R"({"annotations": {"gpu:tenant": "other"}})", "the namespace says whose a function is");
  refused(R"({"labels": {"gpu.tenant": "other"}})", "the namespace says whose a function is");
  refused(R"({"annotations": {"gpu:nothing": "1"}})", "gpu:nothing is not known");
  refused(R"({"annotations": {"faasshare/other": "1"}})", "faasshare/other is not known");
  refused(R"({"annotations": {"faasshare/quota_limit": "80"}})", "must be a part of the time");
  refused(R"({"annotations": {"faasshare/quota_limit": "nan"}})", "must be a part of the time");
  refused(R"({"annotations": {"faasshare/sm_partition": "12", "gpu:compute-percent": "13"}})", "something else");
  refused(R"({"annotations": {"faasshare/quota_request": "0.9", "faasshare/quota_limit": "0.3"}})", "must be at most");
  refused(R"({"limits": {"memory": {"deep": 1}}})", "limits must be an object of strings");
}

TEST(Deployment, CountsSayWhatIsReady) {
  FunctionRecord record{.name = "f"};
  EXPECT_EQ(1u, counts_of(record, nullptr).available) << "one without an instance can be called";
  FunctionStatus status{.name = "f", .instances_idle = 1, .instances_busy = 2, .instances_starting = 1};
  EXPECT_EQ(3u, counts_of(record, &status).available);
  EXPECT_EQ(4u, counts_of(record, &status).replicas);
  record.config.tags["gpu:replicas"] = "5:9";
  EXPECT_EQ(5u, counts_of(record, &status).replicas);
  status = {.name = "f"};
  EXPECT_EQ(0u, counts_of(record, &status).available) << "those that are to be kept are not there yet";
}

TEST(FunctionName, ANamespaceIsWhatFollowsTheLastDot) {
  EXPECT_EQ((FunctionName{"f", ""}), split_name("f"));
  EXPECT_EQ((FunctionName{"f", "ns1"}), split_name("f.ns1"));
  EXPECT_EQ((FunctionName{"a.b", "ns1"}), split_name("a.b.ns1"));
}

TEST(FunctionName, NamespacesAreTenants) {
  const Principal all{.name = "op", .role = Role::kOperator},
      acme{.name = "k", .role = Role::kDeployer, .tenant = "acme"};
  for (const char* usual : {"", "openfaas-fn", "fairlead"}) {
    EXPECT_EQ("default", tenant_of_namespace(all, usual));
    EXPECT_EQ("acme", tenant_of_namespace(acme, usual));
  }
  EXPECT_EQ("ns1", tenant_of_namespace(all, "ns1"));
  EXPECT_EQ("acme", tenant_of_namespace(acme, "acme"));
  EXPECT_EQ(Errc::kForbidden, tenant_of_namespace(acme, "other").error().code);
  EXPECT_EQ(Errc::kInvalidArgument, tenant_of_namespace(all, "../x").error().code);
  EXPECT_EQ("fairlead", namespace_of("default"));
}

}  // namespace
}  // namespace fairlead::openfaas
