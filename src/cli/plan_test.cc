// `fairlead plan`: files, applications, what is refused.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/test_cli.h"
#include "sim/pipelines/applications.h"
#include "wire/pipeline_json.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;

TEST(PlanCommand, SaysWhichPipelineAndWhyTheOthersWerePassedOver) {
  const Outcome found =
      run_cli({"plan", "app1-large", "--free", "4g,2g,1g", "--planner", "cv", "--hop-ms", "20", "--explain"});
  EXPECT_EQ(found.status, kOk) << found.err;
  EXPECT_THAT(found.out, HasSubstr("requests per second; no plan passes"));
  EXPECT_THAT(found.out, HasSubstr("[deblur, super-resolution, depth]"));
  EXPECT_THAT(found.out, HasSubstr("taken"));
  EXPECT_THAT(found.out, HasSubstr("PASSED OVER"));
}

TEST(PlanCommand, AFileIsPlannedAsItsApplicationIs) {
  const std::string path = testing::TempDir() + "fairlead-plan.json";
  std::ofstream(path) << wire::pipeline_to_json(sim::application_named("app3-medium")->dag);
  const Outcome file = run_cli({"--json", "plan", path, "--free", "2x2g,3x1g"});
  const Outcome named = run_cli({"--json", "plan", "app3-medium", "--free", "2x2g,3x1g"});
  std::filesystem::remove(path);
  EXPECT_EQ(file.status, kOk) << file.err;
  EXPECT_EQ(file.out, named.out);
  EXPECT_GT(Json::parse(file.out)["rate_per_s"].get<double>(), 0);
}

TEST(PlanCommand, WhatFitsNowhereIsExplained) {
  const Outcome found = run_cli({"plan", "app0-large", "--free", "7x1g"});
  EXPECT_EQ(found.status, kOk);
  EXPECT_THAT(found.out, HasSubstr("no pipeline fits these slices"));
  EXPECT_THAT(found.out, HasSubstr("needs"));
}

TEST(SimPipelinesCommand, PrintsRowsByContestant) {
  const Outcome found = run_cli({"--json", "sim", "pipelines", "counterexample"});
  EXPECT_EQ(found.status, kOk) << found.err;
  EXPECT_EQ(Json::parse(found.out)[0]["contestant"], "cv");
  EXPECT_THAT(run_cli({"sim", "pipelines", "everything"}).err, HasSubstr("counterexample"));
}

TEST(PlanCommand, WhatIsNotKnownIsNamed) {
  EXPECT_THAT(run_cli({"plan", "app9"}).err, HasSubstr("app0-small"));
  EXPECT_THAT(run_cli({"plan", "app0-small", "--free", "5g"}).err, HasSubstr("\"5g\" is no slice of a100-80"));
  EXPECT_THAT(run_cli({"plan", "app0-small", "--gpu", "v100"}).err, HasSubstr("a100-40"));
  EXPECT_THAT(run_cli({"plan", "app0-small", "--planner", "best"}).err, HasSubstr("replicas"));
  EXPECT_NE(run_cli({"plan", "/nowhere/pipeline.json"}).status, kOk);
}

}  // namespace
}  // namespace fairlead::cli
