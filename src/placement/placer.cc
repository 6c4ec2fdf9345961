#include "placement/placer.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead {
namespace {

Bytes memory_to_run(const Gpu& gpu, const Instance& instance, Bytes expected) {
  return InstancePool::counted_memory(gpu, std::max(expected, instance.needed));
}

bool contains(const std::vector<GpuId>& gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

}  // namespace

std::optional<Placement> Placer::place(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  if (Instance* warm = warm_instance(pool, flow, expected, only)) {
    const Gpu& gpu = pool.gpu(warm->gpu);
    const Bytes memory = memory_to_run(gpu, *warm, expected);
    return Placement{.gpu = gpu.id, .instance = warm, .memory = memory, .evict = evictions(pool, gpu, memory, warm)};
  }
  const Gpu* gpu = roomy_gpu(pool, flow, expected, only);
  if (gpu == nullptr) return std::nullopt;
  const Bytes memory = InstancePool::counted_memory(*gpu, expected);
  return Placement{.gpu = gpu->id, .memory = memory, .evict = evictions(pool, *gpu, memory, nullptr)};
}

bool Placer::can_place(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  return roomy_gpu(pool, flow, expected, only) != nullptr || has_warm(pool, flow, expected, only);
}

bool Placer::has_warm(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  return warm_instance(pool, flow, expected, only) != nullptr;
}

Instance* Placer::warm_instance(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  const auto key = [](const Instance* i) { return std::tuple(-i->reload, !i->returning(), i->last_used, i->id); };
  Instance* best = nullptr;
  for (Instance* instance : pool.of_flow(flow)) {
    const Gpu& gpu = pool.gpu(instance->gpu);
    if (only && gpu.id != only) continue;
    if (!instance->spare() || instance->retiring || !pool.has_free_token(gpu)) continue;
    if (!pool.has_room(gpu, flow, memory_to_run(gpu, *instance, expected))) continue;
    if (!pool.task_room().fits(instance->id)) continue;
    if (best == nullptr || key(best) < key(instance)) best = instance;
  }
  return best;
}

const Gpu* Placer::roomy_gpu(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  const auto load = [](const Gpu* gpu) { return std::tuple(gpu->tokens_in_use, gpu->instances.size()); };
  const Gpu* best = nullptr;
  for (const auto& [id, gpu] : pool.gpus()) {
    if (only && id != only) continue;
    if (!pool.has_free_token(gpu) || !pool.has_room(gpu, flow, InstancePool::counted_memory(gpu, expected))) continue;
    if (best == nullptr || load(&gpu) < load(best)) best = &gpu;
  }
  return best;
}

std::optional<Placement> Placer::place_start(const InstancePool& pool, const StartAhead& start,
                                             const MayEvict& may_evict) const {
  const auto load = [](const Gpu& gpu) {
    return std::tuple(gpu.tokens_in_use + gpu.starting_ahead, gpu.instances.size());
  };
  std::optional<Placement> best;
  for (const auto& [id, gpu] : pool.gpus()) {
    const Bytes memory = InstancePool::counted_memory(gpu, start.expected);
    const bool idles = pool.has_free_token(gpu);
    if (contains(start.not_on, id)) continue;
    if (!gpu.serves || gpu.starting_ahead >= start.at_once || !pool.has_room(gpu, start.flow, memory)) continue;
    if ((start.only_where_a_token_idles && !idles) || (best && load(pool.gpu(best->gpu)) <= load(gpu))) continue;
    auto evict = evictions_among(pool, gpu, memory, nullptr, [&](const Instance& i) { return idles || may_evict(i); });
    if (evict) best = Placement{.gpu = id, .memory = memory, .evict = *std::move(evict)};
  }
  return best;
}

namespace {

// Memory before starts before tokens: what can be done about the first is to let no more in.
Obstacle graver(Obstacle a, Obstacle b) {
  for (const Obstacle grave : {Obstacle::kMemory, Obstacle::kStarts, Obstacle::kTokens}) {
    if (a == grave || b == grave) return grave;
  }
  return Obstacle::kItself;
}

// Where there is room, what is short is the device server's (TaskRoom): what runs has that, too.
Obstacle lack_of_room(const InstancePool& pool, const Gpu& gpu, Bytes memory) {
  return pool.has_room_beside_starts(gpu, memory) ? Obstacle::kMemory : Obstacle::kStarts;
}

}  // namespace

Obstacle Placer::obstacle(const InstancePool& pool, FlowId flow, Bytes expected) const {
  Obstacle found = Obstacle::kItself;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (!instance->spare() || instance->retiring) continue;
    const Gpu& gpu = pool.gpu(instance->gpu);
    const bool has_token = pool.has_free_token(gpu);
    found =
        graver(found, has_token ? lack_of_room(pool, gpu, memory_to_run(gpu, *instance, expected)) : Obstacle::kTokens);
  }
  return found;
}

