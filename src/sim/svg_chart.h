// Small charts as SVG text for reports: lines, bars and a timeline. Readable without scripts, in light and dark.
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
std::string timeline_chart(const std::string& title, const std::vector<std::string>& rows,
                           const std::vector<Block>& blocks);

// &, < and > as entities: what others named must not become markup.
std::string escaped(const std::string& text);

}  // namespace fairlead::sim
