#include "edge/native/requests.h"

#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "model/version.h"

namespace fairlead {

using nlohmann::json;

namespace {

json times_json(const RequestTrace& trace) {
  json times{{"total_seconds", to_seconds(trace.queue + trace.starting + trace.run)},
             {"queue_seconds", to_seconds(trace.queue)},
             {"start_seconds", to_seconds(trace.starting)},
             {"run_seconds", to_seconds(trace.run)},
             {"gpu_seconds", to_seconds(trace.gpu_time)},
             {"memory_seconds", to_seconds(trace.memory)},
             {"instance_start_seconds", to_seconds(trace.instance_start)}};
  if (trace.first_byte) times["first_byte_seconds"] = to_seconds(*trace.first_byte);
  return times;
}

json ahead_json(const AheadOf& of) {
  return {{"ran", of.ran}, {"chosen", of.chosen}, {"gpu_seconds", to_seconds(of.gpu_time)}};
}

// Of tenants that are not the caller's to see: all in one, without a name.
json ahead_json(const RequestTrace& trace, const Principal& who) {
  json seen = json::array();
  AheadOf others;
  for (const AheadOf& of : trace.ahead) {
    if (who.sees(of.tenant)) {
      seen.push_back(ahead_json(of));
      seen.back()["function"] = of.function;
      seen.back()["tenant"] = of.tenant;
      continue;
    }
    others.ran += of.ran;
    others.chosen += of.chosen;
    others.gpu_time += of.gpu_time;
  }
  if (others.ran + others.chosen > 0) seen.push_back(ahead_json(others));
  return seen;
}

json trace_json(const RequestTrace& trace, const Principal& who) {
  json body{{"request_id", trace.request_id},
            {"function", trace.function},
            {"tenant", trace.tenant},
            {"version", version_name(trace.version)},
            {"outcome", outcome_name(trace.outcome)},
            {"failure", trace.failure},
            {"accepted_ms", trace.accepted_ms},
            {"gpu", trace.gpu.value()},
            {"times", times_json(trace)},
            {"ahead", ahead_json(trace, who)},
            {"ahead_is_whole", trace.is_ahead_whole}};
  if (trace.gpu) body["start"] = start_kind_name(trace.start);
  return body;
}

}  // namespace

void add_request_routes(Routes& routes, NodeService& node) {
  routes.add(
      "GET", "/fairlead/v1/requests/{id}",
      [&node](RouteCall call) {
        const std::string id = call.parameter("id");
        const Principal who = call.principal;
        auto trace = node.requests().trace(id);
        // That there is one of another tenant is nobody's to know: the same words.
        if (trace && !who.sees(trace->tenant)) trace = node.requests().trace("");
        if (!trace) return respond_error(std::move(call.exchange), trace.error());
        respond_json(std::move(call.exchange), 200, trace_json(*trace, who));
      },
      Permission::kRead);
}

}  // namespace fairlead
