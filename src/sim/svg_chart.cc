#include "sim/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fairlead::sim {
namespace {

constexpr double kWidth = 640, kHeight = 320, kRight = 16, kTop = 36, kBottom = 44;
constexpr double kLetter = 6.2;                   // of the font, on average
constexpr double kLegend = 170, kLegendRow = 15;  // beside the picture, and not over it
constexpr std::size_t kLegendColumns = 4;         // below a picture
constexpr std::size_t kMostHovered = 80;          // points of a line that say their values
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                    "#56b4e9", "#999999", "#8c6d31", "#6a3d9a", "#b15928"};

// No two alike: beyond those that were chosen, hues a golden angle apart, and darker with each round.
std::string colour(std::size_t index) {
  if (index < std::size(kColours)) return kColours[index];
  const std::size_t beyond = index - std::size(kColours);
  return fmt::format("hsl({:.0f} {}% {}%)", std::fmod(static_cast<double>(beyond) * 137.508 + 25, 360),
                     beyond % 2 == 0 ? 70 : 40, 55 - static_cast<int>(beyond / 8 % 4) * 9);
}

// The largest of 1, 2 and 5 times a power of ten that has at least `least` steps in `range`, about.
double round_step(double range, double least) {
  const double raw = range / least, power = std::pow(10, std::floor(std::log10(raw))), part = raw / power;
  return (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
}

// Values on one side of the picture.
class Scale {
 public:
  // `round`: it ends at a tick, so that what is largest has a line above it.
  Scale(double least, double most, bool logarithmic, double from, double to, bool round = false)
      : logarithmic_(logarithmic), from_(from), to_(to) {
    if (logarithmic_) least = std::max(least, 1e-6);
    if (!(most > least)) most = logarithmic_ ? least * 10 : least + 1;
    if (round && !logarithmic_) {
      for (int times = 0; times < 3; ++times) {  // the longer range may have longer steps
        const double step = round_step(most - least, 5);
        most = std::ceil(most / step - 1e-9) * step;
        least = std::floor(least / step + 1e-9) * step;
      }
    }
    least_ = position(least);
    most_ = position(most);
  }

  void draw_between(double from, double to) { from_ = from, to_ = to; }
  double at(double value) const {
    const double share = (position(value) - least_) / (most_ - least_);
    return from_ + (to_ - from_) * std::clamp(share, 0.0, 1.0);
  }

  // Round values. On a logarithmic scale powers of ten, and 2 and 5 times those where there are few.
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic_) {
      const bool are_few = most_ - least_ < 2.5;
      for (double p = std::floor(least_); p <= most_ + 1e-9; ++p) {
        for (const double times : {1.0, 2.0, 5.0}) {
          const double value = times * std::pow(10, p);
          if ((times == 1 || are_few) && position(value) >= least_ - 1e-9 && position(value) <= most_ + 1e-9)
            ticks.push_back(value);
        }
      }
      return ticks;
    }
    const double step = round_step(most_ - least_, 5);
    const auto first = static_cast<std::int64_t>(std::ceil(least_ / step - 1e-9));
    for (std::int64_t i = first; static_cast<double>(i) * step <= most_ + step * 1e-6; ++i) {
      ticks.push_back(static_cast<double>(i) * step);
    }
    return ticks;
  }
  double widest_label() const {
    double widest = 0;
    for (const double tick : ticks())
      widest = std::max(widest, kLetter * static_cast<double>(short_number(tick).size()));
    return widest;
  }

 private:
  double position(double value) const { return logarithmic_ ? std::log10(std::max(value, 1e-6)) : value; }

  bool logarithmic_;
  double from_, to_, least_ = 0, most_ = 1;
};

// Where the picture lies within the drawing: its axis labels to the left of it, its legend to the right.
struct Frame {
  double left = 64, right = kWidth - kRight, height = kHeight;
};

Frame frame_for(double widest_label, const std::vector<std::string>& legend, double height = kHeight) {
  const bool has_legend = !legend.empty() && !(legend.size() == 1 && legend[0].empty());
  const double rows = has_legend ? kTop + 8 + kLegendRow * static_cast<double>(legend.size()) : 0;
  return {.left = std::max(40.0, 26 + widest_label),
          .right = has_legend ? kWidth - kLegend : kWidth - kRight,
          .height = std::max(height, rows)};
}

std::string begin(const std::string& title, const Frame& frame) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1:.0f}\" width=\"{0}\" height=\"{1:.0f}\" "
      "role=\"img\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\" "
      "fill=\"currentColor\">\n<title>{2}</title>\n<text x=\"{3:.0f}\" y=\"20\" font-size=\"14\">{2}</text>\n",
      kWidth, frame.height, escaped(title), frame.left);
}

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(what));
}

