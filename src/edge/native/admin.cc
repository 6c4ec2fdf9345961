#include "edge/native/admin.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "edge/error_document.h"
#include "edge/function_in_path.h"
#include "edge/json_body.h"
#include "edge/kept_text.h"

namespace fairlead {

using nlohmann::json;

namespace {

const std::string kOneOffRequest = "(one-off request)";  // in the place of a name that it does not have
constexpr std::size_t kDefaultTailBytes = 64 << 10;
constexpr std::size_t kMaxTailBytes = 8 << 20;

Result<std::size_t> count_parameter(const RouteCall& call, std::string_view name, std::size_t absent,
                                    std::size_t most) {
  const std::string_view text = call.target.query_value(name);
  if (text.empty()) return absent;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most) return value;
  return fail(Errc::kInvalidArgument, "{} is '{}'; it must be between 1 and {}", name, text, most);
}

std::string_view instance_state_name(InstanceState state) {
  switch (state) {
    case InstanceState::kStarting: return "starting";
    case InstanceState::kIdle: return "idle";
    case InstanceState::kBusy: return "busy";
  }
  return "unknown";
}

json memory_json(const MemoryUse& use) {
  return {{"held_bytes", use.held.count()},
          {"resident_bytes", use.resident.count()},
          {"away_bytes", use.away.count()},
          {"fixed_bytes", use.fixed.count()}};
}

json memory_counters_json(const MemoryCounters& memory) {
  return {{"swap_ins", memory.swap_ins},
          {"swap_outs", memory.swap_outs},
          {"swap_failures", memory.swap_failures},
          {"bytes_in", memory.bytes_in},
          {"bytes_out", memory.bytes_out},
          {"bytes_asked_out", memory.bytes_asked_out},
          {"prefetches_in_time", memory.prefetches_in_time},
          {"prefetches_late", memory.prefetches_late},
          {"room_granted", memory.room_granted},
          {"room_refused", memory.room_refused},
          {"starts_gave_way", memory.starts_gave_way},
          {"swap_outs_in_vain", memory.swap_outs_in_vain}};
}

json idle_slots_json(const IdleSeconds& seconds) {
  json by_reason = json::object();
  for (std::size_t i = 0; i < kIdleReasons; ++i) {
    by_reason[std::string(idle_reason_name(static_cast<IdleReason>(i)))] = to_seconds(seconds[i]);
  }
  return by_reason;
}

json counters_json(const CoreCounters& counters) {
  return {{"arrived", counters.arrived},
          {"completed", counters.completed},
          {"failed", counters.failed},
          {"cold_starts", counters.cold_starts},
          {"device_warm_starts", counters.device_warm_starts},
          {"host_warm_starts", counters.host_warm_starts},
          {"evictions", counters.evictions},
          {"rejected", counters.rejected},
          {"idle_slot_seconds", idle_slots_json(counters.idle_slots)},
          {"idle_token_seconds", idle_slots_json(counters.idle_slots)},  // its old name, for one release
          {"memory", memory_counters_json(counters.memory)}};
}

template <typename Value>
json optional_json(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

json on_slices_json(const std::map<std::string, OnSlices>& profiles) {
  json all = json::object();
  for (const auto& [profile, times] : profiles) {
    all[profile] = {{"cold_start_seconds", to_seconds(times.cold_start)}, {"run_seconds", to_seconds(times.run)}};
  }
  return all;
}

json share_json(const FunctionStatus& function) {
  const Share& share = function.settings.share;
  const ShareStatus& status = function.share;
  json seats = json::array();
  for (const GpuId gpu : status.seats) seats.push_back(gpu.value());
  const auto measured = [&](auto value) { return status.delivery ? json(value(*status.delivery)) : json(nullptr); };
  std::uint64_t waits = 0;
  for (const std::uint64_t count : status.waits.histogram) waits += count;
  return {{"compute_percent", share.width_percent.value_or(100)},
          {"quota_request_percent", share.request_percent},
          {"quota_limit_percent", share.limit_percent},
          {"memory_mib", share.memory.value_or(Bytes(0)).mib()},
          {"least_replicas", function.settings.replicas.least},
          {"most_replicas", optional_json(function.settings.replicas.most)},
          {"seats", std::move(seats)},
          {"seats_wanted", function.settings.seats()},
          {"lacking", status.lacking},
          {"delivered_percent", measured([](const ShareDelivery& of) { return of.delivered_percent; })},
          {"delivered_last_minute_percent", measured([](const ShareDelivery& of) { return of.last_minute_percent; })},
          {"credit_seconds", measured([](const ShareDelivery& of) { return to_seconds(of.credit); })},
          {"gate_waits", waits},
          {"gate_wait_seconds", to_seconds(status.waits.total)},
          {"turns_evaded",
           {{"named", status.evaded.named}, {"stopped", status.evaded.stopped}, {"last", status.evaded.last}}}};
}

// Answers that had a first byte to measure.
std::uint64_t streamed(const FunctionStats& stats) {
  return std::accumulate(stats.first_byte_histogram.begin(), stats.first_byte_histogram.end(), std::uint64_t{0});
}

json function_status_json(const FunctionStatus& function) {
  const FunctionStats& stats = function.stats;
  json memory = memory_json(function.memory);
  memory["expected_bytes"] = function.memory_expected.count();
  return {{"name", function.name},
          {"state", flow_state_name(function.flow.state)},
          {"queued", function.flow.queued},
          {"in_flight", function.flow.in_flight},
          {"virtual_time_seconds", to_seconds(function.flow.virtual_time)},
          {"service_estimate_seconds", to_seconds(function.flow.service_estimate)},
          {"instances",
           {{"idle", function.instances_idle},
            {"busy", function.instances_busy},
            {"starting", function.instances_starting}}},
          {"memory", std::move(memory)},
          {"weight", function.settings.weight},
          {"tenant", function.settings.tenant},
          {"objective_ms", optional_json(function.settings.objective_ms)},
          {"share", share_json(function)},
          {"slices", on_slices_json(function.on_slices)},
          {"start_failure", function.start_failure},
          {"stats",
           {{"invocations", stats.invocations},
            {"errors", stats.errors},
            {"timeouts", stats.timeouts},
            {"crashes", stats.crashes},
            {"cold_starts", stats.cold_starts},
            {"device_warm_starts", stats.device_warm_starts},
            {"host_warm_starts", stats.host_warm_starts},
            {"service_seconds", to_seconds(stats.service)},
            {"streamed", streamed(stats)},
            {"first_byte_seconds", to_seconds(stats.first_byte)},
            {"gpu_time_not_reported_seconds", to_seconds(stats.gpu_time_not_reported)},
            {"queue_seconds", to_seconds(stats.queue_time)}}}};
}

json tenant_json(const TenantStatus& tenant) {
  json cluster;
  if (tenant.over_cluster)
    cluster = {{"factor", tenant.over_cluster->factor}, {"lead_seconds", tenant.over_cluster->lead_s}};
  return {{"name", tenant.name},
          {"weight", tenant.share.weight},
          {"max_in_flight", optional_json(tenant.share.max_concurrency)},
          {"functions", tenant.functions},
          {"queued", tenant.queued},
          {"in_flight", tenant.in_flight},
          {"service_seconds", to_seconds(tenant.service)},
          {"cluster", std::move(cluster)}};
}

json events_json(const EventCounters& events) {
  return {{"waiting", events.waiting},         {"running", events.running},           {"retries", events.retries},
          {"node_faults", events.node_faults}, {"dead_letters", events.dead_letters}, {"redriven", events.redriven}};
}

json damage_json(const StateDamage& damage) {
  return {{"lost_changes", damage.lost_changes},
          {"lost_events", damage.lost_events},
          {"missing_events", damage.missing_events},
          {"damaged_events", damage.damaged_events},
          {"findings", damage.findings.size()}};
}

json settings_json(const NodeSettings& settings) {
  return {{"over_run_seconds", to_seconds(settings.over_run)},
          {"ttl_factor", settings.policy.ttl_factor},
          {"by_tenant", settings.policy.by_tenant},
          {"instances_per_gpu", settings.core.instances_per_gpu},
          {"starts_per_gpu", settings.core.starts_per_gpu},
          {"no_cold_duplicates", settings.core.no_cold_duplicates},
          {"eviction", eviction_name(settings.core.eviction)},
          {"queue_limit", settings.core.queue_limit},
          {"queue_limit_per_function", settings.core.queue_limit_per_flow}};
}

json models_json(const std::vector<ModelStatus>& models) {
  json list = json::array();
  for (const ModelStatus& gpu : models) {
    json by_tenant = json::object();
    for (const auto& [tenant, bytes] : gpu.by_tenant) by_tenant[tenant] = bytes.count();
    list.push_back({{"gpu", gpu.gpu.value()},
                    {"server_pid", gpu.pid},
                    {"server_restarts", gpu.restarts},
                    {"limit_bytes", gpu.memory.count()},
                    {"bytes", gpu.used.count()},
                    {"unused_bytes", gpu.unused.count()},
                    {"lingering_bytes", gpu.lingering.count()},
                    {"saved_bytes", gpu.saved.count()},
                    {"models", gpu.tensors},
                    {"holders", gpu.holders},
                    {"stored", gpu.stored},
                    {"shared", gpu.shared},
                    {"by_content", gpu.by_content},
                    {"evicted", gpu.evicted},
                    {"tenants", std::move(by_tenant)}});
  }
  return list;
}

json task_requests_json(const TaskRequestsStatus& requests) {
  return {{"kept", requests.kept},
          {"queued", requests.queued},
          {"in_flight", requests.in_flight},
          {"requests", requests.stats.invocations},
          {"errors", requests.stats.errors},
          {"cold_starts", requests.stats.cold_starts},
          {"service_seconds", to_seconds(requests.stats.service)}};
}

json pipeline_json(const PipelineStatus& pipeline) {
  json stages = json::array();
  for (const PipelineStatus::Stage& stage : pipeline.stages) {
    stages.push_back(
        {{"gpu", stage.gpu.value()},
         {"slice", stage.slice},
         {"components", stage.components},
         {"pid", stage.pid},
         {"ready", stage.is_ready},
         {"ring", {{"used", stage.ring_used}, {"depth", stage.ring_depth}, {"bytes", stage.ring_bytes.count()}}},
         {"requests", stage.requests},
         {"restarts", stage.restarts},
         {"gpu_seconds", to_seconds(stage.gpu_time)}});
  }
  return {{"function", pipeline.function}, {"state", pipeline.state},         {"why", pipeline.why},
          {"stages", std::move(stages)},   {"in_flight", pipeline.in_flight}, {"waiting", pipeline.waiting},
          {"draining", pipeline.draining}, {"moves", pipeline.moves},         {"rebuilt", pipeline.rebuilt}};
}

json slice_cuts_json(const SliceCutStatus& cuts) {
  return {{"on", cuts.is_on}, {"state", cuts.state}, {"cuts", cuts.cuts}, {"failed", cuts.failed}, {"last", cuts.last}};
}

json slice_json(const std::optional<Slice>& slice) {
  if (!slice) return nullptr;
  return {{"profile", slice->profile}, {"start", slice->start ? json(*slice->start) : json()}, {"size", slice->size}};
}

json gpu_json(const GpuStatus& gpu) {
  return {{"id", gpu.view.gpu.value()},
          {"name", gpu.device.name},
          {"uuid", gpu.device.uuid},
          {"gpu_uuid", gpu.device.gpu_uuid},
          {"slice", slice_json(gpu.device.slice)},
          {"memory_total_bytes", gpu.device.memory.count()},
          {"memory_used_bytes", gpu.memory_used.count()},
          {"memory_admitted_bytes", gpu.view.memory_admitted.count()},
          {"memory_unreported_bytes", gpu.view.memory_unreported.count()},
          {"utilisation", gpu.utilisation},
          {"state", gpu.state},
          {"reason", gpu.reason},
          {"mps_restarts", gpu.mps_restarts},
          {"slots", gpu.view.slots},
          {"slots_in_use", gpu.view.slots_in_use},
          {"tokens", gpu.view.slots},  // the old names, for one release
          {"tokens_in_use", gpu.view.slots_in_use},
          {"task_lanes", gpu.view.task_lanes},
          {"task_loads", gpu.view.task_loads},
          {"instances", gpu.view.instances}};
}

// What keeps calls from running: the end of the spawner, or, when no GPU serves, a line for each.
std::string obstacle(const NodeStatus& status) {
  if (status.draining) return "draining\n";
  if (!status.spawner_obstacle.empty()) return status.spawner_obstacle + "\n";
  if (status.is_gateway) return "";
  if (status.gpus.empty()) return "no GPU is there\n";
  std::string lines;
  for (const GpuStatus& gpu : status.gpus) {
    if (gpu.view.serves) return "";
    lines += fmt::format("GPU {}: {}: {}\n", gpu.view.gpu.value(), gpu.state, gpu.reason);
  }
  return lines;
}

// Calls can run: 200. Else 503, so that load balancers look elsewhere.
void health(KeptText& obstacles, RouteCall call) {
  std::string why = obstacles.get();
  call.exchange.respond({.status = why.empty() ? 200u : 503u,
                         .headers = {{"Content-Type", "text/plain"}},
                         .body = why.empty() ? "ok\n" : std::move(why)});
}

void function_log(NodeService& node, RouteCall call) {
  const auto name = function_from(call);
  if (!name) return respond_error(std::move(call.exchange), name.error());
  if (Status seen = check_seen(node, call.principal, *name); !seen) {
    return respond_error(std::move(call.exchange), seen.error());
  }
  const auto tail = count_parameter(call, "tail", kDefaultTailBytes, kMaxTailBytes);
  if (!tail) return respond_error(std::move(call.exchange), tail.error());
  auto log = node.log(*name, *tail);
  if (!log) return respond_error(std::move(call.exchange), log.error());
  call.exchange.respond(
      {.status = 200, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::move(*log)});
}

// Text, with the place where the next page begins in a header: what is not there yet is an empty page.
void history(NodeService& node, RouteCall call) {
  const std::string_view text = call.target.query_value("from");
  std::uint64_t from = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), from);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size())) {
    return respond_error(std::move(call.exchange),
                         {Errc::kInvalidArgument,
                          fmt::format("from is '{}'; it must be 0 or the X-Fairlead-Next of the page before", text)});
  }
  auto answer = std::make_shared<net::HttpExchange>(std::move(call.exchange));
  node.history(from, [answer](Result<HistoryPage> page) {
    if (!page) return respond_error(std::move(*answer), page.error());
    answer->respond({.status = 200,
                     .headers = {{"Content-Type", "text/csv"}, {"X-Fairlead-Next", std::to_string(page->next)}},
                     .body = std::move(page->lines)});
  });
}

}  // namespace

