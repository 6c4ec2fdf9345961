#include "node/traces/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr const char* kSampled = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
constexpr const char* kNotSampled = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";

TEST(Tracer, TheFunctionIsToldOfItsRunAsTheParent) {
  Tracer tracer(0, 1);
  std::string told = kSampled;
  const auto ids = tracer.begin(told);
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->caller.span, 0x53995c3f42cd8ad8u);
  const auto seen = parse_amzn_trace(told);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->trace_high, 0x5759e988bd862e3fu);
  EXPECT_EQ(seen->span, ids->work);
  EXPECT_EQ(seen->is_sampled, true);
  EXPECT_NE(ids->work, ids->root);
}

TEST(Tracer, WhoCalledDecidesAndElseTheRatio) {
  for (const double ratio : {0.0, 1.0}) {
    Tracer tracer(ratio, 1);
    std::string yes = kSampled, no = kNotSampled, undecided = "Root=1-5759e988-bd862e3fe1be46a994272793", nothing,
                nonsense = "Root=1";
    EXPECT_TRUE(tracer.begin(yes));
    EXPECT_FALSE(tracer.begin(no));
    EXPECT_EQ(no, kNotSampled) << "it is given on as it came";
    EXPECT_EQ(tracer.begin(undecided).has_value(), ratio == 1);
    EXPECT_EQ(tracer.begin(nothing).has_value(), ratio == 1);
    EXPECT_EQ(nothing.empty(), ratio == 0);
    EXPECT_EQ(tracer.begin(nonsense).has_value(), ratio == 1);
    EXPECT_EQ(nonsense == "Root=1", ratio == 0);
  }
}

TEST(Tracer, ACallThatIsGivenOnIsTheParentOfTheOtherNodesRequest) {
  Tracer here(1, 1), there(0, 2);
  std::string told;
  const auto forward = here.begin_forward(told);
  const auto request = there.begin(told);
  ASSERT_TRUE(forward && request);
  EXPECT_EQ(request->caller.span, forward->root);
  EXPECT_EQ(request->caller.trace_low, forward->caller.trace_low);
}

TEST(Tracer, MetricsAreThereWithoutTraces) {
  EXPECT_THAT(tracer_metrics(nullptr),
              testing::HasSubstr("fairlead_traced_requests_total{result=\"dropped_full\"} 0\n"));
}

}  // namespace
}  // namespace fairlead
