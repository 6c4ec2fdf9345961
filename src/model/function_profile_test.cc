#include "model/function_profile.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

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
