// What tenants used, against canned answers: pages that join, sums, CSV.
#include "cli/usage.h"

#include <gmock/gmock.h>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPath = "/fairlead/v1/usage";

struct Usage : testing::Test {
  Usage() {
    node.answer("GET", kPath, {200, {}, R"({"usage": [
      {"hour": "2026-11-26T14:00:00Z", "tenant": "a", "function": "f", "calls": 3, "errors": 1, "gpu_seconds": 1.5, "gb_seconds": 2.0},
      {"hour": "2026-11-26T15:00:00Z", "tenant": "a", "function": "f", "calls": 4, "errors": 0, "gpu_seconds": 0.5, "gb_seconds": 1.0}],
      "next": "a+b="})"});
    node.answer("GET", std::string(kPath) + "?after=a%2Bb%3D", {200, {}, R"({"usage": [
      {"hour": "2026-11-26T14:00:00Z", "tenant": "b, \"c\"", "function": "g", "calls": 1, "errors": 0, "gpu_seconds": 0.25, "gb_seconds": 0}]})"});
  }
  Outcome run(std::vector<std::string> args) {
    args.insert(args.begin(), {"--endpoint", node.endpoint(), "usage"});
    return run_cli(std::move(args));
  }
  FakeNode node;
};

TEST_F(Usage, AllPagesAreSummedByTenantAndFunction) {
  const std::string out = run({}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("GPU SECONDS"), HasSubstr("7"), HasSubstr("2.000"), HasSubstr("3.000"),
                         HasSubstr("0.250"), Not(HasSubstr("15:00"))));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 3) << out;
  EXPECT_THAT(run({"--by-hour"}).out, AllOf(HasSubstr("2026-11-26T15:00:00Z"), HasSubstr("HOUR")));
}

TEST_F(Usage, CsvHasALineForEachRow) {
  EXPECT_EQ(run({"--csv"}).out,
            "hour,tenant,function,calls,errors,gpu_seconds,gb_seconds\n"
            "2026-11-26T14:00:00Z,a,f,3,1,1.500000000,2.000000\n"
            "2026-11-26T15:00:00Z,a,f,4,0,0.500000000,1.000000\n"
            "2026-11-26T14:00:00Z,\"b, \"\"c\"\"\",g,1,0,0.250000000,0.000000\n");
}

TEST_F(Usage, TimesAndTenantsGoToTheNodeAndALongAgoIsAnHour) {
  run({"--tenant", "a b", "--from", "2026-11-26", "--to", "yesterday"});
  EXPECT_EQ(node.requests().at(0).target, std::string(kPath) + "?tenant=a%20b&from=2026-11-26&to=yesterday");
  run({"--from", "30d"});
  EXPECT_THAT(node.requests().at(1).target,
              testing::MatchesRegex(".*from=20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]"));
}

}  // namespace
}  // namespace fairlead::cli
