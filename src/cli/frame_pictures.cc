#include "cli/frame_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "cli/table.h"
#include "sim/svg_chart.h"

namespace fairlead::cli {
namespace {

struct Place {
  std::uint64_t instance = 0;
  int width_percent = 0;
  std::int64_t begin_us = 0, end_us = 0;  // since the first
  bool is_revoked = false;
};

// One device's, of whoever is there or was.
struct Frames {
  std::uint64_t gpu = 0;
  std::int64_t length_us = 0;  // from the first place's begin to the last one's end
  std::vector<Place> places;
  std::map<std::uint64_t, Json> instances;  // what is known of each; of those that are gone nothing
};

// How long ago the first of its places began.
std::int64_t first_us_ago(const Json& gpu) {
  std::int64_t first = 0;
  for (const Json& one : gpu.value("places", Json::array())) {
    first = std::max(first, one.value("begin_us_ago", std::int64_t{0}));
  }
  return first;
}

// Times count from `first_ago`.
Frames frames_of(const Json& gpu, std::int64_t first_ago) {
  Frames frames{.gpu = gpu.value("gpu", std::uint64_t{0}), .places = {}, .instances = {}};
  for (const Json& one : gpu.value("instances", Json::array())) {
    frames.instances[one.value("id", std::uint64_t{0})] = one;
  }
  for (const Json& one : gpu.value("places", Json::array())) {
    Place place{.instance = one.value("id", std::uint64_t{0}),
                .width_percent = one.value("compute_percent", 0),
                .begin_us = first_ago - one.value("begin_us_ago", std::int64_t{0}),
                .end_us = first_ago - one.value("end_us_ago", std::int64_t{0}),
                .is_revoked = one.value("revoked", false)};
    place.end_us = std::max(place.begin_us, place.end_us);
    frames.length_us = std::max(frames.length_us, place.end_us);
    frames.instances.try_emplace(place.instance, Json::object());
    frames.places.push_back(place);
  }
  return frames;
}

std::string name_of(const Json& instance, std::uint64_t id) {
  const std::string function = instance.value("function", "");
  return fmt::format("{} ({})", function.empty() ? "gone" : function, id);
}

std::string row_name(const Json& instance, std::uint64_t id) {
  if (instance.empty()) return name_of(instance, id);
  return fmt::format("{}, {} % of {} %", name_of(instance, id), instance.value("quota_request", 0),
                     instance.value("compute_percent", 0));
}

double ms(std::int64_t us) {
  return static_cast<double>(us) / 1000;
}

std::string percent(const Json& instance, const char* name) {
  return instance.empty() ? "-" : fmt::format("{} %", instance.value(name, 0));
}

std::string table_of(const Frames& frames) {
  using Align = Table::Align;
  Table table({{"FUNCTION", Align::kLeft},
               {"SMS", Align::kRight},
               {"REQUEST", Align::kRight},
               {"LIMIT", Align::kRight},
               {"STATE", Align::kLeft},
               {"PLACES", Align::kRight},
               {"HELD", Align::kRight},
               {"LONGEST", Align::kRight},
               {"REVOKED", Align::kRight}});
  for (const auto& [id, instance] : frames.instances) {
    std::int64_t held = 0, longest = 0;
    std::size_t count = 0, revoked = 0;
    for (const Place& place : frames.places) {
      if (place.instance != id) continue;
      held += place.end_us - place.begin_us;
      longest = std::max(longest, place.end_us - place.begin_us);
      ++count;
      revoked += place.is_revoked ? 1 : 0;
    }
    const double part =
        frames.length_us > 0 ? 100.0 * static_cast<double>(held) / static_cast<double>(frames.length_us) : 0;
    table.add_row({name_of(instance, id), percent(instance, "compute_percent"), percent(instance, "quota_request"),
                   percent(instance, "quota_limit"), instance.value("state", "gone"), fmt::format("{}", count),
                   fmt::format("{:.1f} %", part), fmt::format("{:.1f} ms", ms(longest)), fmt::format("{}", revoked)});
  }
  return table.text();
}

}  // namespace

std::string frames_text(const Json& gpus) {
  std::string text;
  for (const Json& gpu : gpus) {
    const Frames frames = frames_of(gpu, first_us_ago(gpu));
    text += fmt::format("{}GPU {}: {} places in {:.1f} ms, frames of {:.1f} ms, {}, {} decisions late\n",
                        text.empty() ? "" : "\n", frames.gpu, frames.places.size(), ms(frames.length_us),
                        ms(gpu.value("frame_us", std::int64_t{0})),
                        gpu.value("realtime", false) ? "real-time priority" : "no real-time priority",
                        gpu.value("late", std::uint64_t{0}));
    text += table_of(frames);
  }
  return text.empty() ? "no device has frames: nobody on one has a quota\n" : text;
}

std::string frames_svg(const Json& gpu) {
  const Frames frames = frames_of(gpu, first_us_ago(gpu));
  std::vector<std::string> rows;
  std::map<std::uint64_t, std::size_t> row_of;
  for (const auto& [id, instance] : frames.instances) {
    row_of[id] = rows.size();
    rows.push_back(row_name(instance, id));
  }
  std::vector<sim::Block> blocks;
  for (const Place& place : frames.places) {
    const std::size_t row = row_of.at(place.instance);
    blocks.push_back({.row = row,
                      .colour = row,
                      .begin = ms(place.begin_us) / 1000,
                      .end = ms(place.end_us) / 1000,
                      .marked = place.is_revoked,
                      .label = fmt::format("{} % of the SMs for {:.3f} ms from {:.3f} ms{}", place.width_percent,
                                           ms(place.end_us - place.begin_us), ms(place.begin_us),
                                           place.is_revoked ? ", revoked" : "")});
  }
  return sim::timeline_chart(fmt::format("Places on GPU {}", frames.gpu), rows, blocks, {}, "revoked");
}

std::string frames_trace(const Json& gpus) {
  Json events = Json::array();
  std::int64_t first_ago = 0;  // of all devices, so that what was at one time stands below each other
  for (const Json& gpu : gpus) first_ago = std::max(first_ago, first_us_ago(gpu));
  for (const Json& gpu : gpus) {
    const Frames frames = frames_of(gpu, first_ago);
    const auto name = [&](const char* what, std::uint64_t thread, const std::string& text) {
      events.push_back({{"ph", "M"}, {"name", what}, {"pid", frames.gpu}, {"tid", thread}, {"args", {{"name", text}}}});
    };
    name("process_name", 0, fmt::format("GPU {}", frames.gpu));
    for (const auto& [id, instance] : frames.instances) name("thread_name", id, row_name(instance, id));
    for (const Place& place : frames.places) {
      events.push_back({{"ph", "X"},
                        {"name", place.is_revoked ? "place, revoked" : "place"},
                        {"pid", frames.gpu},
                        {"tid", place.instance},
                        {"ts", place.begin_us},
                        {"dur", place.end_us - place.begin_us},
                        {"args", {{"compute_percent", place.width_percent}}}});
    }
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace fairlead::cli
