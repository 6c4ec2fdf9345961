#include "cli/scaling_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/format.h"
#include "cli/profile_page.h"
#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

using sim::escaped;

constexpr double kPicture = 104;         // pixels, of a moment of a GPU
constexpr std::size_t kMostMoments = 7;  // of a GPU
constexpr std::size_t kOften = 3;        // decisions that reject the same
constexpr std::size_t kOpenNotes = 10;   // of a function; the others unfold
constexpr std::size_t kMostGpus = 32;    // that are drawn
constexpr double kChartWidth = 860, kChartHeight = 150, kLeft = 56, kRight = 12, kTop = 12, kBottom = 30;

double number(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::string words(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
const Json& list(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}
const Json& child(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kNone;
}

std::string percent_of(double part, double whole) {
  return whole > 0 ? fmt::format("{:.2f} %", 100 * part / whole) : "-";
}

std::string cell(const std::string& what) {
  return "<td>" + escaped(what) + "</td>";
}

std::string key_of(const Colours& colours, const std::string& function) {
  return fmt::format("<td class=\"name\"><span class=\"key\" style=\"background:{}\"></span>{}</td>",
                     colours.of(function), escaped(function));
}

// From when on the page tells.
struct Span {
  std::int64_t from_ms = 0, to_ms = 0;
  double seconds() const { return std::max(1.0, static_cast<double>(to_ms - from_ms) / 1000); }
};

Span span_of(const ScalingReport& report) {
  std::int64_t from = report.now_ms;
  for (const Json& entry : report.placements) {
    if (number(entry, "at_ms") > 0) from = std::min(from, static_cast<std::int64_t>(number(entry, "at_ms")));
  }
  for (const Json& function : report.functions) {
    for (const Json& second : list(function, "seconds")) {
      if (number(second, "at_s") > 0) from = std::min(from, 1000 * static_cast<std::int64_t>(number(second, "at_s")));
    }
  }
  return {from, std::max(report.now_ms, from + 1000)};
}

// ---- chosen, and at what cost

std::string chosen_row(const ScalingReport& report, const Json& function, const Colours& colours) {
  const std::string name = words(function, "function");
  const Json& totals = child(function, "totals");
  const auto profile = report.profiles.find(name);
  const double held = number(totals, "held_gpu_seconds"), bound = number(totals, "bound_gpu_seconds");
  const bool has_size = number(function, "quota_percent") > 0;
  std::string row = "<tr>" + key_of(colours, name);
  row += cell(fmt::format("{:.0f} ms", number(function, "objective_ms")));
  row += cell(profile == report.profiles.end() ? "nothing" : fmt::format("{} trials", profile->second.trials.size()));
  row += cell(has_size ? fmt::format("{:.0f} % x {:.0f} %", number(function, "width_percent"),
                                     number(function, "quota_percent"))
                       : "-");
  row += cell(
      has_size ? fmt::format("{:.1f}/s in {:.1f} ms", number(function, "rate_per_s"), number(function, "execution_ms"))
               : "-");
  row += cell(fmt::format("{:.0f}", number(totals, "arrived")));
  row += cell(percent_of(number(totals, "late"), number(totals, "answered")));
  row += cell(fmt::format("{:.1f}", held)) + cell(fmt::format("{:.1f}", bound));
  row += cell(bound > 0 ? fmt::format("{:.2f}", held / bound) : "-");
  const std::string lacking = words(function, "lacking");
  row += fmt::format("<td class=\"words\">{}</td></tr>\n",
                     escaped(lacking.empty() ? words(function, "state") : words(function, "state") + ": " + lacking));
  return row;
}

std::string chosen_table(const ScalingReport& report, const Span& span, const Colours& colours) {
  std::string rows;
  double arrived = 0, answered = 0, late = 0, held = 0, bound = 0;
  for (const Json& function : report.functions) {
    const Json& totals = child(function, "totals");
    rows += chosen_row(report, function, colours);
    arrived += number(totals, "arrived"), answered += number(totals, "answered"), late += number(totals, "late");
    held += number(totals, "held_gpu_seconds"), bound += number(totals, "bound_gpu_seconds");
  }
  rows += fmt::format(
      "<tr class=\"sum\"><td "
      "class=\"name\">all</td><td></td><td></td><td></td><td></td><td>{:.0f}</td><td>{}</td><td>{:.1f}</td><td>{:.1f}</"
      "td>"
      "<td>{}</td><td class=\"words\">{:.2f} GPUs held in the mean of {:.0f} s; {:.2f} are the bound</td></tr>\n",
      arrived, percent_of(late, answered), held, bound, bound > 0 ? fmt::format("{:.2f}", held / bound) : "-",
      held / span.seconds(), span.seconds(), bound / span.seconds());
  return "<table><tr><th class=\"name\">function</th><th>objective</th><th>measured</th><th>rectangle: SMs x "
         "time</th><th>one "
         "instance answers</th><th>requests</th><th>late</th><th>GPU-s held</th><th>fluid bound</th><th>held / "
         "bound</th><th class=\"words\">state</th></tr>\n" +
         rows + "</table>\n";
}

// ---- placed

using Moments = std::map<std::uint64_t, std::vector<GpuMoment>>;

// What each GPU held from each change on.
Moments moments_of(const Json& placements) {
  Moments moments;
  std::map<std::string, Json> now;  // the last entry of each function
  std::set<std::uint64_t> gpus;
  for (const Json& entry : placements) {
    for (const auto& [gpu, count] : child(entry, "seats").items()) gpus.insert(std::strtoull(gpu.c_str(), nullptr, 10));
  }
  for (const Json& entry : placements) {
    now[words(entry, "function")] = entry;
    for (const std::uint64_t gpu : gpus) {
      GpuMoment moment{.at_ms = static_cast<std::int64_t>(number(entry, "at_ms"))};
      for (const auto& [function, last] : now) {
        const double seats = number(child(last, "seats"), std::to_string(gpu).c_str());
        if (seats < 1) continue;
        moment.groups.push_back({.function = function,
                                 .width_percent = static_cast<int>(number(last, "width_percent")),
                                 .quota_percent = static_cast<int>(number(last, "quota_percent")),
                                 .seats = static_cast<std::size_t>(seats)});
      }
      std::vector<GpuMoment>& of_gpu = moments[gpu];
      if (!of_gpu.empty() && of_gpu.back().groups == moment.groups) continue;
      if (!of_gpu.empty() && of_gpu.back().at_ms == moment.at_ms) of_gpu.pop_back();  // of one decision
      of_gpu.push_back(std::move(moment));
    }
  }
  return moments;
}

std::string placed_part(const ScalingReport& report, const Span& span, const Colours& colours) {
  const Moments moments = moments_of(report.placements);
  if (moments.empty()) return "<p>Nothing has had a seat.</p>\n";
  std::string html;
  std::size_t drawn = 0;
  for (const auto& [gpu, of_gpu] : moments) {
    if (++drawn > kMostGpus)
      return html + fmt::format("<p>{} more GPUs are not drawn.</p>\n", moments.size() - kMostGpus);
    html += "<div class=\"gpu\">" +
            promised_chart(fmt::format("GPU {}: what is promised of its SMs x time", gpu), of_gpu, span.from_ms,
                           span.to_ms, colours) +
            "<div class=\"film\">";
    for (const std::size_t i : telling_moments(of_gpu, span.to_ms, kMostMoments)) {
      html += gpu_picture(fmt::format("at {:.1f} s", static_cast<double>(of_gpu[i].at_ms - span.from_ms) / 1000),
                          of_gpu[i].groups, colours, kPicture);
    }
    html += "</div></div>\n";
  }
  return html;
}

// ---- scaled

// A bar for each second, late ones dark; the line is what the seats can answer.
std::string load_chart(const Json& function, const Span& span, const std::string& colour) {
  double most = 1;
  const double each = number(function, "rate_per_s");
  for (const Json& one : list(function, "seconds")) {
    most = std::max({most, number(one, "arrived"), number(one, "seats") * each});
  }
  const std::vector<double> ticks = sim::round_ticks(most), times = sim::round_ticks(span.seconds());
  most = ticks.back();
  const double width = kChartWidth - kLeft - kRight, height = kChartHeight - kTop - kBottom;
  const auto x_of = [&](double at_s) {
    return kLeft + std::clamp((at_s - static_cast<double>(span.from_ms) / 1000) / span.seconds(), 0.0, 1.0) * width;
  };
  const auto y_of = [&](double rate) { return kTop + (1 - rate / most) * height; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"11\" fill=\"currentColor\"><title>Requests per second of {2}</title>\n",
      kChartWidth, kChartHeight, escaped(words(function, "function")));
  for (const double tick : ticks) {
    svg += fmt::format(
        "<text x=\"{0}\" y=\"{1:.1f}\" text-anchor=\"end\">{2}/s</text>\n<path d=\"M{3} {4:.1f}H{5}\" "
        "stroke=\"currentColor\" "
        "opacity=\"0.12\"/>\n",
        kLeft - 6, y_of(tick) + 4, sim::short_number(tick), kLeft, y_of(tick), kChartWidth - kRight);
  }
  std::string bars, late, line;
  for (const Json& one : list(function, "seconds")) {
    const double at = number(one, "at_s"), x = x_of(at), wide = std::max(0.6, x_of(at + 1) - x - 0.4);
    const double arrived = number(one, "arrived"), missed = number(one, "late"), can = number(one, "seats") * each;
    const auto bar = [&](double rate, const std::string& fill) {
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"><title>{:.0f} s: "
          "{:.0f} came, {:.0f} were late; {:.0f} seats, {:.0f} ready, {:.0f} parked</title></rect>\n",
          x, y_of(rate), wide, height + kTop - y_of(rate), fill, at - static_cast<double>(span.from_ms) / 1000, arrived,
          missed, number(one, "seats"), number(one, "ready"), number(one, "parked"));
    };
    if (arrived > 0) bars += bar(arrived, colour + "\" fill-opacity=\"0.55");
    if (missed > 0) late += bar(missed, "#c00000");
    line += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"currentColor\" stroke-width=\"1.5\"/>\n", x,
                        y_of(can), x_of(at + 1));
  }
  svg += bars + late + line;
  for (const double tick : times) {
    if (tick > span.seconds()) continue;
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{} s</text>\n",
                    x_of(tick + static_cast<double>(span.from_ms) / 1000), kChartHeight - 10, sim::short_number(tick));
  }
  return svg + "</svg>\n";
}

