// `fairlead sim` and `fairlead sim attack`, without a node.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A working folder of the test's own.
class SimCommand : public testing::Test {
 protected:
  SimCommand() : before_(std::filesystem::current_path()), folder_(testing::TempDir() + "fairlead-sim-command") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  ~SimCommand() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  static Json json(std::vector<std::string> args) {
    args.insert(args.begin(), {"--json", "sim"});
    const Outcome outcome = run_cli(args);
    EXPECT_EQ(outcome.status, kOk) << outcome.err;
    return Json::parse(outcome.out);
  }

  const std::filesystem::path before_;
  const std::string folder_;
};

TEST_F(SimCommand, WhatLiesInTheFolderNeverStandsForABuiltInScenario) {
  const Json plain = json({"a", "--set", "duration_s=60"});
  std::ofstream("a") << "base = \"b\"\nname = \"mine\"\nduration_s = 60\n";
  std::filesystem::create_directories("b");
  const Outcome shadowed = run_cli({"--json", "sim", "a", "--set", "duration_s=60"});
  EXPECT_EQ(Json::parse(shadowed.out), plain);
  EXPECT_THAT(shadowed.err, HasSubstr("a is the built-in scenario; what lies here under that name is ./a"));
  EXPECT_EQ(json({"b", "--set", "duration_s=60"})[0]["scenario"], "b");
  EXPECT_EQ(json({"./a"})[0]["scenario"], "mine");
  EXPECT_THAT(run_cli({"sim", "./b"}).err, HasSubstr("is a folder"));
  const Outcome neither = run_cli({"sim", "./c"});
  EXPECT_EQ(neither.status, kNotFound);
  EXPECT_THAT(neither.err, HasSubstr("neither a file nor built in"));
}

TEST_F(SimCommand, ThePresetIsTheNodesUnlessAnotherIsNamed) {
  const Json node = json({"a", "--set", "duration_s=60"})[0];
  EXPECT_EQ(node["policy"], "mqfq-setup");
  EXPECT_EQ(json({"a", "--set", "duration_s=60", "--preset", "node"})[0], node);
  const Json paper = json({"a", "--set", "duration_s=60", "--preset", "paper"})[0];
  EXPECT_EQ(paper["policy"], "mqfq-sticky");
  EXPECT_NE(paper["state_hash"], node["state_hash"]);
  EXPECT_THAT(run_cli({"sim", "a", "--preset", "papers"}).err, HasSubstr("it must be node or paper"));
}

TEST_F(SimCommand, SharesComparesSchedulersAndNamesWhatItDoesNotKnow) {
  const std::vector<std::string> args = {"shares", "small", "--seconds", "1", "--warm-up", "1"};
  const Json rows = json(args);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["scheduler"], "one");
  EXPECT_EQ(rows[1]["scheduler"], "pacer");
  EXPECT_GT(rows[1]["times_one"].get<double>(), 4);
  EXPECT_EQ(json(args), rows);
  EXPECT_THAT(run_cli({"sim", "shares", "small", "--seconds", "1"}).out, HasSubstr("8 at 12 %"));
  EXPECT_THAT(run_cli({"sim", "shares", "nothing"}).err,
              HasSubstr("it must be one of delivered, objectives, reserved, small"));
  EXPECT_THAT(run_cli({"sim", "shares", "--scheduler", "fifo"}).err, HasSubstr("pacer, paper, backfill, one"));
}

TEST_F(SimCommand, ScalingComparesPackersAndNamesWhatItDoesNotKnow) {
  const Json rows = json({"scaling", "orders"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["contestant"], "rectangles");
  EXPECT_EQ(rows[2]["all_placed"], 420);
  EXPECT_THAT(run_cli({"sim", "scaling", "churn", "--mix", "small", "--events", "200"}).out, HasSubstr("exact, moves"));
  EXPECT_THAT(run_cli({"sim", "scaling", "nothing"}).err,
              HasSubstr("it must be one of orders, churn, static, cluster, bursts, ramp, profiler"));
  EXPECT_THAT(run_cli({"sim", "scaling", "bursts", "--predictor", "oracle"}).err, HasSubstr("last-window, ewma"));
}

TEST_F(SimCommand, AttackWritesTheWorstAsScenariosThatItJudgesAlike) {
  const Outcome searched = run_cli(
      {"--json", "sim", "attack", "--family", "starts", "--evaluations", "20", "--worst", "3", "--out", "found"});
  ASSERT_EQ(searched.status, kOk) << searched.err;
  const Json worst = Json::parse(searched.out);
  ASSERT_EQ(worst.size(), 3u);
  std::ofstream("worst.toml") << worst[0]["scenario"].get<std::string>();
  EXPECT_EQ(json({"attack", "worst.toml"})[0]["ratios"], worst[0]["ratios"]);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator("found"), {}), 6);
  EXPECT_EQ(json({"found/starts-mean-fcfs.toml"})[0]["scenario"], "attack-starts");
}

TEST_F(SimCommand, AttackSaysWhatIsBeyondItsBounds) {
  // One function of 1 s, called alone: every scheduler serves it alike.
  std::ofstream("idle.toml") << "name = \"idle\"\nnoise = 0\nduration_s = 1000\n[workload]\nkind = \"own\"\n"
                                "[[function]]\nwarm_s = 1\nrate_per_s = 0.05\nrate_cv = 0\n";
  const Outcome good = run_cli({"sim", "attack", "idle.toml", "--check"});
  EXPECT_EQ(good.status, kOk) << good.out;
  EXPECT_THAT(good.out, AllOf(HasSubstr("idle"), HasSubstr("50")));
  EXPECT_EQ(run_cli({"sim", "attack", "nowhere.toml"}).status, kNotFound);
  EXPECT_THAT(run_cli({"sim", "attack", "--family", "start"}).err, HasSubstr("known are starts"));
}

}  // namespace
}  // namespace fairlead::cli