json objects_json(const ObjectStore::Usage& usage) {
  return {{"count", usage.objects},
          {"memory_bytes", usage.memory.count()},
          {"memory_limit_bytes", usage.memory_limit.count()},
          {"spilled_bytes", usage.spilled.count()},
          {"spill_limit_bytes", usage.spill_limit.count()},
          {"on_device_bytes", usage.on_device.count()},
          {"spills", usage.spills},
          {"reads_back", usage.reads_back}};
}

json status_json(const NodeStatus& status) {
  std::map<FlowId, std::string> names;
  json functions = json::array();
  for (const FunctionStatus& function : status.functions) {
    names[function.flow.flow] = function.name;
    functions.push_back(function_status_json(function));
  }
  json tenants = json::array();
  for (const TenantStatus& tenant : status.tenants) tenants.push_back(tenant_json(tenant));
  json gpus = json::array();
  for (const GpuStatus& gpu : status.gpus) gpus.push_back(gpu_json(gpu));
  json instances = json::array();
  for (const InstanceView& instance : status.instances) {
    const auto name = names.find(instance.flow);
    instances.push_back({{"id", instance.instance.value()},
                         {"function", name == names.end() ? kOneOffRequest : name->second},
                         {"gpu", instance.gpu.value()},
                         {"state", instance_state_name(instance.state)}});
    instances.back()["seated"] = instance.seated;
    instances.back()["entitled"] = instance.entitled;
    if (instance.memory) instances.back()["memory"] = memory_json(*instance.memory);
  }
  json pipelines = json::array();
  for (const PipelineStatus& pipeline : status.pipelines) pipelines.push_back(pipeline_json(pipeline));
  return {{"version", status.version},
          {"policy", status.policy},
          {"sharing", status.sharing},
          {"memory_policy", status.memory_policy},
          {"uptime_seconds", to_seconds(status.uptime)},
          {"global_virtual_time_seconds", to_seconds(status.global_virtual_time)},
          {"draining", status.draining},
          {"queued", status.queued},
          {"resident_bytes", status.resident.count()},
          {"objects", objects_json(status.objects)},
          {"task_requests", task_requests_json(status.task_requests)},
          {"models", models_json(status.models)},
          {"events", events_json(status.events)},
          {"state_damage", damage_json(status.damage)},
          {"spawner", {{"obstacle", status.spawner_obstacle}, {"restarts", status.spawner_restarts}}},
          {"counters", counters_json(status.counters)},
          {"move_seconds", {{"in", to_seconds(status.moves.in)}, {"out", to_seconds(status.moves.out)}}},
          {"settings", settings_json(status.settings)},
          {"tenants", std::move(tenants)},
          {"functions", std::move(functions)},
          {"gpus", std::move(gpus)},
          {"pipelines", std::move(pipelines)},
          {"slice_cuts", slice_cuts_json(status.slice_cuts)},
          {"instances", std::move(instances)}};
}

void add_admin_routes(Routes& routes, NodeService& node) {
  using Handle = void (*)(NodeService&, RouteCall);
  const auto add = [&](Permission permission, std::string_view pattern, Handle handle) {
    routes.add(
        "GET", pattern, [&node, handle](RouteCall call) { handle(node, std::move(call)); }, permission);
  };
  const auto obstacles = std::make_shared<KeptText>([&node] { return obstacle(node.status()); });
  routes.add(
      "GET", "/healthz", [obstacles](RouteCall call) { health(*obstacles, std::move(call)); }, Permission::kAnyone);
  const auto text = std::make_shared<KeptText>([&node] { return to_text(status_json(node.status())); });
  routes.add(
      "GET", "/fairlead/v1/status",
      [text](RouteCall call) {
        call.exchange.respond({.headers = {{"Content-Type", "application/json"}}, .body = text->get()});
      },
      Permission::kReadNode);
  add(Permission::kRead, "/fairlead/v1/functions/{function}/log", function_log);
  add(Permission::kReadNode, "/fairlead/v1/history", history);
}

}  // namespace fairlead
