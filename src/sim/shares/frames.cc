#include "sim/shares/frames.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/svg_chart.h"

namespace fairlead::sim {
namespace {

constexpr int kPlaces = 1, kKernels = 2;  // processes of the trace

std::string name_of(const ShareClient& client, std::size_t index) {
  const std::string name = client.name.empty() ? fmt::format("client {}", index + 1) : client.name;
  return fmt::format("{}, {} % of {} %", name, client.share.request_percent, client.share.width_percent);
}

std::string words_of(const SharesSpan& span) {
  return fmt::format("{} of {:.3f} ms from {:.3f} ms", span.is_place ? "place" : "kernel", to_ms(span.end - span.begin),
                     to_ms(span.begin));
}

}  // namespace

std::string frames_svg(const std::vector<ShareClient>& clients, const SharesResult& result) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    rows.push_back(name_of(clients[i], i));
    rows.emplace_back("kernels");
  }
  std::vector<Block> blocks;
  for (const SharesSpan& span : result.spans) {
    blocks.push_back({.row = 2 * span.client + (span.is_place ? 0 : 1),
                      .colour = span.client,
                      .begin = to_seconds(span.begin),
                      .end = to_seconds(span.end),
                      .marked = span.is_place,
                      .label = words_of(span)});
  }
  return timeline_chart("Places of a device, and the kernels in them", rows, blocks);
}

std::string frames_trace(const std::vector<ShareClient>& clients, const SharesResult& result) {
  nlohmann::json events = nlohmann::json::array();
  const auto name = [&](int process, const char* what, std::size_t thread, const std::string& text) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", text}}}});
  };
  for (const int process : {kPlaces, kKernels}) {
    name(process, "process_name", 0, process == kPlaces ? "places" : "kernels");
    for (std::size_t i = 0; i < clients.size(); ++i) name(process, "thread_name", i + 1, name_of(clients[i], i));
  }
  for (const SharesSpan& span : result.spans) {
    events.push_back({{"ph", "X"},
                      {"name", span.is_place ? "place" : "kernel"},
                      {"pid", span.is_place ? kPlaces : kKernels},
                      {"tid", span.client + 1},
                      {"ts", to_seconds(span.begin) * 1e6},
                      {"dur", to_seconds(span.end - span.begin) * 1e6}});
  }
  return nlohmann::json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace fairlead::sim
