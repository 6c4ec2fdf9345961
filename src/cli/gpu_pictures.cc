#include "cli/gpu_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "decide/pacing/concurrent_sets.h"
#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

using sim::escaped;

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                    "#56b4e9", "#8c6d31", "#6a3d9a", "#b15928", "#666666"};
constexpr double kLeast = 1e-6;  // per cent: less is nothing
constexpr double kChartWidth = 860, kChartHeight = 120, kLeft = 56, kRight = 12, kTop = 22, kBottom = 30;

double area_percent(const std::vector<SeatGroup>& groups) {
  return std::accumulate(groups.begin(), groups.end(), 0.0,
                         [](double sum, const SeatGroup& one) { return sum + one.area_percent(); });
}

// A set's members side by side, each as wide as its SMs.
void lay_out_set(const std::vector<SeatGroup>& groups, const std::vector<std::size_t>& of_row, const ConcurrentSet& set,
                 double y, std::vector<PlacedRectangle>& placed) {
  double x = 0;
  for (std::size_t row = 0; row < set.instances.size(); ++row) {
    const SeatGroup& group = groups[of_row[row]];
    for (int i = 0; i < set.instances[row]; ++i) {
      const double width = group.width_percent;
      placed.push_back({.group = of_row[row], .x = x, .y = y, .width = width, .height = set.percent});
      x += width;
    }
  }
}

std::string rectangle(double x, double y, double width, double height, const std::string& style,
                      const std::string& title) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}><title>{}</title></rect>\n",
                     x, y, width, height, style, escaped(title));
}

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(what));
}

std::string begin(double width, double height, const std::string& title) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"currentColor\"><title>{2}</title>\n",
      width, height, escaped(title));
}

std::string words(const SeatGroup& group) {
  return fmt::format("{}: {} x ({} % of the SMs, {} % of the time)", group.function, group.seats, group.width_percent,
                     group.quota_percent);
}

// Distances on the time axis that people read.
double tick_seconds(double span_s) {
  for (const double step : {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600}) {
    if (span_s / step <= 12) return step;
  }
  return 7200;
}

}  // namespace

double SeatGroup::area_percent() const {
  return static_cast<double>(seats) * width_percent * quota_percent / 100;
}

std::vector<PlacedRectangle> laid_out(const std::vector<SeatGroup>& groups) {
  std::vector<QuotaRow> rows;
  std::vector<std::size_t> of_row;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SeatGroup& group = groups[i];
    const bool is_sound = group.width_percent >= 1 && group.width_percent <= 100 && group.quota_percent >= 1 &&
                          group.quota_percent <= 100;
    if (group.seats == 0 || !is_sound) continue;
    rows.push_back(
        {group.width_percent, group.quota_percent, static_cast<int>(std::min<std::size_t>(group.seats, 1000))});
    of_row.push_back(i);
  }
  LeastTime time = least_time(rows, 0);
  std::stable_sort(time.sets.begin(), time.sets.end(),
                   [](const ConcurrentSet& a, const ConcurrentSet& b) { return a.percent > b.percent; });
  std::vector<PlacedRectangle> placed;
  double y = 0;
  for (const ConcurrentSet& set : time.sets) {
    if (set.percent < kLeast) continue;
    lay_out_set(groups, of_row, set, y, placed);
    y += set.percent;
  }
  return placed;
}

Colours::Colours(std::vector<std::string> functions) : functions_(std::move(functions)) {
  std::sort(functions_.begin(), functions_.end());
  functions_.erase(std::unique(functions_.begin(), functions_.end()), functions_.end());
}

std::string Colours::of(const std::string& function) const {
  const auto found = std::lower_bound(functions_.begin(), functions_.end(), function);
  return kColours[static_cast<std::size_t>(found - functions_.begin()) % std::size(kColours)];
}

