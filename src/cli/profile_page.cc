#include "cli/profile_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/format.h"
#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

using sim::escaped;

constexpr int kLeft = 60, kTop = 30, kCell = 22, kSteps = 20;  // cells of 5 % x 5 %
constexpr int kWidth = kLeft + kSteps * kCell + 20, kHeight = kTop + kSteps * kCell + 50;

// Requests per second, as the profile's three numbers say.
double rate_of(const FunctionProfile& profile, double width_percent, double quota_percent) {
  const double execution_ms = profile.fixed_ms + profile.work_ms / std::min(width_percent, profile.saturation_percent);
  return quota_percent / 100 * 1000 / execution_ms;
}

double x_of(double width_percent) {
  return kLeft + width_percent / 100 * kSteps * kCell;
}
double y_of(double quota_percent) {
  return kTop + (1 - quota_percent / 100) * kSteps * kCell;
}

// From pale to dark.
std::string colour(double part) {
  const auto mix = [&](double from, double to) { return static_cast<int>(from + part * (to - from)); };
  return fmt::format("rgb({},{},{})", mix(236, 8), mix(242, 64), mix(247, 129));
}

std::string cells(const FunctionProfile& profile) {
  const double most = rate_of(profile, 100, 100);
  std::string svg;
  for (int column = 0; column < kSteps; ++column) {
    for (int row = 0; row < kSteps; ++row) {
      const int width = 100 * (column + 1) / kSteps, quota = 100 * (row + 1) / kSteps;
      const double rate = rate_of(profile, width, quota);
      svg += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{} % of the SMs x {} % of the "
          "time: {:.1f} requests/s</title></rect>\n",
          x_of(100.0 * column / kSteps), y_of(quota), kCell, kCell, colour(rate / most), width, quota, rate);
    }
  }
  return svg;
}

std::string dots(const FunctionProfile& profile) {
  std::string svg;
  for (const MeasuredTrial& trial : profile.trials) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"#fff\" stroke=\"#d00\" stroke-width=\"2\"><title>measured: "
        "{:.1f} requests/s +- {:.1f} %, {} x {}</title></circle>\n",
        x_of(trial.width_percent), y_of(trial.quota_percent), trial.rate_per_s, 100 * trial.error, trial.width_percent,
        trial.quota_percent);
  }
  return svg;
}

// From the corner where nothing is to what was chosen.
std::string frame(const ChosenRectangle& chosen) {
  if (chosen.quota_percent == 0) return "";
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#e69f00\" "
      "stroke-width=\"3\"><title>chosen: {} % of the SMs x {} % of the time</title></rect>\n",
      x_of(0), y_of(chosen.quota_percent), x_of(chosen.width_percent) - x_of(0), y_of(0) - y_of(chosen.quota_percent),
      chosen.width_percent, chosen.quota_percent);
}

std::string axes() {
  std::string svg;
  for (int percent = 0; percent <= 100; percent += 20) {
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(percent),
                       kTop + kSteps * kCell + 16, percent);
    svg += fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y_of(percent) + 4,
                       percent);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">% of the SMs</text>\n", kLeft + kSteps * kCell / 2,
                     kHeight - 8);
  svg += fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">% of the time</text>\n",
                     kTop + kSteps * kCell / 2);
  return svg;
}

std::string trial_rows(const FunctionProfile& profile) {
  std::string rows;
  for (const MeasuredTrial& trial : profile.trials) {
    rows += fmt::format(
        "<tr><td>{} %</td><td>{} %</td><td>{:.1f}</td><td>{:.1f} %</td><td>{:.2f}</td><td>{:.2f}</td><td>{}</td><td>{}"
        "</td><td>{}</td><td>{}</td></tr>\n",
        trial.width_percent, trial.quota_percent, trial.rate_per_s, 100 * trial.error, trial.p50_ms, trial.p99_ms,
        format_percent(trial.utilisation), format_bytes(static_cast<double>(trial.memory.count())), trial.requests,
        escaped(trial.why));
  }
  return rows;
}

std::string beside_line(const FunctionProfile& profile) {
  if (!profile.alone.empty()) return "<p>Not tried beside a copy of itself: " + escaped(profile.alone) + ".</p>\n";
  if (!profile.beside) return "";
  const MeasuredTrial& trial = profile.beside->trial;
  return fmt::format(
      "<p>Beside a copy of itself, each {} % of the SMs x {} % of the time: {:.1f} requests/s, {:.2f} times as slow as "
      "alone +- {:.1f} %.</p>\n",
      trial.width_percent, trial.quota_percent, trial.rate_per_s, profile.beside->slowdown,
      100 * profile.beside->error);
}

}  // namespace

std::string heat_map(const FunctionProfile& profile, ChosenRectangle chosen) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
             "font-family=\"sans-serif\" font-size=\"12\" fill=\"currentColor\">\n",
             kWidth, kHeight) +
         fmt::format("<text x=\"{}\" y=\"18\">Requests per second of {} on {}</text>\n", kLeft,
                     escaped(profile.function), escaped(profile.device)) +
         cells(profile) + frame(chosen) + dots(profile) + axes() + "</svg>\n";
}

std::string profile_page(const FunctionProfile& profile) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Profile of {0}</title>\n"
      "<style>:root {{ color-scheme: light dark }} body {{ font-family: sans-serif; margin: 2em }} td, th {{ padding: "
      "2px 10px; text-align: right }} td:last-child {{ text-align: left }} svg {{ max-width: 100%; height: auto; "
      "print-color-adjust: exact }}</style>\n"
      "<h1>Profile of {0}</h1>\n<p>{1}, code {2}, {3}{4}. {5} trials; {6}.</p>\n"
      "<p>Execution is {7:.2f} ms + {8:.1f} ms x % / min(SMs, {9:.0f} %).</p>\n{12}{10}"
      "<p>Cells: what the model says. Dots: what was measured.</p>\n<table><tr><th>SMs</th><th>time</th><th>requests/s"
      "</th><th>error</th><th>p50 ms</th><th>p99 ms</th><th>GPU busy</th><th>memory</th><th>requests</th><th>why</th>"
      "</tr>\n{11}</table></html>\n",
      escaped(profile.function), escaped(profile.device), escaped(profile.code_sha256),
      format_time(profile.measured_ms), profile.is_imported ? ", imported" : "", profile.trials.size(),
      escaped(profile.ended), profile.fixed_ms, profile.work_ms, profile.saturation_percent, heat_map(profile),
      trial_rows(profile), beside_line(profile));
}

}  // namespace fairlead::cli
