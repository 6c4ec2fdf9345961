#include "cli/sim_chart.h"

#include <istream>
#include <iterator>
#include <ostream>

#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

sim::Axis axis_of(const Json& axis) {
  return {axis.value("label", ""), axis.value("logarithmic", false)};
}

std::string lines_of(const Json& chart) {
  std::vector<sim::Series> series;
  for (const Json& one : chart.at("series")) {
    series.push_back(
        {one.at("label").get<std::string>(), one.at("points").get<std::vector<std::pair<double, double>>>()});
  }
  return sim::line_chart(chart.at("title").get<std::string>(), axis_of(chart.at("x")), axis_of(chart.at("y")), series);
}

std::string bars_of(const Json& chart) {
  std::vector<sim::Bar> bars;
  for (const Json& bar : chart.at("bars")) {
    bars.push_back({bar.at("label").get<std::string>(), bar.at("parts").get<std::vector<double>>()});
  }
  return sim::bar_chart(chart.at("title").get<std::string>(), chart.at("unit").get<std::string>(),
                        chart.at("parts").get<std::vector<std::string>>(), bars);
}

// Alone in a file it has no page to take its colour from.
std::string in_either_light(std::string svg) {
  const std::size_t inside = svg.find('\n') + 1;
  return svg.insert(inside, "<style>@media (prefers-color-scheme: dark) { svg { color: #ddd } }</style>\n");
}

int run_sim_chart(Cli& cli) {
  const std::string text{std::istreambuf_iterator<char>(cli.in()), {}};
  try {
    const Json chart = Json::parse(text);
    const std::string svg = chart.contains("bars") ? bars_of(chart) : lines_of(chart);
    if (svg.empty()) return cli.report({Errc::kInvalidArgument, "the chart has no points"});
    cli.out() << in_either_light(svg);
    return kOk;
  } catch (const Json::exception& error) {
    return cli.report({Errc::kInvalidArgument, fmt::format("the chart on standard input: {}", error.what())});
  }
}

}  // namespace

void add_sim_chart(Cli& cli, CLI::App& sim) {
  cli.add_command(sim, "chart", "Draw a chart as SVG, from JSON on standard input",
                  [&cli] { return run_sim_chart(cli); })
      .footer(
          "Lines: {\"title\": ..., \"x\": {\"label\": ..., \"logarithmic\": false}, \"y\": {...},\n"
          "        \"series\": [{\"label\": ..., \"points\": [[0, 1], ...]}]}\n"
          "Bars:  {\"title\": ..., \"unit\": ..., \"parts\": [...], \"bars\": [{\"label\": ..., \"parts\": [1, "
          "...]}]}");
}

}  // namespace fairlead::cli
