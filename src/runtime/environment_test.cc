#include "runtime/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fairlead {
namespace {

using testing::Contains;
using testing::Not;

TEST(Environment, AuthorMayChangeConveniencesButNotTheContract) {
  InstanceSpec spec;
  spec.environment = {{"PATH", "/opt/bin"}, {"_HANDLER", "other"}, {"AWS_LAMBDA_FUNCTION_NAME", "other"}};
  spec.handler = "app.handler";
  spec.function = "f";
  const std::vector<std::string> environment = sandbox_environment(spec);
  EXPECT_THAT(environment, Contains("PATH=/opt/bin"));
  EXPECT_THAT(environment, Contains("_HANDLER=app.handler"));
  EXPECT_THAT(environment, Contains("AWS_LAMBDA_FUNCTION_NAME=f"));
  EXPECT_THAT(environment, Not(Contains("PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin")));
}

TEST(Environment, RegionIsThatOfTheArn) {
  InstanceSpec spec;
  spec.arn = "arn:aws:lambda:eu-west-1:000000000000:function:f";
  EXPECT_THAT(sandbox_environment(spec), Contains("AWS_REGION=eu-west-1"));
  spec.arn = "arn:aws";
  EXPECT_THAT(sandbox_environment(spec), Contains("AWS_REGION=us-east-1"));
}

TEST(Environment, TheShimIsPreloadedBeforeWhatTheAuthorPreloads) {
  InstanceSpec spec;
  spec.environment = {{"LD_PRELOAD", "/var/task/malloc.so"}, {"FAIRLEAD_SHIM_TOKEN", "1"}};
  EXPECT_THAT(sandbox_environment(spec), Contains("LD_PRELOAD=/var/task/malloc.so"));
  EXPECT_THAT(sandbox_environment(spec), Not(Contains("FAIRLEAD_SHIM_TOKEN=1")));
  spec.shim = ShimAccess{"/lib/shim.so", "/run/1.shim.sock", 42};
  EXPECT_THAT(sandbox_environment(spec), Contains("LD_PRELOAD=/run/fairlead/libfairlead-shim.so:/var/task/malloc.so"));
  EXPECT_THAT(sandbox_environment(spec), Contains("FAIRLEAD_SHIM_TOKEN=42"));
  EXPECT_THAT(sandbox_environment(spec), Contains("FAIRLEAD_SHIM_SOCKET=/run/fairlead/shim.sock"));
  spec.environment["LD_PRELOAD"] = "";
  EXPECT_THAT(sandbox_environment(spec), Contains("LD_PRELOAD=/run/fairlead/libfairlead-shim.so"));
}

TEST(Environment, EveryNameOccursOnce) {
  InstanceSpec spec;
  spec.environment = {{"TZ", "CET"}, {"LAMBDA_TASK_ROOT", "/x"}, {"EMPTY", ""}};
  std::vector<std::string> names;
  for (const std::string& entry : sandbox_environment(spec)) names.push_back(entry.substr(0, entry.find('=')));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_THAT(names, Contains("EMPTY"));
}

}  // namespace
}  // namespace fairlead