std::string line(double x1, double y1, double x2, double y2, double opacity) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" opacity=\"{}\"/>\n", x1,
      y1, x2, y2, opacity);
}

// At most so many letters; whole ones, whatever the bytes.
std::string cut_text(const std::string& what, std::size_t most) {
  std::size_t letters = 0, end = 0;
  while (end < what.size() && letters < most) {
    ++end;
    while (end < what.size() && (static_cast<unsigned char>(what[end]) & 0xc0) == 0x80) ++end;
    ++letters;
  }
  return end < what.size() ? what.substr(0, end) + "…" : what;
}

std::string y_axis(const Scale& y, const std::string& label, const Frame& frame) {
  std::string svg;
  for (const double tick : y.ticks()) {
    svg += line(frame.left, y.at(tick), frame.right, y.at(tick), 0.12);
    svg += text(frame.left - 6, y.at(tick) + 4, "end", short_number(tick));
  }
  return svg + fmt::format("<text transform=\"translate(14 {:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                           (kTop + frame.height - kBottom) / 2, escaped(label));
}

std::string x_axis(const Scale& x, const std::string& label, const Frame& frame, const char* unit = "") {
  std::string svg;
  double free_from = -1e9;  // labels that would touch are left out, their lines stay
  for (const double tick : x.ticks()) {
    const std::string words = short_number(tick) + unit;
    const double half = kLetter * static_cast<double>(words.size()) / 2;
    svg += line(x.at(tick), kTop, x.at(tick), frame.height - kBottom, 0.12);
    if (x.at(tick) - half < free_from) continue;
    free_from = x.at(tick) + half + 6;
    svg += text(x.at(tick), frame.height - kBottom + 14, "middle", words);
  }
  return svg + text((frame.left + frame.right) / 2, frame.height - 8, "middle", label);
}

// A line of another pattern for each round of colours, so that it is told apart on paper as well.
std::string dashes(std::size_t index) {
  static constexpr const char* kPatterns[] = {"", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 2\"",
                                              " stroke-dasharray=\"8 2 2 2\""};
  return kPatterns[index / std::size(kColours) % std::size(kPatterns)];
}

std::string legend_entry(const std::string& label, std::size_t i, double x, double y) {
  constexpr std::size_t kLetters = 22;
  return fmt::format("<g><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
                     escaped(label), x, y - 8, colour(i)) +
         text(x + 15, y + 1, "start", cut_text(label, kLetters)) + "</g>\n";
}

std::string legend(const std::vector<std::string>& labels, const Frame& frame) {
  if (labels.size() == 1 && labels[0].empty()) return "";
  std::string svg;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    svg += legend_entry(labels[i], i, frame.right + 14, kTop + 8 + kLegendRow * static_cast<double>(i));
  }
  return svg;
}

// What lies under a pointer says its values: points that nobody sees, as no script runs in a report.
std::string hovered(const Series& series, const Scale& x, const Scale& y, const Axis& x_axis, const Axis& y_axis) {
  std::string svg;
  const std::size_t every = std::max<std::size_t>(1, series.points.size() / kMostHovered);
  for (std::size_t i = 0; i < series.points.size(); i += every) {
    const auto& [px, py] = series.points[i];
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"transparent\"><title>{}{}{} {}: {} {}</title></circle>\n",
        x.at(px), y.at(py), escaped(series.label), series.label.empty() ? "" : ", ", short_number(px),
        escaped(x_axis.label), short_number(py), escaped(y_axis.label));
  }
  return svg;
}

}  // namespace

std::string short_number(double value) {
  const double size = std::abs(value);
  for (const auto& [unit, letter] : {std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e4, "k")}) {
    const double by = unit == 1e4 ? 1e3 : unit;
    if (size >= unit) return fmt::format("{:.4g}{}", value / by, letter);
  }
  if (size != 0 && size < 1e-4) return fmt::format("{:.2g}", value);
  return fmt::format("{:.4g}", value);
}

std::vector<double> round_ticks(double most) {
  return Scale(0, most, false, 0, 1, true).ticks();
}

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

