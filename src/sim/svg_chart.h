// Small charts as SVG text for reports: lines, bars and a timeline. Readable without scripts, in light, in dark and on paper.
//
// Ticks are round; axes are as wide as their labels; the legend stands beside the picture; no two colours are alike; what lies under a
// pointer says its values.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fairlead::sim {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;
};

struct Axis {
  std::string label;
  bool logarithmic = false;
};

std::string line_chart(const std::string& title, const Axis& x, const Axis& y, const std::vector<Series>& series);

struct Bar {
  std::string label;
  std::vector<double> parts;  // stacked
};
// `parts`: their names.
std::string bar_chart(const std::string& title, const std::string& unit, const std::vector<std::string>& parts,
                      const std::vector<Bar>& bars);

struct Block {
  std::size_t row = 0, colour = 0;
  double begin = 0, end = 0;
  bool marked = false;
  std::string label;
};
// `colours`: what each colour of a block stands for; `marked`: what an outline does.
std::string timeline_chart(const std::string& title, const std::vector<std::string>& rows,
                           const std::vector<Block>& blocks, const std::vector<std::string>& colours = {},
                           const std::string& marked = "");

// From 0 by round steps to the first that is not below `most`: the lines of an axis.
std::vector<double> round_ticks(double most);
std::string short_number(double value);  // "0.25", "1500", "20k", "3M"

// &, < and > as entities: what others named must not become markup.
std::string escaped(const std::string& text);

}  // namespace fairlead::sim