// What every decision rejected, sizes mostly: said once.
std::set<std::string> always_rejected(const Json& notes) {
  std::map<std::string, std::size_t> times;
  for (const Json& note : notes) {
    for (const Json& why : list(note, "rejected")) times[why.is_string() ? why.get<std::string>() : ""] += 1;
  }
  std::set<std::string> always;
  for (const auto& [why, count] : times) {
    if (!why.empty() && count >= kOften && 4 * count >= notes.size()) always.insert(why);
  }
  return always;
}

std::string note_item(const Json& note, const std::set<std::string>& said, const Span& span) {
  std::string html =
      fmt::format("<li><b>{:.1f} s</b> saw {}", (number(note, "at_ms") - static_cast<double>(span.from_ms)) / 1000,
                  escaped(words(note, "saw")));
  for (const Json& did : list(note, "did")) {
    if (did.is_string()) html += "<br><span class=\"did\">did</span> " + escaped(did.get<std::string>());
  }
  for (const Json& not_done : list(note, "rejected")) {
    if (!not_done.is_string() || said.contains(not_done.get<std::string>())) continue;
    html += "<br><span class=\"not\">rejected</span> " + escaped(not_done.get<std::string>());
  }
  return html + "</li>\n";
}

std::string notes_part(const Json& function, const Span& span) {
  const Json& notes = list(function, "notes");
  if (notes.empty()) return "<p>No decision yet.</p>\n";
  const std::set<std::string> said = always_rejected(notes);
  std::string html, open, folded;
  if (!said.empty()) {
    html += "<details><summary>Rejected again and again</summary><ul>";
    for (const std::string& why : said) html += "<li>" + escaped(why) + "</li>\n";
    html += "</ul></details>\n";
  }
  for (std::size_t i = 0; i < notes.size(); ++i) (i < kOpenNotes ? open : folded) += note_item(notes[i], said, span);
  html += "<ul>" + open + "</ul>\n";
  if (notes.size() > kOpenNotes) {
    html += fmt::format("<details><summary>{} earlier ones</summary><ul>{}</ul></details>\n", notes.size() - kOpenNotes,
                        folded);
  }
  return html;
}