std::string line_chart(const std::string& title, const Axis& x_is, const Axis& y_is,
                       const std::vector<Series>& series) {
  double x_least = 1e300, x_most = -1e300, y_least = 1e300, y_most = -1e300;
  std::vector<std::string> labels;
  for (const Series& one : series) {
    labels.push_back(one.label);
    for (const auto& [x, y] : one.points) {
      x_least = std::min(x_least, x);
      x_most = std::max(x_most, x);
      y_least = std::min(y_least, y);
      y_most = std::max(y_most, y);
    }
  }
  if (x_most < x_least) return "";
  const Scale y(y_is.logarithmic ? y_least : std::min(0.0, y_least), y_most, y_is.logarithmic, kHeight - kBottom, kTop,
                true);
  const Frame frame = frame_for(y.widest_label(), labels);
  Scale upright = y;
  upright.draw_between(frame.height - kBottom, kTop);
  const bool from_zero = !x_is.logarithmic && x_least > 0 && x_least < x_most / 5;
  const Scale x(from_zero ? 0 : x_least, x_most, x_is.logarithmic, frame.left, frame.right);
  std::string svg = begin(title, frame) + x_axis(x, x_is.label, frame) + y_axis(upright, y_is.label, frame);
  std::string points_of_all;
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::string points;
    for (const auto& [px, py] : series[i].points) points += fmt::format("{:.1f},{:.1f} ", x.at(px), upright.at(py));
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{} points=\"{}\"><title>{}</title></polyline>\n",
        colour(i), dashes(i), points, escaped(series[i].label));
    points_of_all += hovered(series[i], x, upright, x_is, y_is);
  }
  return svg + points_of_all + legend(labels, frame) + "</svg>\n";
}

std::string bar_chart(const std::string& title, const std::string& unit, const std::vector<std::string>& parts,
                      const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += part;
    most = std::max(most, sum);
  }
  Scale y(0, most, false, kHeight - kBottom, kTop, true);
  const Frame frame = frame_for(y.widest_label(), parts);
  y.draw_between(frame.height - kBottom, kTop);
  std::string svg = begin(title, frame) + y_axis(y, unit, frame);
  const double step = (frame.right - frame.left) / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  const auto letters = static_cast<std::size_t>(std::max(1.0, step / kLetter - 2));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double left = frame.left + step * (static_cast<double>(i) + 0.15);
    double below = 0;
    for (std::size_t p = 0; p < bars[i].parts.size(); ++p) {
      const double top = y.at(below + bars[i].parts[p]);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}{}{}: {} "
          "{}</title></rect>\n",
          left, top, step * 0.7, y.at(below) - top, colour(p), escaped(bars[i].label), p < parts.size() ? ", " : "",
          p < parts.size() ? escaped(parts[p]) : "", short_number(bars[i].parts[p]), escaped(unit));
      below += bars[i].parts[p];
    }
    svg +=
        fmt::format("<g><title>{}</title>{}</g>\n", escaped(bars[i].label),
                    text(left + step * 0.35, frame.height - kBottom + 14, "middle", cut_text(bars[i].label, letters)));
  }
  return svg + legend(parts, frame) + "</svg>\n";
}

std::string timeline_chart(const std::string& title, const std::vector<std::string>& rows,
                           const std::vector<Block>& blocks, const std::vector<std::string>& colours,
                           const std::string& marked) {
  double most = 0, widest = 0;
  for (const Block& block : blocks) most = std::max(most, block.end);
  for (const std::string& row : rows) widest = std::max(widest, kLetter * static_cast<double>(row.size()));
  const double bottom = kTop + kBottom + 22 * static_cast<double>(rows.size());
  const std::size_t legend_lines = (colours.size() + kLegendColumns - 1) / kLegendColumns;
  const auto legend_rows = static_cast<double>(legend_lines);
  const Frame frame = frame_for(widest - 16, {}, bottom + (colours.empty() ? 0 : legend_rows * kLegendRow + 10));
  const Scale x(0, most, false, frame.left, frame.right);
  std::string svg = begin(title, frame);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    svg += text(frame.left - 6, kTop + 22 * static_cast<double>(row) + 14, "end", rows[row]);
  }
  Frame picture = frame;
  picture.height = bottom;
  svg += x_axis(x, "", picture, " s");
  for (const Block& block : blocks) {
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"16\" fill=\"{}\"{}><title>{}</title></rect>\n",
        x.at(block.begin), kTop + 22 * static_cast<double>(block.row) + 2,
        std::max(0.3, x.at(block.end) - x.at(block.begin)), colour(block.colour),
        block.marked ? " stroke=\"currentColor\"" : "", escaped(block.label));
  }
  if (!marked.empty()) svg += text(frame.left, bottom - 8, "start", "with an outline: " + marked);
  // Below: lanes are low and long.
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double wide = (kWidth - 20) / static_cast<double>(kLegendColumns);
    const std::size_t line = i / kLegendColumns;
    svg += legend_entry(colours[i], i, 10 + wide * static_cast<double>(i % kLegendColumns),
                        bottom + 8 + kLegendRow * static_cast<double>(line));
  }
  return svg + "</svg>\n";
}

}  // namespace fairlead::sim
