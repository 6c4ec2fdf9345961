#include "sim/svg_chart.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <regex>
#include <set>

namespace fairlead::sim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<double> numbers(const std::string& svg, const std::string& pattern) {
  std::vector<double> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(svg.begin(), svg.end(), expression); at != std::sregex_iterator(); ++at)
    found.push_back(std::stod((*at)[1]));
  return found;
}

TEST(SvgChart, TicksAreRoundAndTheLastIsNotBelowTheLargest) {
  EXPECT_THAT(round_ticks(6.85), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(round_ticks(17), ElementsAre(0, 5, 10, 15, 20));
  EXPECT_EQ(round_ticks(0.0665).size(), 8u);
  EXPECT_DOUBLE_EQ(round_ticks(0.0665).back(), 0.07);
  for (double most = 1e-4; most < 1e9; most *= 1.37) {
    const std::vector<double> ticks = round_ticks(most);
    EXPECT_GE(ticks.back(), most * (1 - 1e-9)) << most;
    EXPECT_GE(ticks.size(), 3u) << most;
    EXPECT_LE(ticks.size(), 12u) << most;
  }
}

TEST(SvgChart, NumbersAreShort) {
  EXPECT_EQ(short_number(0.30000000000000004), "0.3");
  EXPECT_EQ(short_number(1500), "1500");
  EXPECT_EQ(short_number(20000), "20k");
  EXPECT_EQ(short_number(3e6), "3M");
  EXPECT_EQ(short_number(0), "0");
}

TEST(SvgChart, TheLegendStandsBesideThePictureAndNotInIt) {
  const std::string svg =
      line_chart("t", {"seconds"}, {"calls"}, {{"one", {{0, 1}, {9, 3}}}, {"two", {{0, 2}, {9, 1}}}});
  const double right_of_points = [&] {
    double most = 0;
    for (const double x : numbers(svg, "(\\d+\\.\\d),\\d+\\.\\d ")) most = std::max(most, x);
    return most;
  }();
  const std::vector<double> keys = numbers(svg, "<rect x=\"(\\d+)\" y=\"\\d+\" width=\"10\"");
  ASSERT_EQ(keys.size(), 2u);
  for (const double x : keys) EXPECT_GT(x, right_of_points);
}

TEST(SvgChart, NoTwoColoursAreAlike) {
  std::vector<Series> series;
  for (int i = 0; i < 60; ++i) series.push_back({fmt::format("f{}", i), {{0, i}, {1, i}}});
  const std::string svg = line_chart("t", {"x"}, {"y"}, series);
  std::set<std::string> strokes;
  const std::regex stroke("stroke=\"([^\"]+)\" stroke-width");
  for (std::sregex_iterator at(svg.begin(), svg.end(), stroke); at != std::sregex_iterator(); ++at)
    strokes.insert((*at)[1]);
  EXPECT_EQ(strokes.size(), 60u);
}

TEST(SvgChart, WhatLiesUnderThePointerSaysItsValues) {
  EXPECT_THAT(line_chart("t", {"seconds"}, {"calls"}, {{"one", {{0, 1}, {9, 3}}}}),
              HasSubstr("<title>one, 9 seconds: 3 calls</title>"));
  EXPECT_THAT(bar_chart("t", "%", {"cold"}, {{"fcfs", {3.5}}}), HasSubstr("<title>fcfs, cold: 3.5 %</title>"));
}

TEST(SvgChart, LanesHaveALegendAndLabelsOfBarsAreCut) {
  const std::string lanes = timeline_chart(
      "t", {"GPU 1"}, {{.row = 0, .colour = 0, .begin = 0, .end = 3, .label = "fft 3 s"}}, {"fft"}, "a cold start");
  EXPECT_THAT(lanes, AllOf(HasSubstr(">fft</text>"), HasSubstr("with an outline: a cold start")));
  std::vector<Bar> bars;
  for (int i = 0; i < 30; ++i) bars.push_back({std::string(60, 'x'), {1}});
  EXPECT_THAT(bar_chart("t", "%", {""}, bars), Not(HasSubstr(">" + std::string(60, 'x') + "</text>")));
}

TEST(SvgChart, NothingThatOthersNamedIsMarkup) {
  const std::string evil = "<script>&\"";
  for (const std::string& svg :
       {line_chart(evil, {evil}, {evil}, {{evil, {{0, 1}, {1, 1}}}}), bar_chart(evil, evil, {evil}, {{evil, {1}}}),
        timeline_chart(evil, {evil}, {{.end = 1, .label = evil}}, {evil}, "")}) {
    EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  }
}

TEST(SvgChart, OddValuesDraw) {
  EXPECT_EQ(line_chart("t", {"x"}, {"y"}, {}), "");
  for (const double value : {0.0, -5.0, 1e12, 1e-12}) {
    EXPECT_THAT(line_chart("t", {"x"}, {"y"}, {{"", {{value, value}}}}),
                AllOf(HasSubstr("</svg>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
    EXPECT_THAT(line_chart("t", {"x", true}, {"y", true}, {{"", {{value, value}}}}),
                AllOf(HasSubstr("</svg>"), Not(HasSubstr("nan"))));
  }
  EXPECT_THAT(bar_chart("t", "%", {}, {}), HasSubstr("</svg>"));
  EXPECT_THAT(timeline_chart("t", {}, {}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace fairlead::sim
