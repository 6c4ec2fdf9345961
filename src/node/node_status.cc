// What people see of the node: status, logs, dead letters.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "model/tenant.h"
#include "node/log_tail.h"
#include "node/node.h"

namespace fairlead {
namespace {

constexpr const char* kVersion = FAIRLEAD_VERSION;

Bytes resident_memory() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return Bytes(0);
  long total = 0;
  long resident = 0;
  const int fields = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? Bytes(resident * sysconf(_SC_PAGESIZE)) : Bytes(0);
}

DeviceServerStatus device_server_status(const DeviceServers::View& view) {
  const wire::ServerCounters& counters = view.counters;
  return {.gpu = view.gpu,
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
          .modules = counters.modules};
}

std::vector<TenantStatus> tenant_status(const Functions& functions, const Core& core, const Tenants& tenants) {
  std::map<std::string, TenantStatus> by_name;
  for (const auto& [name, known] : tenants.all()) by_name[name] = {.name = name, .share = known.share};
  const auto add = [&](const RegisteredFunction& function) {
    TenantStatus& tenant = by_name[tenant_of(function.record.config.tags)];
    const FlowView flow = core.flow(function.flow);
    tenant.functions += function.requested ? 0 : 1;
    tenant.queued += flow.queued;
    tenant.in_flight += flow.in_flight;
    tenant.service += function.stats.service;
  };
  for (const auto& [name, function] : functions.all()) add(function);
  for (const auto& [name, function] : functions.requested()) add(function);
  std::vector<TenantStatus> list;
  for (auto& [name, tenant] : by_name) list.push_back(std::move(tenant));
  return list;
}

}  // namespace

NodeStatus Node::status() {
  NodeStatus status;
  status.version = kVersion;
  status.policy = core_.policy().name();
  if (sharing_) status.sharing = sharing_mode_name(sharing_->mode());
  status.memory_policy = memory_policy_name(options_.core.memory_policy);
  status.uptime = monotonic_now() - started_;
  status.global_virtual_time = core_.policy().global_virtual_time();
  status.draining = draining_;
  status.queued = core_.policy().queued();
  status.counters = core_.counters();
  status.instances = core_.instances();
  status.resident = resident_memory();
  status.moves = moves_;
  status.settings = {options_.core, options_.policy_options};
  status.objects = objects_->usage();
  status.task_requests = requests_status();
  status.graphs = graphs_->counters();
  for (const DeviceServers::View& view : device_servers_->views()) {
    status.device_servers.push_back(device_server_status(view));
  }

  std::map<FlowId, FunctionStatus*> by_flow;
  status.functions.reserve(functions_.all().size());
  for (const auto& [name, function] : functions_.all()) {
    status.functions.push_back({.name = name, .flow = core_.flow(function.flow), .stats = function.stats});
    status.functions.back().memory_expected = core_.expected_memory(function.flow);
    status.functions.back().settings = gpu_settings(function.record.config).value_or(GpuSettings());
    by_flow[function.flow] = &status.functions.back();
  }
  for (const InstanceView& instance : status.instances) {
    const auto it = by_flow.find(instance.flow);
    if (it == by_flow.end()) continue;
    if (instance.memory) it->second->memory += *instance.memory;
    if (instance.state == InstanceState::kIdle) ++it->second->instances_idle;
    if (instance.state == InstanceState::kBusy) ++it->second->instances_busy;
    if (instance.state == InstanceState::kStarting) ++it->second->instances_starting;
  }
  if (options_.policy_options.by_tenant) status.tenants = tenant_status(functions_, core_, tenants_);
  const std::vector<GpuView> views = core_.gpus();
  for (std::size_t i = 0; gpus_ && i < views.size(); ++i) {
    const GpuSample& sample = gpus_->samples().at(i);
    const GpuSharing::View health = sharing_->view(sample.gpu);
    status.gpus.push_back({views[i], sample.name, sample.uuid, sample.memory_total, sample.memory_used,
                           sample.utilisation, std::string(gpu_state_name(health.state)), health.reason,
                           health.daemon_restarts});
  }
  return status;
}

Result<std::string> Node::log(const std::string& function, std::size_t tail_bytes) {
  if (Status known = check_invoke(function); !known) return fail(known.error());
  return log_tail(options_.host.log_dir, function, tail_bytes);
}

void Node::history(std::uint64_t from, Callback<HistoryPage> done) {
  if (!history_) return done(fail(Errc::kNotFound, "this node keeps no history; start it with --history above 0"));
  history_->read(from, History::kMaxPageBytes, std::move(done));
}

void Node::dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) {
  store_->list_dead_letters(std::move(function), limit, std::move(done));
}

}  // namespace fairlead