Obstacle Placer::obstacle(const InstancePool& pool, const StartAhead& start) const {
  Obstacle found = Obstacle::kItself;
  for (const auto& [id, gpu] : pool.gpus()) {
    if (!gpu.serves || gpu.starting_ahead >= start.at_once || contains(start.not_on, id)) continue;
    if (start.only_where_a_token_idles && !pool.has_free_token(gpu)) continue;
    const Bytes memory = InstancePool::counted_memory(gpu, start.expected);
    found = graver(found, pool.has_room(gpu, start.flow, memory) ? Obstacle::kStarts : lack_of_room(pool, gpu, memory));
  }
  return found;
}

Placement Placer::place_claim(const InstancePool& pool, FlowId flow, Bytes expected) const {
  std::optional<Placement> best;
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->retiring || best) continue;
    const Gpu& gpu = pool.gpu(instance->gpu);
    best = Placement{.gpu = gpu.id, .memory = memory_to_run(gpu, *instance, expected)};
  }
  if (best) return *best;
  for (const auto& [id, gpu] : pool.gpus()) {
    const auto rank = [](const Gpu& of) { return std::pair(!of.serves, of.memory_in_use); };
    if (best && rank(pool.gpu(best->gpu)) <= rank(gpu)) continue;
    best = Placement{.gpu = id, .memory = InstancePool::counted_memory(gpu, expected)};
  }
  return *best;
}

std::vector<InstanceId> Placer::evictions(const InstancePool& pool, const Gpu& gpu, Bytes memory,
                                          const Instance* keep) const {
  auto evicted = evictions_among(pool, gpu, memory, keep, [](const Instance&) { return true; });
  FL_CHECK(evicted, "{} bytes do not fit on GPU {}", memory.count(), gpu.id.value());
  return *std::move(evicted);
}

// Empty: it does not fit even without all that may go. For an instance that is there already (`keep`) only memory can be
// short, for a new one also the count.
std::optional<std::vector<InstanceId>> Placer::evictions_among(const InstancePool& pool, const Gpu& gpu, Bytes memory,
                                                               const Instance* keep, const MayEvict& may_evict) const {
  std::size_t others = gpu.instances.size();
  Bytes committed = gpu.memory_committed;
  if (keep != nullptr) {
    --others;
    committed -= keep->pinned;
  }
  std::vector<InstanceId> evicted;
  if (pool.fits(gpu, memory, others, committed)) return evicted;
  std::vector<const Instance*> candidates;
  for (const Instance* instance : gpu.instances) {
    if (instance->spare() && instance != keep && may_evict(*instance)) candidates.push_back(instance);
  }
  while (!pool.fits(gpu, memory, others, committed)) {
    if (candidates.empty()) return std::nullopt;
    const Instance& victim = eviction_.victim(candidates);
    evicted.push_back(victim.id);
    --others;
    committed -= victim.pinned;
    std::erase(candidates, &victim);
  }
  return evicted;
}

}  // namespace fairlead
