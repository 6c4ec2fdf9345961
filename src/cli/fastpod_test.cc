// Manifests of FaST-GShare, and how they are deployed.
#include "cli/fastpod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;

// The paper's Figure 4.
constexpr const char* kFigure4 = R"(
apiVersion: faasshare.com/v1
kind: FaSTPod
metadata:
  annotations:
    faasshare/sm_partition: "12"
    faasshare/quota_limit: "0.8"
    faasshare/quota_request: "0.3"
    faasshare/gpu_mem: "1073741824"
  name: fastsvc-rnnt-q30-p12
spec:
  podSpec:
    containers:
    - env:
      - name: MODEL_NAME
        value: MLPerf-FaaS-rnnt
      image: xxxx/mlperf-faas-rnnt:latest
  replicas: 2
)";

TEST(FastPod, Figure4IsADeployment) {
  const auto deployments = deployments_of(kFigure4);
  ASSERT_TRUE(deployments) << deployments.error().message;
  ASSERT_EQ(deployments->size(), 1u);
  const Json& deployment = deployments->front();
  EXPECT_EQ(deployment["service"], "fastsvc-rnnt-q30-p12");
  EXPECT_EQ(deployment["image"], "xxxx/mlperf-faas-rnnt:latest");
  EXPECT_EQ(deployment["envVars"], (Json{{"MODEL_NAME", "MLPerf-FaaS-rnnt"}}));
  EXPECT_EQ(deployment["annotations"]["faasshare/sm_partition"], "12");
  EXPECT_EQ(deployment["annotations"]["gpu:replicas"], "2");
}

TEST(FastPod, WhatIsWrongIsNamed) {
  const auto refusal = [](std::string yaml, const std::string& text, const std::string& other) {
    const std::size_t at = yaml.find(text);
    if (at != std::string::npos) yaml.replace(at, text.size(), other);
    const auto read = deployments_of(yaml);
    return read ? std::string("taken") : read.error().message;
  };
  EXPECT_THAT(refusal(kFigure4, "kind: FaSTPod", "kind: Pod"), HasSubstr("document 1: kind must be FaSTPod"));
  EXPECT_THAT(refusal(kFigure4, "faasshare.com/v1", "v1"), HasSubstr("apiVersion must be faasshare.com/v1"));
  EXPECT_THAT(refusal(kFigure4, "value: MLPerf-FaaS-rnnt", "valueFrom: {secretKeyRef: x}"),
              HasSubstr("the value of MODEL_NAME must be a text"));
  EXPECT_THAT(refusal(kFigure4, "containers:", "containers: []\n    others:"), HasSubstr("a list of one"));
  EXPECT_THAT(refusal(kFigure4, "  replicas: 2", "  replicas: [2]"), HasSubstr("spec.replicas must be a text"));
  EXPECT_THAT(refusal(kFigure4, "  name: fast", "  names: fast"), HasSubstr("metadata.name must be a text"));
  EXPECT_THAT(refusal("", "", ""), HasSubstr("no document"));
  EXPECT_THAT(refusal("a: [", "", ""), HasSubstr("document 1"));
  EXPECT_THAT(refusal("- 1", "", ""), HasSubstr("must be a FaSTPod"));
  EXPECT_THAT(refusal(std::string(kMostManifestBytes + 1, ' '), "", ""), HasSubstr("may have at most"));
}

struct DeployFile : testing::Test {
  DeployFile() : file(testing::TempDir() + "fairlead-pod.yaml") { std::ofstream(file) << kFigure4; }
  ~DeployFile() override { std::filesystem::remove(file); }
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--endpoint", node.endpoint()});
    return run_cli(std::move(args));
  }
  FakeNode node;
  std::string file;
};

TEST_F(DeployFile, IsPutAndPostedWhereItIsNotThere) {
  node.answer("PUT", "/system/functions", {404, {}, "there is no function\n"});
  node.answer("POST", "/system/functions", {202, {}, ""});
  const Outcome outcome = run({"deploy", "-f", file});
  ASSERT_EQ(outcome.status, kOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("created fastsvc-rnnt-q30-p12"));
  EXPECT_EQ(Json::parse(node.requests()[1].body)["image"], "xxxx/mlperf-faas-rnnt:latest");
}

TEST_F(DeployFile, NeedsAFileThatIsThereAndNothingBeside) {
  EXPECT_NE(run({"deploy", "-f", file + ".none"}).status, kOk);
  EXPECT_NE(run({"deploy", "name", "-f", file}).status, kOk);
  EXPECT_NE(run({"deploy"}).status, kOk);
}

}  // namespace
}  // namespace fairlead::cli
