// Pictures of GPUs: rectangles are as large as what was promised, none lies on another, and names stay names.
#include "cli/gpu_pictures.h"

#include <gmock/gmock.h>

#include <map>

#include "base/rng.h"

namespace fairlead::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::vector<SeatGroup> kPaper = {{"resnet", 12, 40, 4}, {"rnnt", 24, 40, 2}, {"bert", 50, 60, 2}};

bool overlap(const PlacedRectangle& a, const PlacedRectangle& b) {
  constexpr double kNearly = 1e-6;
  return a.x + a.width > b.x + kNearly && b.x + b.width > a.x + kNearly && a.y + a.height > b.y + kNearly &&
         b.y + b.height > a.y + kNearly;
}

void expect_sound(const std::vector<SeatGroup>& groups, double most_percent) {
  const auto placed = laid_out(groups);
  std::map<std::size_t, double> areas;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const PlacedRectangle& one = placed[i];
    areas[one.group] += one.width * one.height / 100;
    EXPECT_EQ(one.width, groups[one.group].width_percent);
    EXPECT_LE(one.x + one.width, 100 + 1e-6);
    EXPECT_LE(one.y + one.height, most_percent + 1e-6);
    for (std::size_t j = 0; j < i; ++j) ASSERT_FALSE(overlap(one, placed[j])) << i << " lies on " << j;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_NEAR(areas[i], groups[i].area_percent(), 1e-3);
}

// Eight instances that fill a GPU: no rectangle lies on another, and each has the area that was promised.
TEST(GpuPictures, ThePapersEightFillOneGpu) {
  expect_sound(kPaper, 100);
}

TEST(GpuPictures, WhateverIsPromisedIsDrawnOnce) {
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<SeatGroup> groups;
    for (std::size_t i = 0; i < 1 + rng.below(5); ++i) {
      groups.push_back({std::string(1, static_cast<char>('a' + i)), static_cast<int>(1 + rng.below(100)),
                        static_cast<int>(1 + rng.below(100)), rng.below(4)});
    }
    expect_sound(groups, 1e9);
  }
}

TEST(GpuPictures, WhatIsNoRectangleIsLeftOut) {
  EXPECT_TRUE(laid_out({}).empty());
  EXPECT_TRUE(
      laid_out({{"f", 100, 0, 1}, {"g", 0, 50, 1}, {"h", 50, 50, 0}, {"i", 101, 5, 1}, {"j", 5, -1, 1}}).empty());
}

TEST(GpuPictures, NamesAreEscapedAndColoursAreByName) {
  const Colours colours({"b", "a", "b"});
  EXPECT_THAT(colours.functions(), ElementsAre("a", "b"));
  EXPECT_NE(colours.of("a"), colours.of("b"));
  const std::string picture = gpu_picture("<now>", {{"<script>", 50, 50, 1}}, colours, 120);
  EXPECT_THAT(picture, Not(HasSubstr("<script>")));
  EXPECT_THAT(picture, HasSubstr("&lt;script&gt;: 1 x (50 % of the SMs, 50 % of the time)"));
  EXPECT_THAT(picture, HasSubstr("free: 75 % of the GPU"));
}

TEST(GpuPictures, AChartHasAnAreaForEachStepOfEachFunction) {
  const std::vector<GpuMoment> moments = {
      {1000, {}}, {2000, {{"f", 100, 50, 1}}}, {4000, {{"f", 100, 50, 1}, {"g", 50, 50, 1}}}};
  const std::string chart = promised_chart("GPU 1", moments, 1000, 6000, Colours({"f", "g"}));
  std::size_t areas = 0;
  for (std::size_t at = chart.find("fill-opacity"); at != std::string::npos; at = chart.find("fill-opacity", at + 1))
    ++areas;
  EXPECT_EQ(areas, 3u);
}

TEST(GpuPictures, TheFullestMomentIsAlwaysShown) {
  std::vector<GpuMoment> moments;
  for (int i = 0; i < 50; ++i) moments.push_back({i * 1000, {{"f", 10, 10, i == 33 ? 9u : 1u + i % 2}}});
  moments.push_back({50'000, {}});
  const auto chosen = telling_moments(moments, 60'000, 6);
  EXPECT_EQ(chosen.size(), 6u);
  EXPECT_THAT(chosen, testing::Contains(33u));
  EXPECT_EQ(chosen.front(), 0u);
  EXPECT_EQ(chosen.back(), 49u);
  EXPECT_EQ(telling_moments(moments, 60'000, 100).size(), 50u) << "those with nothing are left out";
}

}  // namespace
}  // namespace fairlead::cli
