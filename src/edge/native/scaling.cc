#include "edge/native/scaling.h"

#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/query.h"
#include "model/tenant.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr double kMaxTrialSeconds = 600;

json trials_json(const std::vector<MeasuredTrial>& trials) {
  FunctionProfile carrier;
  carrier.trials = trials;
  return json::parse(to_json(carrier)).at("trials");
}

json experiment_json(const std::optional<ExperimentStatus>& experiment) {
  if (!experiment) return nullptr;
  return {{"running", experiment->is_running}, {"state", experiment->state},
          {"doing", experiment->doing},        {"failed", experiment->failed},
          {"calls", experiment->calls},        {"trials", trials_json(experiment->trials)}};
}

// As profiles have them.
json components_json(const std::vector<ComponentTime>& components) {
  FunctionProfile profile;
  profile.components = components;
  return json::parse(to_json(profile)).at("components");
}

json totals_json(const LedgerTotals& totals) {
  return {{"since_ms", totals.since_ms}, {"arrived", totals.arrived},         {"answered", totals.answered},
          {"late", totals.late},         {"held_gpu_seconds", totals.held_s}, {"bound_gpu_seconds", totals.bound_s}};
}

json seconds_json(const std::vector<LedgerSecond>& seconds) {
  json list = json::array();
  for (const LedgerSecond& one : seconds) {
    list.push_back({{"at_s", one.at_s},
                    {"arrived", one.arrived},
                    {"answered", one.answered},
                    {"late", one.late},
                    {"seats", one.seats},
                    {"ready", one.ready},
                    {"parked", one.parked}});
  }
  return list;
}

json placement_json(const PlacementEntry& entry) {
  json seats = json::object();
  for (const auto& [gpu, count] : entry.seats) seats[std::to_string(gpu.value())] = count;
  return {{"at_ms", entry.at_ms},
          {"function", entry.function},
          {"width_percent", entry.width_percent},
          {"quota_percent", entry.quota_percent},
          {"seats", std::move(seats)}};
}

json scaling_json(const ScalingStatus& status) {
  json notes = json::array();
  for (const ScalingNote& note : status.notes) {
    notes.push_back({{"at_ms", note.at_ms},
                     {"saw", note.saw},
                     {"did", note.did},
                     {"rejected", note.rejected},
                     {"repeats", note.repeats}});
  }
  return {{"function", status.function},
          {"state", status.state},
          {"lacking", status.lacking},
          {"width_percent", status.width_percent},
          {"quota_percent", status.quota_percent},
          {"rate_per_s", status.rate_per_s},
          {"execution_ms", status.execution_ms},
          {"seats", status.seats},
          {"ready", status.ready},
          {"parked", status.parked},
          {"starting", status.starting},
          {"gpus", status.gpus},
          {"gpus_per_instance", status.gpus_per_instance},
          {"objective_ms", status.objective_ms},
          {"totals", totals_json(status.totals)},
          {"seconds", seconds_json(status.seconds)},
          {"notes", std::move(notes)}};
}

// The function that the path names, if the caller's.
Result<std::string> seen_function(NodeService& node, const RouteCall& call) {
  auto name = function_from(call);
  if (!name) return name;
  if (Status seen = check_seen(node, call.principal, *name); !seen) return fail(seen.error());
  return name;
}

void start(NodeService& node, RouteCall call) {
  auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  const auto seconds = query_number<double>(call.target, "trial-seconds", 0, 0, kMaxTrialSeconds);
  if (!seconds) return respond_error(std::move(call.exchange), seconds.error());
  Status started = node.scaling().start_profile({.function = *name,
                                                 .payload = std::string(call.exchange.request().body()),
                                                 .is_generated = has_query(call.target, "generated"),
                                                 .is_grid = has_query(call.target, "grid"),
                                                 .trial_seconds = *seconds,
                                                 .is_alone = has_query(call.target, "alone")});
  if (!started) return respond_error(std::move(call.exchange), started.error());
  respond_json(std::move(call.exchange), 202, {{"function", *name}});
}

void show(NodeService& node, RouteCall call) {
  const auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  const auto known = node.scaling().profile(*name);
  if (!known) return respond_error(std::move(call.exchange), known.error());
  json profiles = json::array();
  for (const FunctionProfile& profile : known->profiles) profiles.push_back(json::parse(to_json(profile)));
  json answer = {{"profiles", std::move(profiles)}, {"experiment", experiment_json(known->experiment)}};
  if (!known->components.empty()) answer["components"] = components_json(known->components);
  respond_json(std::move(call.exchange), 200, answer);
}

void pipeline(NodeService& node, RouteCall call) {
  const auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  const auto known = node.scaling().pipeline(*name);
  if (!known) return respond_error(std::move(call.exchange), known.error());
  respond_json(std::move(call.exchange), 200, json::parse(*known));
}

void import(NodeService& node, RouteCall call) {
  const auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  auto profile = profile_from_json(call.exchange.request().body());
  if (!profile) return respond_error(std::move(call.exchange), profile.error());
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.scaling().import_profile(*name, *std::move(profile), [answer](Result<FunctionProfile> kept) {
    if (!kept) return respond_error(std::move(*answer), kept.error());
    respond_json(std::move(*answer), 200, json::parse(to_json(*kept)));
  });
}

void stop(NodeService& node, RouteCall call) {
  const auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  if (Status stopped = node.scaling().stop_profile(*name); !stopped) {
    return respond_error(std::move(call.exchange), stopped.error());
  }
  respond_json(std::move(call.exchange), 200, {{"function", *name}});
}

void scaling(NodeService& node, RouteCall call) {
  const auto name = seen_function(node, call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  const auto status = node.scaling().scaling(*name);
  if (!status) return respond_error(std::move(call.exchange), status.error());
  respond_json(std::move(call.exchange), 200, scaling_json(*status));
}

// Those of the caller's tenant.
void all_scaling(NodeService& node, RouteCall call) {
  json list = json::array();
  for (const ScalingStatus& status : node.scaling().all_scaling()) {
    if (check_seen(node, call.principal, status.function)) list.push_back(scaling_json(status));
  }
  json placements = json::array();
  for (const PlacementEntry& entry : node.scaling().placements()) {
    if (check_seen(node, call.principal, entry.function)) placements.push_back(placement_json(entry));
  }
  respond_json(std::move(call.exchange), 200, {{"functions", std::move(list)}, {"placements", std::move(placements)}});
}

}  // namespace

void add_scaling_routes(Routes& routes, NodeService& node) {
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern,
                       void (*handle)(NodeService&, RouteCall)) {
    routes.add(
        method, pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  constexpr std::string_view kProfile = "/fairlead/v1/functions/{function}/profile";
  add(Permission::kRead, "GET", kProfile, show);
  add(Permission::kDeploy, "POST", kProfile, start);
  add(Permission::kDeploy, "PUT", kProfile, import);
  add(Permission::kDeploy, "DELETE", kProfile, stop);
  add(Permission::kRead, "GET", "/fairlead/v1/functions/{function}/scaling", scaling);
  add(Permission::kRead, "GET", "/fairlead/v1/functions/{function}/pipeline", pipeline);
  add(Permission::kRead, "GET", "/fairlead/v1/scaling", all_scaling);
}

}  // namespace fairlead
