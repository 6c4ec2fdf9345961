#include "placement/placer.h"

#include <algorithm>
#include <tuple>

namespace fairlead {

std::optional<Placement> Placer::place(const InstancePool& pool, FlowId flow, Bytes expected) const {
  if (Instance* warm = warm_instance(pool, flow)) return Placement{.gpu = warm->gpu, .instance = warm, .evict = {}};
  const Gpu* gpu = roomy_gpu(pool, expected);
  if (gpu == nullptr) return std::nullopt;
  const Bytes memory = InstancePool::counted_memory(*gpu, expected);
  return Placement{.gpu = gpu->id, .memory = memory, .evict = evictions(pool, *gpu, memory)};
}

bool Placer::can_place(const InstancePool& pool, FlowId flow, Bytes expected) const {
  return roomy_gpu(pool, expected) != nullptr || has_warm(pool, flow);
}

bool Placer::has_warm(const InstancePool& pool, FlowId flow) const {
  return warm_instance(pool, flow) != nullptr;
}

Instance* Placer::warm_instance(const InstancePool& pool, FlowId flow) const {
  const auto key = [](const Instance* i) { return std::tuple(!i->returning(), i->last_used, i->id); };
  Instance* best = nullptr;
  for (Instance* instance : pool.of_flow(flow)) {
    if (instance->holds_token() || instance->retiring || !pool.has_free_token(pool.gpu(instance->gpu))) continue;
    if (best == nullptr || key(best) < key(instance)) best = instance;
  }
  return best;
}

const Gpu* Placer::roomy_gpu(const InstancePool& pool, Bytes expected) const {
  const auto load = [](const Gpu* gpu) { return std::tuple(gpu->tokens_in_use, gpu->instances.size()); };
  const Gpu* best = nullptr;
  for (const auto& [id, gpu] : pool.gpus()) {
    if (!pool.has_free_token(gpu) || !pool.has_room(gpu, InstancePool::counted_memory(gpu, expected))) continue;
    if (best == nullptr || load(&gpu) < load(best)) best = &gpu;
  }
  return best;
}

std::vector<InstanceId> Placer::evictions(const InstancePool& pool, const Gpu& gpu, Bytes memory) const {
  std::vector<InstanceId> evicted;
  std::vector<const Instance*> candidates;
  for (const Instance* instance : gpu.instances) {
    if (!instance->holds_token()) candidates.push_back(instance);
  }
  Bytes memory_total = gpu.memory_total;
  while (!pool.fits(gpu, memory, gpu.instances.size() - evicted.size(), memory_total)) {
    const Instance& victim = eviction_.victim(candidates);
    evicted.push_back(victim.id);
    memory_total -= victim.memory;
    std::erase(candidates, &victim);
  }
  return evicted;
}

}  // namespace fairlead
