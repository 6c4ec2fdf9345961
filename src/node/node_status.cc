#include "node/node_status.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "model/tenant.h"

namespace fairlead {

std::string node_version() {
  return FAIRLEAD_VERSION;
}

Bytes resident_memory() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return Bytes(0);
  long total = 0;
  long resident = 0;
  const int fields = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? Bytes(resident * sysconf(_SC_PAGESIZE)) : Bytes(0);
}

std::vector<FunctionStatus> function_status(const Functions& functions, const Core& core,
                                            const std::vector<InstanceView>& instances, const Shares& shares) {
  std::vector<FunctionStatus> list;
  std::map<FlowId, FunctionStatus*> by_flow;
  list.reserve(functions.all().size() + functions.versions().size());
  const auto add = [&](const std::string& name, const RegisteredFunction& function) {
    list.push_back({.name = name, .flow = core.flow(function.flow), .stats = function.stats});
    list.back().memory_expected = core.expected_memory(function.flow);
    list.back().on_slices = core.learnt(function.flow).on_slices;
    list.back().settings = gpu_settings(function.record.config).value_or(GpuSettings());
    list.back().share = shares.status(name, function.flow);
    list.back().start_failure = function.start_failure;
  };
  for (const auto& [name, function] : functions.all()) add(name, function);
  for (const auto& [name, function] : functions.versions()) add(name, function);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (FunctionStatus& status : list) by_flow[status.flow.flow] = &status;
  for (const InstanceView& instance : instances) {
    const auto it = by_flow.find(instance.flow);
    if (it == by_flow.end()) continue;
    if (instance.memory) it->second->memory += *instance.memory;
    if (instance.state == InstanceState::kIdle) ++it->second->instances_idle;
    if (instance.state == InstanceState::kBusy) ++it->second->instances_busy;
    if (instance.state == InstanceState::kStarting) ++it->second->instances_starting;
  }
  return list;
}

std::vector<TenantStatus> tenant_status(const Functions& functions, const Core& core, const Tenants& tenants) {
  std::map<std::string, TenantStatus> by_name;
  for (const auto& [name, known] : tenants.all()) by_name[name] = {.name = name, .share = known.share};
  const auto add = [&](const RegisteredFunction& function) {
    TenantStatus& tenant = by_name[tenant_of(function.record.config.tags)];
    const FlowView flow = core.flow(function.flow);
    tenant.functions += function.requested || function.record.version != 0 ? 0 : 1;
    tenant.queued += flow.queued;
    tenant.in_flight += flow.in_flight;
    tenant.service += function.stats.service;
  };
  for (const auto& [name, function] : functions.all()) add(function);
  for (const auto& [name, function] : functions.versions()) add(function);
  for (const auto& [name, function] : functions.requested()) add(function);
  std::vector<TenantStatus> list;
  const bool is_alone = by_name.size() == 1 && by_name.begin()->second.share == TenantShare();
  if (is_alone) return list;  // "default", who has it all
  for (auto& [name, tenant] : by_name) list.push_back(std::move(tenant));
  return list;
}

std::vector<GpuStatus> gpu_status(const std::vector<GpuView>& views, const GpuMonitor& monitor) {
  std::vector<GpuStatus> list;
  for (const GpuView& view : views) {
    const GpuSample* const sample = monitor.find(view.gpu);
    FL_CHECK(sample != nullptr, "GPU {}", view.gpu.value());
    list.push_back({view, sample->device, sample->memory_used, sample->utilisation,
                    std::string(gpu_state_name(view.state)), view.reason, view.daemon_restarts});
  }
  return list;
}

std::vector<DeviceServerStatus> device_server_status(const std::vector<DeviceServers::View>& views) {
  std::vector<DeviceServerStatus> list;
  for (const DeviceServers::View& view : views) {
    const wire::ServerCounters& counters = view.counters;
    list.push_back({.gpu = view.gpu,
                    .tenant = view.tenant,
                    .pid = view.pid,
                    .sessions = view.sessions,
                    .restarts = view.restarts,
                    .calls = view.calls,
                    .phases = view.phases,
                    .hits = counters.hits,
                    .host_hits = counters.host_hits,
                    .misses = counters.misses,
                    .evictions = counters.evictions,
                    .device_used = Bytes(static_cast<std::int64_t>(counters.device_used)),
                    .host_used = Bytes(static_cast<std::int64_t>(counters.host_used)),
                    .modules = counters.modules});
  }
  return list;
}

std::vector<ModelStatus> model_status(const std::vector<ModelHost::View>& views) {
  std::vector<ModelStatus> list;
  const auto bytes = [](std::uint64_t count) { return Bytes(static_cast<std::int64_t>(count)); };
  for (const ModelHost::View& view : views) {
    ModelStatus status{.gpu = view.gpu,
                       .pid = view.pid,
                       .restarts = view.restarts,
                       .memory = bytes(view.memory),
                       .used = bytes(view.use.bytes),
                       .unused = bytes(view.use.unused),
                       .lingering = bytes(view.use.lingering),
                       .saved = bytes(view.use.saved),
                       .tensors = view.use.tensors,
                       .holders = view.use.holders,
                       .stored = view.use.stored,
                       .shared = view.use.shared,
                       .by_content = view.use.by_content,
                       .evicted = view.use.evicted,
                       .by_tenant = {}};
    for (const auto& [tenant, used] : view.use.by_tenant) status.by_tenant[tenant] = bytes(used);
    list.push_back(std::move(status));
  }
  return list;
}

}  // namespace fairlead
