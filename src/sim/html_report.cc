#include "sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/svg_chart.h"

namespace fairlead::sim {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 sans-serif; max-width: 1340px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: right } td:first-child, th:first-child { text-align: left }
tr { border-bottom: 1px solid #8884 } section { display: flex; flex-wrap: wrap; gap: 1em; align-items: start } svg { max-width: 100%; height: auto; break-inside: avoid }
.wide { overflow-x: auto } @media print { body { max-width: none; margin: 0 } svg { width: 100%; print-color-adjust: exact } }
</style>
)";

constexpr std::size_t kMostLines = 12;  // of one chart

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string summary_table(const std::vector<Outcomes>& outcomes) {
  std::string html =
      "<table><tr><th>variant<th>invocations<th>mean s<th>p50 s<th>p99 s<th>worst gap s<th>cold %<th>host-warm %<th>"
      "utilisation %<th>seeds<th>state hash</tr>\n";
  for (const Outcomes& outcome : outcomes) {
    const RunResult& total = outcome.total;
    html += fmt::format(
        "<tr><td>{}<td>{}<td>{:.3f}<td>{:.3f}<td>{:.3f}<td>{:.1f}<td>{:.1f}<td>{:.1f}<td>{:.0f}<td>{}<td>{:016x}</"
        "tr>\n",
        escaped(outcome.label), total.arrived(), total.latency.mean_seconds(),
        to_seconds(total.latency.percentile(0.5)), to_seconds(total.latency.percentile(0.99)), total.worst_gap,
        share(total.cold(), total.arrived()), share(total.host_warm(), total.arrived()),
        100 * total.busy_seconds / (total.seconds * static_cast<double>(outcome.scenario.devices)), outcome.runs.size(),
        total.state_hash);
  }
  return html + "</table>\n";
}

std::string latency_chart(const std::vector<Outcomes>& outcomes) {
  std::vector<Series> series;
  for (const Outcomes& outcome : outcomes) {
    Series one{outcome.label, {}};
    for (int percent = 1; percent <= 999; percent += percent < 990 ? 10 : 1) {
      one.points.emplace_back(to_seconds(outcome.total.latency.percentile(percent / 1000.0)), percent / 10.0);
    }
    series.push_back(std::move(one));
  }
  return line_chart("Latency, cumulative", {"seconds", true}, {"% of invocations"}, series);
}

std::string queue_chart(const std::vector<Outcomes>& outcomes) {
  std::vector<Series> series;
  for (const Outcomes& outcome : outcomes) {
    Series one{outcome.label, {}};
    for (const Sample& sample : outcome.runs.front().samples) {
      one.points.emplace_back(sample.at, static_cast<double>(sample.queued));
    }
    series.push_back(std::move(one));
  }
  return line_chart("Waiting, first seed", {"seconds"}, {"invocations"}, series);
}

std::string start_chart(const std::vector<Outcomes>& outcomes) {
  std::vector<Bar> bars;
  for (const Outcomes& outcome : outcomes) {
    const RunResult& total = outcome.total;
    bars.push_back({outcome.label, {share(total.cold(), total.arrived()), share(total.host_warm(), total.arrived())}});
  }
  return bar_chart("Starts that were not device-warm", "% of invocations", {"cold", "host-warm"}, bars);
}

// Functions, the busiest first: in each chart of a run a function has the colour of its place here.
std::vector<std::size_t> by_service(const RunResult& run) {
  std::vector<std::size_t> order(run.functions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return run.functions[a].service_seconds > run.functions[b].service_seconds;
  });
  return order;
}

std::string service_chart(const Outcomes& outcome) {
  std::vector<Series> series;
  const RunResult& run = outcome.runs.front();
  std::vector<std::size_t> most = by_service(run);
  most.resize(std::min(most.size(), kMostLines));
  for (const std::size_t f : most) {
    Series one{run.functions[f].name, {}};
    for (const Sample& sample : run.samples) one.points.emplace_back(sample.at, static_cast<double>(sample.served[f]));
    series.push_back(std::move(one));
  }
  const std::string which = run.functions.size() > kMostLines
                                ? fmt::format(", {} busiest of {} functions", kMostLines, run.functions.size())
                                : "";
  return line_chart("Service received: " + outcome.label + which, {"seconds"}, {"GPU seconds"}, series);
}

std::string gpu_chart(const Outcomes& outcome) {
  std::vector<std::string> rows;
  std::vector<Block> blocks;
  std::map<std::size_t, std::size_t> colours;
  std::vector<std::string> names;
  std::size_t seen = 0;  // colours
  for (const std::size_t function : by_service(outcome.runs.front())) {
    const std::size_t place = colours.size();
    colours[function] = place;
    names.push_back(outcome.scenario.functions[function].name);
  }
  for (std::size_t gpu = 1; gpu <= outcome.scenario.devices; ++gpu) rows.push_back(fmt::format("GPU {}", gpu));
  for (const Span& span : outcome.runs.front().timeline) {
    const std::string& name = outcome.scenario.functions[span.function].name;
    const std::size_t colour = colours.at(span.function);
    seen = std::max(seen, colour + 1);
    blocks.push_back({static_cast<std::size_t>(span.gpu - 1), colour, span.begin, span.end, span.cold,
                      fmt::format("{} {:.2f} s{}", name, span.end - span.begin, span.cold ? ", cold" : "")});
  }
  names.resize(seen);
  return timeline_chart("The first invocations: " + outcome.label, rows, blocks, names, "a cold start");
}

std::string function_table(const Outcomes& outcome) {
  std::string html =
      fmt::format("<h2>{}</h2>\n<table><tr><th>function<th>invocations<th>mean s<th>p99 s<th>cold %<th>GPU s</tr>\n",
                  escaped(outcome.label));
  for (const FunctionResult& function : outcome.total.functions) {
    if (function.arrived == 0) continue;
    html +=
        fmt::format("<tr><td>{}<td>{}<td>{:.3f}<td>{:.3f}<td>{:.1f}<td>{:.1f}</tr>\n", escaped(function.name),
                    function.arrived, function.latency.mean_seconds(), to_seconds(function.latency.percentile(0.99)),
                    share(function.cold, function.arrived), function.service_seconds);
  }
  return html + "</table>\n";
}

}  // namespace

std::string html_report(const std::string& title, const std::vector<Outcomes>& outcomes) {
  std::string html = kHead + fmt::format("<title>{0}</title></head><body><h1>{0}</h1>\n", escaped(title));
  html +=
      summary_table(outcomes) + "<section>\n" + latency_chart(outcomes) + queue_chart(outcomes) + start_chart(outcomes);
  for (const Outcomes& outcome : outcomes) html += service_chart(outcome) + gpu_chart(outcome);
  html += "</section>\n";
  for (const Outcomes& outcome : outcomes) html += function_table(outcome);
  return html + "</body></html>\n";
}

}  // namespace fairlead::sim
