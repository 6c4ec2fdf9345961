#include "model/function_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using testing::HasSubstr;

FunctionProfile example() {
  FunctionProfile profile{.function = "resnet", .code_sha256 = "abc=", .device = "V100"};
  profile.trials = {{.width_percent = 12, .quota_percent = 97, .rate_per_s = 37.1, .error = 0.02, .why = "first"}};
  profile.trials[0].memory = mib(1525);
  profile.fixed_ms = 1.05;
  profile.work_ms = 311;
  profile.saturation_percent = 24;
  profile.measured_ms = 1'700'000'000'123;
  return profile;
}

FunctionProfile compared() {
  FunctionProfile profile = example();
  profile.beside = TrialBeside{.trial = profile.trials[0], .slowdown = 1.25, .error = 0.03};
  profile.beside->trial.rate_per_s = 29.7;
  return profile;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(FunctionProfile, ComesBackAsItWasWritten) {
  const auto back = profile_from_json(to_json(example()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, example());
  EXPECT_EQ(back->memory(), mib(1525));
}

TEST(FunctionProfile, WhatWasMeasuredBesideACopyComesBackAsItWasWritten) {
  const auto back = profile_from_json(to_json(compared()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back, compared());
  FunctionProfile alone = example();
  alone.alone = "the node does not run MPS";
  const auto without = profile_from_json(to_json(alone));
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_EQ(*without, alone);
}

TEST(FunctionProfile, TimesOfComponentsComeBackAsTheyWereWrittenAndAreChecked) {
  FunctionProfile profile = example();
  profile.fixed_ms = profile.work_ms = 0;
  profile.components = {{.component = "sr", .slice = "1g", .ms = 4.5, .deviation_ms = 0.25, .runs = 30},
                        {.component = "sr", .slice = "2g", .ms = 2.25, .deviation_ms = 0, .runs = 0}};
  const auto read = profile_from_json(to_json(profile));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, profile);
  const auto refused = [&](auto change) {
    FunctionProfile wrong = profile;
    change(wrong);
    const auto again = profile_from_json(to_json(wrong));
    return again ? std::string() : again.error().message;
  };
  EXPECT_THAT(refused([](FunctionProfile& p) { p.components[1].ms = 0; }), HasSubstr("components[1].ms is 0"));
  EXPECT_THAT(refused([](FunctionProfile& p) { p.components[0].slice = ""; }), HasSubstr("components[0].slice"));
  EXPECT_THAT(refused([](FunctionProfile& p) { p.components.resize(kMaxComponentTimes + 1, p.components[0]); }),
              HasSubstr("1 to 1024"));
  EXPECT_THAT(refused([](FunctionProfile& p) { p.components.clear(); }), HasSubstr("work_ms"));
}

TEST(FunctionProfile, OneFromBeforeThereWereCopiesIsNoSlower) {
  const std::string text = to_json(example());
  EXPECT_EQ(text.find("beside"), std::string::npos);
  EXPECT_EQ(text.find("alone"), std::string::npos);
  EXPECT_EQ(profile_from_json(text).value().slowdown(), 1);
  EXPECT_EQ(compared().slowdown(), 1.25);
  FunctionProfile faster = compared();
  faster.beside->slowdown = 0.97;
  EXPECT_EQ(faster.slowdown(), 1) << "that is noise";
}

TEST(FunctionProfile, WhatWasMeasuredBesideACopyIsCheckedAsTheRest) {
  const auto refusal = [](const std::string& what, const std::string& with) {
    const auto read = profile_from_json(replaced(to_json(compared()), what, with));
    return read ? std::string("taken") : read.error().message;
  };
  EXPECT_EQ(refusal("\"slowdown\":1.25", "\"slowdown\":0"), "beside.slowdown is 0; it must be between 0.01 and 1000");
  EXPECT_EQ(refusal("\"slowdown_error\":0.03", "\"slowdown_error\":\"x\""), "beside.slowdown_error must be a number");
  EXPECT_EQ(refusal("\"rate_per_s\":29.7", "\"rate_per_s\":0"),
            "beside.rate_per_s is 0; it must be between 1e-06 and 10000000");
  EXPECT_EQ(refusal("\"beside\":{", "\"beside\":[],\"was\":{"), "beside must be an object");
  EXPECT_EQ(refusal("\"beside\":{", "\"alone\":1,\"beside\":{"), "alone must be a string");
}

TEST(FunctionProfile, WhatCannotBeIsRefusedWithFieldValueAndBound) {
  const std::string text = to_json(example());
  const auto refusal = [&](const std::string& what, const std::string& with) {
    const auto read = profile_from_json(replaced(text, what, with));
    return read ? std::string("taken") : read.error().message;
  };
  EXPECT_EQ(refusal("\"width_percent\":12", "\"width_percent\":0"),
            "trials[0].width_percent is 0; it must be between 1 and 100");
  EXPECT_EQ(refusal("\"rate_per_s\":37.1", "\"rate_per_s\":-1"),
            "trials[0].rate_per_s is -1; it must be between 1e-06 and 10000000");
  EXPECT_EQ(refusal("\"work_ms\":311.0", "\"work_ms\":1e300"),
            "work_ms is 1e+300; it must be between 1e-06 and 360000000");
  EXPECT_EQ(refusal("\"device\":\"V100\"", "\"device\":\"\""), "device has 0 bytes; 1 to 1024 are possible");
  EXPECT_EQ(refusal("\"saturation_percent\":24.0", "\"saturation_percent\":\"x\""),
            "saturation_percent must be a number");
}

TEST(FunctionProfile, HostileTextIsRefused) {
  EXPECT_FALSE(profile_from_json("").has_value());
  EXPECT_FALSE(profile_from_json("[]").has_value());
  EXPECT_FALSE(profile_from_json(std::string(100'000, '[')).has_value());
  EXPECT_FALSE(profile_from_json(std::string(kMaxProfileBytes + 1, ' ')).has_value());
  FunctionProfile many = example();
  many.trials.resize(kMaxProfileTrials + 1, many.trials[0]);
  EXPECT_FALSE(profile_from_json(to_json(many)).has_value());
}

}  // namespace
}  // namespace fairlead
