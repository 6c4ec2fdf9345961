#include "model/trace_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace fairlead {
namespace {

constexpr const char* kParent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01";
constexpr const char* kAmzn = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";

TEST(TraceContext, BothFormsSayTheSame) {
  const auto w3c = parse_traceparent(kParent), amzn = parse_amzn_trace(kAmzn);
  ASSERT_TRUE(w3c && amzn);
  EXPECT_EQ(*w3c, *amzn);
  EXPECT_EQ(w3c->trace_high, 0x5759e988bd862e3fU);
  EXPECT_EQ(w3c->trace_low, 0xe1be46a994272793U);
  EXPECT_EQ(w3c->span, 0x53995c3f42cd8ad8U);
  EXPECT_EQ(to_traceparent(*amzn), kParent);
  EXPECT_EQ(to_amzn_trace(*w3c), kAmzn);
}

TEST(TraceContext, EitherFormOfAnyContextComesBack) {
  Rng rng(7);
  for (int i = 0; i < 1000; ++i) {
    const TraceContext context{rng.next(), rng.next() >> rng.below(64), rng.next() | 1, rng.below(2) == 1};
    EXPECT_EQ(parse_traceparent(to_traceparent(context)), context);
    EXPECT_EQ(parse_amzn_trace(to_amzn_trace(context)), context);
  }
}

TEST(TraceContext, FieldsOfAmznMayComeInAnyOrderAndWithOthers) {
  const auto context = parse_amzn_trace(
      "Self=1-67891234-12456789abcdef012345678; Sampled=?; Root=1-67891233-abcdef012345678912345678;Lineage=a:1|b:2");
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_high, 0x67891233abcdef01U);
  EXPECT_EQ(context->span, 0U);
  EXPECT_EQ(context->is_sampled, std::nullopt) << "'?' leaves it to whoever comes next";
}

TEST(TraceContext, WhatIsNoneIsNone) {
  const std::string zeros(32, '0');
  for (const std::string& text : std::vector<std::string>{
           std::string(), std::string("00"), std::string(kParent).substr(0, 54), std::string(kParent) + "x",
           std::string(kParent) + "-x", "ff" + std::string(kParent).substr(2), "00-" + zeros + "-53995c3f42cd8ad8-01",
           "00-5759e988bd862e3fe1be46a994272793-0000000000000000-01",
           "00-5759E988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01",
           "00_5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01", std::string(100'000, '0')}) {
    EXPECT_FALSE(parse_traceparent(text)) << text.substr(0, 80);
  }
  for (const std::string& text : std::vector<std::string>{
           std::string(), std::string("Root="), std::string("Root=1"), std::string("Parent=53995c3f42cd8ad8"),
           "Root=1-00000000-" + std::string(24, '0'), std::string("Root=2-5759e988-bd862e3fe1be46a994272793"),
           std::string("Root=1-5759e988-bd862e3fe1be46a99427279"), std::string(kAmzn) + std::string(2000, ';'),
           std::string(900, ';')}) {
    EXPECT_FALSE(parse_amzn_trace(text)) << text.substr(0, 80);
  }
}

TEST(TraceContext, ALaterVersionIsReadAsFarAsItIsKnown) {
  const auto context = parse_traceparent("cc" + std::string(kParent).substr(2) + "-what-will-be");
  ASSERT_TRUE(context);
  EXPECT_EQ(to_traceparent(*context), kParent);
  EXPECT_FALSE(parse_traceparent("cc" + std::string(kParent).substr(2) + "what-will-be"));
}

TEST(TraceContext, OnlyTheLowestFlagIsTheSampledOne) {
  const std::string flagless = std::string(kParent).substr(0, 53);
  EXPECT_EQ(parse_traceparent(flagless + "00")->is_sampled, false);
  EXPECT_EQ(parse_traceparent(flagless + "fe")->is_sampled, false);
  EXPECT_EQ(parse_traceparent(flagless + "03")->is_sampled, true);
}

}  // namespace
}  // namespace fairlead
