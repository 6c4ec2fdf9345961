#include "edge/console/live_items.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "edge/console/waiting.h"
#include "edge/json_body.h"
#include "model/invocation.h"

namespace fairlead {

using nlohmann::json;

namespace {

// Enough to tell functions apart by eye, and 1000 of them fit a frame.
double rounded(Duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) / 1e3;
}

std::string_view state_name(InstanceState state) {
  switch (state) {
    case InstanceState::kStarting: return "starting";
    case InstanceState::kIdle: return "idle";
    case InstanceState::kBusy: return "busy";
  }
  return "?";
}

// Those that wait, run, or were called most, in this order.
std::vector<const FunctionStatus*> shown_functions(const NodeStatus& status, const std::optional<std::string>& tenant) {
  std::vector<const FunctionStatus*> all;
  for (const FunctionStatus& function : status.functions) {
    if (!tenant || function.settings.tenant == *tenant) all.push_back(&function);
  }
  if (all.size() <= kMostShownFunctions) return all;
  const auto has_more_to_do = [](const FunctionStatus* a, const FunctionStatus* b) {
    const auto rank = [](const FunctionStatus& of) {
      return std::tuple(of.flow.queued, of.flow.in_flight, of.stats.invocations);
    };
    return rank(*a) > rank(*b);
  };
  const auto end = all.begin() + kMostShownFunctions;
  std::partial_sort(all.begin(), end, all.end(), has_more_to_do);
  all.resize(kMostShownFunctions);
  return all;
}

json stats_json(const FunctionStats& stats) {
  return {{"calls", stats.invocations},
          {"errors", stats.errors},
          {"timeouts", stats.timeouts},
          {"crashes", stats.crashes},
          {"cold", stats.cold_starts},
          {"host_warm", stats.host_warm_starts},
          {"warm", stats.device_warm_starts},
          {"gpu_s", rounded(stats.service)},
          {"queue_s", rounded(stats.queue_time)},
          {"durations", stats.duration_histogram}};
}

json function_json(const LiveSource& source, const FunctionStatus& function, bool is_for_all) {
  const bool waits = function.flow.queued > 0;
  WaitingReason why = why_it_waits(source.status, function, waits ? source.reserved(function.name) : std::nullopt);
  if (!is_for_all && !why.text.empty() && !why.is_own) why.text = "others are before it";
  json fields{{"name", function.name},
              {"tenant", function.settings.tenant},
              {"queued", function.flow.queued},
              {"in_flight", function.flow.in_flight},
              {"why", why.text},
              {"idle", function.instances_idle},
              {"busy", function.instances_busy},
              {"starting", function.instances_starting},
              {"memory", function.memory.resident.count()},
              {"away", function.memory.away.count()},
              {"stats", stats_json(function.stats)}};
  if (!is_for_all) return fields;
  fields["state"] = flow_state_name(function.flow.state);
  fields["weight"] = function.settings.weight;
  fields["vt_s"] = rounded(function.flow.virtual_time);
  fields["tau_s"] = rounded(function.flow.service_estimate);
  return fields;
}

json gpu_json(const GpuStatus& gpu) {
  return {{"id", gpu.view.gpu.value()},
          {"name", gpu.device.name},
          {"slice", gpu.device.slice ? json(gpu.device.slice->profile) : json()},
          {"state", gpu.state},
          {"reason", gpu.reason},
          {"slots", gpu.view.slots},
          {"used", gpu.view.slots_in_use},
          {"instances", gpu.view.instances},
          {"memory", gpu.device.memory.count()},
          {"memory_used", gpu.memory_used.count()},
          {"memory_unreported", gpu.view.memory_unreported.count()},
          {"utilisation", gpu.utilisation}};
}

json tenant_json(const TenantStatus& tenant) {
  return {{"name", tenant.name},
          {"weight", tenant.share.weight},
          {"limit", tenant.share.max_concurrency ? json(*tenant.share.max_concurrency) : json()},
          {"functions", tenant.functions},
          {"queued", tenant.queued},
          {"in_flight", tenant.in_flight},
          {"gpu_s", rounded(tenant.service)}};
}

json counters_json(const CoreCounters& counters) {
  return {{"arrived", counters.arrived},          {"rejected", counters.rejected},
          {"completed", counters.completed},      {"failed", counters.failed},
          {"cold", counters.cold_starts},         {"host_warm", counters.host_warm_starts},
          {"warm", counters.device_warm_starts},  {"evictions", counters.evictions},
          {"swap_ins", counters.memory.swap_ins}, {"swap_outs", counters.memory.swap_outs}};
}

json node_json(const NodeStatus& status, std::size_t shown) {
  return {{"version", status.version},
          {"policy", status.policy},
          {"sharing", status.sharing},
          {"memory_policy", status.memory_policy},
          {"uptime_s", std::chrono::duration_cast<std::chrono::seconds>(status.uptime).count()},
          {"gvt_s", rounded(status.global_virtual_time)},
          {"over_run_s", rounded(status.settings.over_run)},
          {"draining", status.draining},
          {"queued", status.queued},
          {"queue_limit", status.settings.core.queue_limit},
          {"obstacle", status.spawner_obstacle},
          {"functions", status.functions.size()},
          {"shown", shown},
          {"buckets_s", kDurationBucketsSeconds},
          {"counters", counters_json(status.counters)},
          {"events",
           {{"waiting", status.events.waiting},
            {"running", status.events.running},
            {"dead_letters", status.events.dead_letters}}}};
}

void add_instances(const LiveSource& source, LiveView::Items& items) {
  std::map<FlowId, std::string_view> names;
  for (const FunctionStatus& function : source.status.functions) names[function.flow.flow] = function.name;
  std::size_t left = kMostShownInstances;
  for (const InstanceView& instance : source.status.instances) {
    if (left-- == 0) return;
    const auto name = names.find(instance.flow);
    json fields{{"id", instance.instance.value()},
                {"function", name == names.end() ? std::string_view() : name->second},
                {"gpu", instance.gpu.value()},
                {"state", state_name(instance.state)}};
    if (instance.memory) {
      fields["memory"] = instance.memory->resident.count();
      fields["away"] = instance.memory->away.count();
    }
    items["inst/" + std::to_string(instance.instance.value())] = to_text(fields);
  }
}

}  // namespace

LiveView::Items live_items(const LiveSource& source, const std::optional<std::string>& tenant) {
  LiveView::Items items;
  const NodeStatus& status = source.status;
  const std::vector<const FunctionStatus*> shown = shown_functions(status, tenant);
  for (const FunctionStatus* function : shown) {
    items["fn/" + function->name] = to_text(function_json(source, *function, !tenant));
  }
  if (tenant) {
    const auto of_tenant = std::count_if(status.functions.begin(), status.functions.end(),
                                         [&](const FunctionStatus& one) { return one.settings.tenant == *tenant; });
    items["node"] = to_text({{"version", status.version},
                             {"draining", status.draining},
                             {"tenant", *tenant},
                             {"functions", of_tenant},
                             {"shown", shown.size()},
                             {"buckets_s", kDurationBucketsSeconds}});
    return items;
  }
  items["node"] = to_text(node_json(status, shown.size()));
  for (const GpuStatus& gpu : status.gpus)
    items["gpu/" + std::to_string(gpu.view.gpu.value())] = to_text(gpu_json(gpu));
  for (const TenantStatus& one : status.tenants) items["tenant/" + one.name] = to_text(tenant_json(one));
  add_instances(source, items);
  return items;
}

}  // namespace fairlead