std::string function_part(const ScalingReport& report, const Json& function, const Span& span, const Colours& colours) {
  const std::string name = words(function, "function");
  const auto profile = report.profiles.find(name);
  std::string html =
      fmt::format("<h3><span class=\"key\" style=\"background:{}\"></span>{}</h3>\n", colours.of(name), escaped(name));
  html += "<p>Bars: requests of each second, those that were late in red. Line: what the seats can answer.</p>\n" +
          load_chart(function, span, colours.of(name));
  html += "<div class=\"two\"><div>\n";
  if (profile == report.profiles.end()) {
    html += "<p>Nothing was measured of it.</p>\n";
  } else {
    const ChosenRectangle chosen{static_cast<int>(number(function, "width_percent")),
                                 static_cast<int>(number(function, "quota_percent"))};
    html += heat_map(profile->second, chosen) +
            fmt::format(
                "<p>Cells: what the model says. Dots: the {} trials, with +- {:.1f} % at the rectangle. Frame: the "
                "rectangle that was chosen. No more trials: {}.</p>\n",
                profile->second.trials.size(), 100 * profile->second.error, escaped(profile->second.ended));
  }
  html += "</div><div><h4>Decisions, the newest first</h4>\n" + notes_part(function, span) + "</div></div>\n";
  return html;
}

}  // namespace

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title>\n"
      "<style>:root {{ color-scheme: light dark }} body {{ font-family: sans-serif; margin: 2em auto; max-width: 76em; "
      "padding: 0 1em; line-height: 1.35 }} table {{ border-collapse: collapse; font-size: 14px }} td, th {{ padding: "
      "3px "
      "9px; text-align: right; border-bottom: 1px solid #8884; vertical-align: top; white-space: nowrap }} .name, "
      ".words {{ text-align: "
      "left }} "
      ".words {{ max-width: 24em; white-space: normal }} .sum {{ font-weight: bold }} .key {{ display: inline-block; "
      "width: .8em; height: "
      ".8em; "
      "margin-right: .5em }} .film {{ display: flex; flex-wrap: wrap; gap: 12px; margin: 0 0 18px 56px }} .two {{ "
      "display: "
      "flex; flex-wrap: wrap; gap: 24px }} .two > div {{ flex: 1 1 26em; min-width: 20em }} svg {{ max-width: 100%; "
      "height: auto; break-inside: avoid }} @media print {{ svg {{ print-color-adjust: exact }} }} "
      "ul {{ "
      "padding-left: 1.2em; font-size: 13px }} li {{ margin-bottom: .5em }} .did {{ color: #007a3d; font-weight: bold "
      "}} "
      ".not {{ color: #b04a00; font-weight: bold }} h2 {{ border-top: 1px solid #8888; padding-top: .6em }}</style>"
      "</head><body>\n<h1>{0}</h1>\n",
      escaped(title));
}

