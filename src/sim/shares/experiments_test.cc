// The experiments of the laboratory of shares, at a small size.
#include "sim/shares/experiments.h"

#include <gtest/gtest.h>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

double number(const SharesRow& row, std::string_view name) {
  for (const auto& [known, value] : row.numbers) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

// The shape of docs/explanation/pacer.md's table, at a small size: ours delivers, the paper's rule starves, and the order is no accident.
TEST(SharesExperiments, ThePacerDeliversWhereThePapersRuleDoesNot) {
  SharesOptions options;
  options.sets = 3;
  options.length = 4s;
  options.schedulers = {"pacer", "paper"};
  options.mixes = {"grid", "small"};
  const auto rows = *run_experiment("delivered", options);
  ASSERT_EQ(rows.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    EXPECT_GE(number(rows[i], "worst"), 0.97) << rows[i].workload;
    EXPECT_LT(number(rows[i + 1], "worst"), number(rows[i], "worst") - 0.02) << rows[i].workload;
  }
}

TEST(SharesExperiments, SmallClientsSideBySideAnswerFourTimesAsMuch) {
  SharesOptions options;
  options.length = 3s;
  options.schedulers = {"pacer"};
  const auto rows = *run_experiment("small", options);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_GE(number(rows[1], "times_one"), 4);
  EXPECT_LT(number(rows[1], "p99_ms"), number(rows[0], "p99_ms"));
}

// What a leash that left the device idle between two kernels did to the paper's eight, live: the wide ones were late first.
TEST(SharesExperiments, TimeLostBetweenKernelsMakesTheWideLate) {
  SharesOptions options;
  options.length = 20s;
  options.schedulers = {"pacer"};
  options.most_kernel = 2ms;
  const auto without = *run_experiment("objectives", options);
  options.gap = 400us;
  const auto with = *run_experiment("objectives", options);
  EXPECT_LE(number(without[0], "bert_missed_percent"), 1);
  EXPECT_GE(number(with[0], "bert_missed_percent"), 10);
  EXPECT_LE(number(with[0], "resnet_missed_percent"), 8);
}

TEST(SharesExperiments, DeadlinesThatAreNotToldDecideNothing) {
  SharesOptions options;
  options.length = 5s;
  options.schedulers = {"pacer"};
  const auto told = *run_experiment("objectives", options);
  options.tells_deadlines = false;
  const auto not_told = *run_experiment("objectives", options);
  EXPECT_NE(told[0].state_hash, not_told[0].state_hash);
}

TEST(SharesExperiments, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(run_experiment("all", {}).error().message,
            "experiment is \"all\", it must be one of delivered, objectives, reserved, small, profile, disturbed, "
            "pods, packed");
  SharesOptions options;
  options.schedulers = {"fifo"};
  EXPECT_FALSE(run_experiment("small", options));
  options = {};
  options.mixes = {"big"};
  EXPECT_FALSE(run_experiment("delivered", options));
}

}  // namespace
}  // namespace fairlead::sim
