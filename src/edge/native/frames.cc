#include "edge/native/frames.h"

#include <chrono>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"

namespace fairlead {

using nlohmann::json;

namespace {

std::int64_t us(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

json instance_json(const PacedInstance& instance) {
  return {{"id", instance.instance.value()},           {"function", instance.function},
          {"compute_percent", instance.width_percent}, {"quota_request", instance.request_percent},
          {"quota_limit", instance.limit_percent},     {"state", instance.state}};
}

// Before the answer; what is after it, as the end of a place that was given back early, is negative.
json place_json(const HeldPlace& place) {
  return {{"id", place.instance.value()},    {"compute_percent", place.width_percent},
          {"begin_us_ago", us(place.begin)}, {"until_us_ago", us(place.until)},
          {"end_us_ago", us(place.end)},     {"revoked", place.is_revoked}};
}

json device_json(const PacedDevice& device) {
  json instances = json::array(), places = json::array();
  for (const PacedInstance& instance : device.instances) instances.push_back(instance_json(instance));
  for (const HeldPlace& place : device.places) places.push_back(place_json(place));
  return {{"gpu", device.gpu.value()}, {"frame_us", us(device.frame)},      {"realtime", device.is_realtime},
          {"late", device.late},       {"instances", std::move(instances)}, {"places", std::move(places)}};
}

}  // namespace

Edge frames_edge(std::function<std::vector<PacedDevice>()> devices) {
  Edge edge{.name = "frames", .prefixes = {"/fairlead/v1/frames"}, .errors = document_errors()};
  edge.routes.add(
      "GET", "/fairlead/v1/frames",
      [devices = std::move(devices)](RouteCall call) {
        json list = json::array();
        for (const PacedDevice& device : devices()) list.push_back(device_json(device));
        respond_json(std::move(call.exchange), 200, {{"gpus", std::move(list)}});
      },
      Permission::kReadNode);
  return edge;
}

}  // namespace fairlead
