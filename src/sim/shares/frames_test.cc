// Pictures of frames: what is drawn is what ran, in the time that was asked for.
#include "sim/shares/frames.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::vector<ShareClient> kTwo = {
    {.name = "half", .share = {.request_percent = 50}, .least_kernel = 300us, .most_kernel = 300us},
    {.name = "quarter", .share = {.request_percent = 25}, .least_kernel = 300us, .most_kernel = 300us}};

SharesResult drawn(Duration length) {
  SharesSetup setup{.clients = kTwo, .warm_up = 1s, .length = 2s};
  setup.drawn = length;
  return SharesSimulation(std::move(setup)).run();
}

TEST(Frames, KernelsOfADeviceThatOneHasAtATimeDoNotMeetAndLieInPlaces) {
  const SharesResult result = drawn(40ms);
  Duration ran{0}, last{0};
  for (const SharesSpan& kernel : result.spans) {
    EXPECT_LT(kernel.begin, kernel.end);
    EXPECT_LE(kernel.end, 40ms);
    if (kernel.is_place) continue;
    EXPECT_GE(kernel.begin, last) << "both take all of the SMs";
    last = kernel.end;
    ran += kernel.end - kernel.begin;
    const bool is_in_place = std::any_of(result.spans.begin(), result.spans.end(), [&](const SharesSpan& place) {
      return place.is_place && place.client == kernel.client && place.begin <= kernel.begin && kernel.end <= place.end;
    });
    EXPECT_TRUE(is_in_place || kernel.end > 30ms) << "a place that is open at the end is not drawn";
  }
  EXPECT_GT(ran, 38ms);
}

TEST(Frames, NothingIsKeptWhereNothingIsDrawn) {
  EXPECT_TRUE(drawn(0ms).spans.empty());
  EXPECT_EQ(drawn(0ms).state_hash, drawn(40ms).state_hash);
}

TEST(Frames, ThePictureHasARowForEachAndTheTraceAThread) {
  const SharesResult result = drawn(20ms);
  const std::string svg = frames_svg(kTwo, result);
  EXPECT_THAT(svg, HasSubstr("half, 50 % of 100 %"));
  EXPECT_THAT(svg, HasSubstr("quarter, 25 % of 100 %"));
  EXPECT_THAT(svg, HasSubstr("kernel of 0.300 ms"));
  const auto trace = nlohmann::json::parse(frames_trace(kTwo, result));
  std::size_t spans = 0;
  double end_us = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++spans;
    EXPECT_GT(event["dur"], 0);
    end_us = std::max(end_us, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(spans, result.spans.size());
  EXPECT_LE(end_us, 20'000.001);
}

}  // namespace
}  // namespace fairlead::sim
