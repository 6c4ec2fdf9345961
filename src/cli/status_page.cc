#include "cli/status_page.h"

#include <fmt/format.h>

#include "cli/scaling_page.h"
#include "cli/status_text.h"
#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

constexpr double kPicture = 240;  // pixels

}  // namespace

std::string status_page(const Json& status, const Json& scaled) {
  const auto seats = seats_now(status, scaled);
  std::vector<std::string> names;
  for (const auto& [gpu, groups] : seats) {
    for (const SeatGroup& group : groups) names.push_back(group.function);
  }
  const Colours colours(names);
  std::string html = page_head("GPUs, and what is promised of them");
  html += "<pre>" + sim::escaped(gpus_text(status)) +
          "</pre>\n<p>Across: SMs. Up: time. Side by side is what runs at the "
          "same time; white is free, for best effort.</p>\n<p>";
  for (const std::string& name : colours.functions()) {
    html += fmt::format("<span class=\"key\" style=\"background:{}\"></span>{} &nbsp; ", colours.of(name),
                        sim::escaped(name));
  }
  html += "</p>\n<div class=\"film\">";
  for (const auto& [gpu, groups] : seats) html += gpu_picture(fmt::format("GPU {}", gpu), groups, colours, kPicture);
  const std::string waiting = waiting_table(status, scaled);
  html += "</div>\n<h2>Who waits for what</h2>\n" + (waiting.empty() ? "<p>Nobody, now.</p>\n" : waiting);
  return html + "</body></html>\n";
}

}  // namespace fairlead::cli