std::map<std::uint64_t, std::vector<SeatGroup>> seats_now(const Json& status, const Json& scaled) {
  std::map<std::string, const Json*> sizes;
  for (const Json& one : scaled) sizes[words(one, "function")] = &one;
  std::map<std::uint64_t, std::vector<SeatGroup>> now;
  for (const Json& gpu : list(status, "gpus")) now[static_cast<std::uint64_t>(number(gpu, "id"))];
  for (const Json& function : list(status, "functions")) {
    const Json& share = child(function, "share");
    SeatGroup group{.function = words(function, "name"),
                    .width_percent = static_cast<int>(number(share, "compute_percent")),
                    .quota_percent = static_cast<int>(number(share, "quota_request_percent"))};
    if (const auto size = sizes.find(group.function);
        size != sizes.end() && number(*size->second, "quota_percent") > 0) {
      group.width_percent = static_cast<int>(number(*size->second, "width_percent"));
      group.quota_percent = static_cast<int>(number(*size->second, "quota_percent"));
    }
    std::map<std::uint64_t, std::size_t> seats;
    for (const Json& gpu : list(share, "seats")) {
      if (gpu.is_number_unsigned()) ++seats[gpu.get<std::uint64_t>()];
    }
    for (const auto& [gpu, count] : seats) {
      group.seats = count;
      if (group.quota_percent > 0) now[gpu].push_back(group);
    }
  }
  return now;
}

