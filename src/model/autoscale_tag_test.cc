#include "model/autoscale_tag.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

std::string refusal(std::map<std::string, std::string> tags) {
  FunctionConfig config;
  config.tags = std::move(tags);
  const auto read = autoscale_of(config);
  return read ? "" : read.error().message;
}

TEST(AutoscaleTag, NeedsAnObjectiveAndNothingThatSaysTheSameByHand) {
  FunctionConfig config;
  EXPECT_EQ(autoscale_of(config).value(), Autoscale::kOff);
  config.tags = {{"gpu:autoscale", "true"}, {"gpu:objective-ms", "69"}};
  EXPECT_EQ(autoscale_of(config).value(), Autoscale::kOn);
  config.tags["gpu:autoscale"] = "pinned";
  EXPECT_EQ(autoscale_of(config).value(), Autoscale::kPinned);
  EXPECT_EQ(refusal({{"gpu:autoscale", "yes"}}), "tag gpu:autoscale is 'yes'; it must be true, pinned or false");
  EXPECT_EQ(refusal({{"gpu:autoscale", "true"}}),
            "tag gpu:autoscale is 'true' and gpu:objective-ms is missing: it says what to scale for");
  EXPECT_EQ(refusal({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "69"}, {"gpu:replicas", "2"}}),
            "tag gpu:autoscale is 'true' and gpu:replicas is '2'; the node finds shares and replicas: leave one of the "
            "two out");
}

}  // namespace
}  // namespace fairlead