std::string gpu_picture(const std::string& caption, const std::vector<SeatGroup>& groups, const Colours& colours,
                        double side) {
  const double scale = side / 100;
  std::string svg = begin(side + 2, side + 18, caption);
  for (const PlacedRectangle& one : laid_out(groups)) {
    const SeatGroup& group = groups[one.group];
    // From the bottom up. What does not fit (seats of before a GPU shrank) is cut at the top.
    const double top = std::min(100.0, one.y + one.height);
    if (top <= one.y) continue;
    svg += rectangle(1 + one.x * scale, 1 + (100 - top) * scale, one.width * scale, (top - one.y) * scale,
                     fmt::format("fill=\"{}\" fill-opacity=\"0.8\" stroke=\"#fff\"", colours.of(group.function)),
                     words(group));
  }
  svg += rectangle(1, 1, side, side, "fill=\"none\" stroke=\"currentColor\"",
                   fmt::format("free: {:.0f} % of the GPU", 100 - area_percent(groups)));
  return svg + text(side / 2 + 1, side + 14, "middle", caption) + "</svg>\n";
}

std::string promised_chart(const std::string& title, const std::vector<GpuMoment>& moments, std::int64_t from_ms,
                           std::int64_t to_ms, const Colours& colours) {
  const double span_s = std::max(1.0, static_cast<double>(to_ms - from_ms) / 1000);
  const double width = kChartWidth - kLeft - kRight, height = kChartHeight - kTop - kBottom;
  const auto x_of = [&](double seconds) { return kLeft + std::clamp(seconds / span_s, 0.0, 1.0) * width; };
  const auto y_of = [&](double percent) { return kTop + (1 - std::min(percent, 100.0) / 100) * height; };
  std::string svg = begin(kChartWidth, kChartHeight, title);
  svg += text(kLeft, 14, "start", title);
  for (const int percent : {0, 50, 100}) svg += text(kLeft - 6, y_of(percent) + 4, "end", fmt::format("{} %", percent));
  for (double at = 0; at <= span_s; at += tick_seconds(span_s)) {
    svg += text(x_of(at), kChartHeight - kBottom + 14, "middle", fmt::format("{:.0f} s", at));
  }
  svg += rectangle(kLeft, kTop, width, height, "fill=\"none\" stroke=\"currentColor\" opacity=\"0.3\"", title);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const std::int64_t ends = i + 1 < moments.size() ? moments[i + 1].at_ms : to_ms;
    const double x = x_of(static_cast<double>(moments[i].at_ms - from_ms) / 1000);
    const double wide = x_of(static_cast<double>(ends - from_ms) / 1000) - x;
    double percent = 0;
    for (const SeatGroup& group : moments[i].groups) {
      const double above = percent + group.area_percent();
      if (wide > 0) {
        svg += rectangle(x, y_of(above), wide, y_of(percent) - y_of(above),
                         fmt::format("fill=\"{}\" fill-opacity=\"0.8\"", colours.of(group.function)), words(group));
      }
      percent = above;
    }
  }
  return svg + "</svg>\n";
}

std::vector<std::size_t> telling_moments(const std::vector<GpuMoment>& moments, std::int64_t to_ms, std::size_t most) {
  std::vector<std::size_t> with_seats;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (!moments[i].groups.empty()) with_seats.push_back(i);
  }
  if (with_seats.size() <= most) return with_seats;
  const auto lasted = [&](std::size_t i) {
    return (i + 1 < moments.size() ? moments[i + 1].at_ms : to_ms) - moments[i].at_ms;
  };
  std::set<std::size_t> chosen;
  const auto fullest = *std::max_element(with_seats.begin(), with_seats.end(), [&](std::size_t a, std::size_t b) {
    return area_percent(moments[a].groups) < area_percent(moments[b].groups);
  });
  for (const std::size_t one : {fullest, with_seats.front(), with_seats.back()}) {
    if (chosen.size() < most) chosen.insert(one);
  }
  std::vector<std::size_t> longest = with_seats;
  std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) { return lasted(a) > lasted(b); });
  for (const std::size_t one : longest) {
    if (chosen.size() < most) chosen.insert(one);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace fairlead::cli
