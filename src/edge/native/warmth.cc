#include "edge/native/warmth.h"

#include <algorithm>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"

namespace fairlead {

using nlohmann::json;

namespace {

json hold_json(const HoldView& hold, Instant now) {
  json one{{"id", hold.instance.value()}, {"pinned", pin_name(hold.held)}, {"over_pin_bound", hold.over_bound}};
  if (hold.kept_until) one["kept_seconds"] = std::max(0.0, to_seconds(*hold.kept_until - now));
  return one;
}

}  // namespace

Edge warmth_edge(std::function<std::vector<HoldView>()> holds, std::function<Instant()> now) {
  Edge edge{.name = "warmth", .prefixes = {"/fairlead/v1/warmth"}, .errors = document_errors()};
  edge.routes.add(
      "GET", "/fairlead/v1/warmth",
      [holds = std::move(holds), now = std::move(now)](RouteCall call) {
        json list = json::array();
        for (const HoldView& hold : holds()) list.push_back(hold_json(hold, now()));
        respond_json(std::move(call.exchange), 200, {{"instances", std::move(list)}});
      },
      Permission::kReadNode);
  return edge;
}

}  // namespace fairlead
