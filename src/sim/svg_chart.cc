#include "sim/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fairlead::sim {
namespace {

constexpr double kWidth = 640, kHeight = 320, kLeft = 64, kRight = 16, kTop = 36, kBottom = 44;
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                    "#56b4e9", "#999999", "#8c6d31", "#6a3d9a", "#b15928"};

const char* colour(std::size_t index) {
  return kColours[index % std::size(kColours)];
}

// Values on one side of the picture.
class Scale {
 public:
  Scale(double least, double most, bool logarithmic, double from, double to)
      : logarithmic_(logarithmic), from_(from), to_(to) {
    if (logarithmic_) least = std::max(least, 1e-6);
    if (most <= least) most = logarithmic_ ? least * 10 : least + 1;
    least_ = position(least);
    most_ = position(most);
  }

  double at(double value) const {
    const double share = (position(value) - least_) / (most_ - least_);
    return from_ + (to_ - from_) * std::clamp(share, 0.0, 1.0);
  }

  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic_) {
      for (double p = std::ceil(least_); p <= most_ + 1e-9; ++p) ticks.push_back(std::pow(10, p));
      return ticks;
    }
    const double raw = (most_ - least_) / 5, power = std::pow(10, std::floor(std::log10(raw)));
    const double part = raw / power, step = (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
    for (double tick = std::ceil(least_ / step) * step; tick <= most_ + step * 1e-6; tick += step)
      ticks.push_back(tick);
    return ticks;
  }

 private:
  double position(double value) const { return logarithmic_ ? std::log10(std::max(value, 1e-6)) : value; }

  bool logarithmic_;
  double from_, to_, least_ = 0, most_ = 1;
};

std::string begin(const std::string& title, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\" "
      "fill=\"currentColor\">\n<title>{2}</title>\n<text x=\"{3}\" y=\"20\" font-size=\"14\">{2}</text>\n",
      kWidth, height, escaped(title), kLeft);
}

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(what));
}

std::string line(double x1, double y1, double x2, double y2, double opacity) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" opacity=\"{}\"/>\n", x1,
      y1, x2, y2, opacity);
}

std::string axes(const Scale& x, const Scale& y, const Axis& x_axis, const Axis& y_axis) {
  std::string svg;
  for (const double tick : x.ticks()) {
    svg += line(x.at(tick), kTop, x.at(tick), kHeight - kBottom, 0.12);
    svg += text(x.at(tick), kHeight - kBottom + 14, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    svg += line(kLeft, y.at(tick), kWidth - kRight, y.at(tick), 0.12);
    svg += text(kLeft - 6, y.at(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  svg += text((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", x_axis.label);
  svg += fmt::format("<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", kHeight / 2,
                     escaped(y_axis.label));
  return svg;
}

std::string legend(const std::vector<std::string>& labels) {
  std::string svg;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double y = kTop + 8 + 14 * static_cast<double>(i);
    svg +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", kLeft + 10, y - 8, colour(i));
    svg += text(kLeft + 25, y + 1, "start", labels[i]);
  }
  return svg;
}

}  // namespace

std::string escaped(const std::string& raw) {
  std::string safe;
  for (const char c : raw) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string line_chart(const std::string& title, const Axis& x_axis, const Axis& y_axis,
                       const std::vector<Series>& series) {
  double x_least = 1e300, x_most = -1e300, y_least = 1e300, y_most = -1e300;
  for (const Series& one : series) {
    for (const auto& [x, y] : one.points) {
      x_least = std::min(x_least, x);
      x_most = std::max(x_most, x);
      y_least = std::min(y_least, y);
      y_most = std::max(y_most, y);
    }
  }
  if (x_most < x_least) return "";
  const Scale x(x_least, x_most, x_axis.logarithmic, kLeft, kWidth - kRight);
  const Scale y(y_axis.logarithmic ? y_least : std::min(0.0, y_least), y_most, y_axis.logarithmic, kHeight - kBottom,
                kTop);
  std::string svg = begin(title, kHeight) + axes(x, y, x_axis, y_axis);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::string points;
    for (const auto& [px, py] : series[i].points) points += fmt::format("{:.1f},{:.1f} ", x.at(px), y.at(py));
    svg +=
        fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n", colour(i), points);
    labels.push_back(series[i].label);
  }
  return svg + (labels.size() <= 12 ? legend(labels) : "") + "</svg>\n";
}

std::string bar_chart(const std::string& title, const std::string& unit, const std::vector<std::string>& parts,
                      const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += part;
    most = std::max(most, sum);
  }
  const Scale y(0, most, false, kHeight - kBottom, kTop);
  std::string svg = begin(title, kHeight);
  for (const double tick : y.ticks()) {
    svg += line(kLeft, y.at(tick), kWidth - kRight, y.at(tick), 0.12);
    svg += text(kLeft - 6, y.at(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  const double step = (kWidth - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double left = kLeft + step * (static_cast<double>(i) + 0.15);
    double below = 0;
    for (std::size_t p = 0; p < bars[i].parts.size(); ++p) {
      const double top = y.at(below + bars[i].parts[p]);
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", left,
                         top, step * 0.7, y.at(below) - top, colour(p));
      below += bars[i].parts[p];
    }
    svg += text(left + step * 0.35, kHeight - kBottom + 14, "middle", bars[i].label);
  }
  svg += text(kLeft, kTop - 2, "start", unit);
  return svg + legend(parts) + "</svg>\n";
}

std::string timeline_chart(const std::string& title, const std::vector<std::string>& rows,
                           const std::vector<Block>& blocks) {
  double most = 0;
  for (const Block& block : blocks) most = std::max(most, block.end);
  const double height = kTop + kBottom + 22 * static_cast<double>(rows.size());
  const Scale x(0, most, false, kLeft, kWidth - kRight);
  std::string svg = begin(title, height);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    svg += text(kLeft - 6, kTop + 22 * static_cast<double>(row) + 14, "end", rows[row]);
  }
  for (const double tick : x.ticks()) {
    svg += line(x.at(tick), kTop, x.at(tick), height - kBottom, 0.12);
    svg += text(x.at(tick), height - kBottom + 14, "middle", fmt::format("{:g} s", tick));
  }
  for (const Block& block : blocks) {
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"16\" fill=\"{}\"{}><title>{}</title></rect>\n",
        x.at(block.begin), kTop + 22 * static_cast<double>(block.row) + 2,
        std::max(0.3, x.at(block.end) - x.at(block.begin)), colour(block.colour),
        block.marked ? " stroke=\"currentColor\"" : "", escaped(block.label));
  }
  return svg + "</svg>\n";
}

}  // namespace fairlead::sim
