// What people see of the node: status, logs, dead letters.
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/clock.h"
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

}  // namespace

NodeStatus Node::status() {
  NodeStatus status;
  status.version = kVersion;
  status.policy = core_.policy().name();
  status.uptime = monotonic_now() - started_;
  status.global_virtual_time = core_.policy().global_virtual_time();
  status.draining = draining_;
  status.queued = core_.policy().queued();
  status.counters = core_.counters();
  status.instances = core_.instances();
  status.resident = resident_memory();

  std::map<FlowId, FunctionStatus*> by_flow;
  status.functions.reserve(functions_.all().size());
  for (const auto& [name, function] : functions_.all()) {
    status.functions.push_back({.name = name, .flow = core_.flow(function.flow), .stats = function.stats});
    by_flow[function.flow] = &status.functions.back();
  }
  for (const InstanceView& instance : status.instances) {
    const auto it = by_flow.find(instance.flow);
    if (it == by_flow.end()) continue;
    if (instance.state == InstanceState::kIdle) ++it->second->instances_idle;
    if (instance.state == InstanceState::kBusy) ++it->second->instances_busy;
    if (instance.state == InstanceState::kStarting) ++it->second->instances_starting;
  }
  const std::vector<GpuView> views = core_.gpus();
  for (std::size_t i = 0; gpus_ && i < views.size(); ++i) {
    const GpuSample& sample = gpus_->samples().at(i);
    status.gpus.push_back(
        {views[i], sample.name, sample.uuid, sample.memory_total, sample.memory_used, sample.utilisation});
  }
  return status;
}

Result<std::string> Node::log(const std::string& function, std::size_t tail_bytes) {
  if (Status known = check_invoke(function); !known) return fail(known.error());
  return log_tail(options_.host.log_dir, function, tail_bytes);
}

void Node::dead_letters(std::string function, std::size_t limit, Callback<std::vector<DeadLetter>> done) {
  store_->list_dead_letters(std::move(function), limit, std::move(done));
}

}  // namespace fairlead