std::string waiting_table(const Json& status, const Json& scaled) {
  std::map<std::string, std::string> lacks;
  for (const Json& one : scaled) {
    std::string why = words(one, "lacking");
    const Json& notes = list(one, "notes");
    if (why.empty() && !notes.empty()) {
      for (const Json& not_done : list(notes.front(), "rejected")) {
        if (not_done.is_string() && not_done.get_ref<const std::string&>().find("no GPU has room") != std::string::npos)
          why = not_done.get<std::string>();
      }
    }
    lacks[words(one, "function")] = why;
  }
  std::string rows;
  for (const Json& function : list(status, "functions")) {
    const std::string name = words(function, "name");
    const double queued = number(function, "queued");
    const Json &share = child(function, "share"), &instances = child(function, "instances");
    std::string what = words(share, "lacking");
    if (what.empty()) what = lacks[name];
    if (what.empty() && queued == 0) continue;
    if (what.empty() && number(instances, "starting") > 0) {
      what = fmt::format("{:.0f} instances that start", number(instances, "starting"));
    } else if (what.empty()) {
      what = number(instances, "busy") > 0 ? "its own instances, which are all busy, or its turn in a slot"
                                           : "its turn in a slot";
    }
    rows += "<tr><td class=\"name\">" + escaped(name) + "</td>" + cell(fmt::format("{:.0f}", queued)) +
            "<td class=\"words\">" + escaped(what) + "</td></tr>\n";
  }
  if (rows.empty()) return "";
  return "<table><tr><th class=\"name\">function</th><th>calls that wait</th><th class=\"words\">for what</th></tr>\n" +
         rows + "</table>\n";
}

std::string scaling_page(const ScalingReport& report) {
  const Span span = span_of(report);
  std::vector<std::string> names;
  for (const Json& function : report.functions) names.push_back(words(function, "function"));
  for (const Json& function : list(report.status, "functions")) names.push_back(words(function, "name"));
  const Colours colours(names);
  std::string html = page_head("What was measured, chosen, placed, moved and scaled");
  html += fmt::format("<p>fairlead {}, from {} (0 s) to {} ({:.0f} s).</p>\n", escaped(words(report.status, "version")),
                      format_time(span.from_ms), format_time(span.to_ms), span.seconds());
  html += "<h2>Chosen, and at what cost</h2>\n" + chosen_table(report, span, colours) +
          "<p>Late: answered later than the objective, or failed. Held: SMs x time that was promised, times how long. "
          "Fluid "
          "bound: every request at the least area that meets its objective, with no queue and no rest of an instance; "
          "held / "
          "bound is what the promise cost over that.</p>\n";
  html +=
      "<h2>Placed and moved</h2>\n<p>Across: SMs. Up: time. Side by side is what runs at the same time; white is "
      "free.</p>\n" +
      placed_part(report, span, colours);
  const std::string waiting = waiting_table(report.status, report.functions);
  html += "<h2>Who waits for what</h2>\n" + (waiting.empty() ? "<p>Nobody, now.</p>\n" : waiting);
  html += "<h2>Measured and scaled</h2>\n";
  for (const Json& function : report.functions) html += function_part(report, function, span, colours);
  return html + "</body></html>\n";
}

}  // namespace fairlead::cli
