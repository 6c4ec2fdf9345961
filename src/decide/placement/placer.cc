#include "decide/placement/placer.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead {
namespace {

Bytes memory_to_run(const Instance& instance, Bytes expected) {
  return counted_memory(instance, std::max(expected, instance.needed));
}

// What the policy may have run. Who is entitled to its seat runs without being chosen (core/seats.cc).
bool is_for_choice(const Instance& instance) {
  return instance.spare() && !instance.terms.is_entitled;
}

// Data of the flow is on its way to the GPU: one more of its calls would wait for the same, holding a lane.
bool loads_there(const InstancePool& pool, FlowId flow, GpuId gpu) {
  const std::vector<Instance*>& all = pool.of_flow(flow);
  return std::any_of(all.begin(), all.end(), [gpu](const Instance* i) { return i->gpu == gpu && i->life.loads(); });
}

bool contains(const std::vector<GpuId>& gpus, GpuId gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

}  // namespace

std::optional<Placement> Placer::place(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  if (Instance* warm = warm_instance(pool, flow, expected, only)) {
    const Gpu& gpu = *warm->on;
    const Bytes memory = memory_to_run(*warm, expected);
    return Placement{.gpu = gpu.id, .instance = warm, .memory = memory, .evict = evictions(pool, gpu, memory, warm)};
  }
  const Gpu* gpu = roomy_gpu(pool, flow, expected, only);
  if (gpu == nullptr) return std::nullopt;
  const Bytes memory = counted_memory(*gpu, expected);
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
    const Gpu& gpu = *instance->on;
    if (only && gpu.id != only) continue;
    if (!is_for_choice(*instance) || !gpu.takes(*instance) || !slices_.suits(gpu.id, flow)) continue;
    if (loads_there(pool, flow, gpu.id)) continue;
    if (!pool.has_room(*instance, memory_to_run(*instance, expected))) continue;
    if (!pool.task_room().fits(instance->id)) continue;
    if (best == nullptr || key(best) < key(instance)) best = instance;
  }
  return best;
}

namespace {

// Without seats D is enough for that: whatever holds no slot can go.
bool has_place(const Gpu& gpu) {
  return gpu.instances.size() < gpu.capacity.clients ||
         std::any_of(gpu.instances.begin(), gpu.instances.end(), [](const Instance* i) { return i->may_be_evicted(); });
}

}  // namespace

const Gpu* Placer::roomy_gpu(const InstancePool& pool, FlowId flow, Bytes expected, GpuId only) const {
  const auto load = [](const Gpu* gpu) { return std::tuple(gpu->slots_in_use, gpu->instances.size()); };
  const Gpu* best = nullptr;
  for (const Gpu* gpu : pool.gpus()) {
    if ((only && gpu->id != only) || !slices_.suits(gpu->id, flow)) continue;
    if (!gpu->has_free_slot() || !pool.has_room(*gpu, flow, counted_memory(*gpu, expected))) continue;
    if (!has_place(*gpu)) continue;
    if (best == nullptr || load(gpu) < load(best)) best = gpu;
  }
  return best;
}

const Gpu* Placer::gpu_for_start(const InstancePool& pool, const StartAhead& start, const Yielding& yielding) const {
  const auto load = [](const Gpu* gpu) {
    return std::tuple(gpu->slots_in_use + gpu->starting_ahead, gpu->instances.size());
  };
  const Gpu* best = nullptr;
  for (const Gpu* gpu : pool.gpus()) {
    const bool idles = gpu->has_turn(start.is_session);
    if (!gpu->serves || gpu->starting_ahead >= start.at_once || (start.only_where_a_slot_idles && !idles)) continue;
    if ((gpu->capacity.slots == 0 && !start.is_seat) || !slices_.suits(gpu->id, start.flow)) continue;
    if ((best != nullptr && load(best) <= load(gpu)) || contains(start.not_on, gpu->id)) continue;
    const Bytes memory = counted_memory(*gpu, start.expected);
    if (!pool.has_room(*gpu, start.flow, memory)) continue;
    if (can_make_room(pool, *gpu, memory, idles, yielding)) best = gpu;
  }
  return best;
}

std::optional<Placement> Placer::place_start(const InstancePool& pool, const StartAhead& start,
                                             const Yielding& yielding) const {
  const Gpu* gpu = gpu_for_start(pool, start, yielding);
  if (gpu == nullptr) return std::nullopt;
  const bool idles = gpu->has_turn(start.is_session);
  const Bytes memory = counted_memory(*gpu, start.expected);
  auto evict =
      evictions_among(pool, *gpu, memory, nullptr, [&](const Instance& i) { return idles || yielding.may_go(i); });
  return Placement{.gpu = gpu->id, .memory = memory, .evict = *std::move(evict)};
}

namespace {

// Memory before starts before slots: what can be done about the first is to let no more in.
Obstacle graver(Obstacle a, Obstacle b) {
  for (const Obstacle grave : {Obstacle::kMemory, Obstacle::kStarts, Obstacle::kSlots}) {
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
    if (!is_for_choice(*instance)) continue;
    const Gpu& gpu = *instance->on;
    if (loads_there(pool, flow, gpu.id) || !slices_.suits(gpu.id, flow)) continue;
    const bool has_turn = gpu.takes(*instance);
    found = graver(found, has_turn ? lack_of_room(pool, gpu, memory_to_run(*instance, expected)) : Obstacle::kSlots);
  }
  return found;
}

Obstacle Placer::obstacle(const InstancePool& pool, const StartAhead& start) const {
  Obstacle found = Obstacle::kItself;
  for (const Gpu* gpu : pool.gpus()) {
    if (!gpu->serves || gpu->starting_ahead >= start.at_once || contains(start.not_on, gpu->id)) continue;
    if ((gpu->capacity.slots == 0 && !start.is_seat) || !slices_.suits(gpu->id, start.flow)) continue;
    if (start.only_where_a_slot_idles && !gpu->has_turn(start.is_session)) continue;
    const Bytes memory = counted_memory(*gpu, start.expected);
    const bool has_room = pool.has_room(*gpu, start.flow, memory);
    found = graver(found, has_room ? Obstacle::kStarts : lack_of_room(pool, *gpu, memory));
  }
  return found;
}

Placement Placer::place_claim(const InstancePool& pool, FlowId flow, Bytes expected) const {
  for (const Instance* instance : pool.of_flow(flow)) {
    if (instance->life.retires() || instance->terms.is_entitled) continue;
    return {.gpu = instance->gpu, .memory = memory_to_run(*instance, expected)};
  }
  const auto rank = [&](const Gpu* of) {
    return std::tuple(!slices_.suits(of->id, flow), !of->serves, of->memory_in_use);
  };
  const std::vector<const Gpu*>& all = pool.gpus();
  const Gpu* best = *std::min_element(all.begin(), all.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
  return {.gpu = best->id, .memory = counted_memory(*best, expected)};
}

std::vector<InstanceId> Placer::evictions(const InstancePool& pool, const Gpu& gpu, Bytes memory,
                                          const Instance* keep) const {
  auto evicted = evictions_among(pool, gpu, memory, keep, [](const Instance&) { return true; });
  FL_CHECK(evicted, "{} bytes do not fit on GPU {}", memory.count(), gpu.id.value());
  return *std::move(evicted);
}

// Whether a new instance fits once enough of those that may go have gone, whichever these are.
bool Placer::can_make_room(const InstancePool& pool, const Gpu& gpu, Bytes memory, bool idles,
                           const Yielding& yielding) {
  std::size_t others = gpu.instances.size();
  Bytes committed = gpu.memory_committed;
  if (pool.fits(gpu, memory, others, committed)) return true;
  if (!idles && !yielding.may_go(gpu)) return false;
  return std::any_of(gpu.instances.begin(), gpu.instances.end(), [&](const Instance* instance) {
    if (!instance->may_be_evicted() || !(idles || yielding.may_go(*instance))) return false;
    committed -= instance->pinned;
    return pool.fits(gpu, memory, --others, committed);
  });
}

// Empty: it does not fit even without all that may go. For an instance that is there already (`keep`) only memory can be
// short, for a new one also the count.
template <typename MayEvict>
std::optional<std::vector<InstanceId>> Placer::evictions_among(const InstancePool& pool, const Gpu& gpu, Bytes memory,
                                                               const Instance* keep, MayEvict may_evict) const {
  std::size_t others = gpu.instances.size();
  Bytes committed = gpu.memory_committed;
  if (keep != nullptr) {
    --others;
    committed -= keep->keeps_memory() ? keep->memory : keep->pinned;
  }
  std::vector<InstanceId> evicted;
  if (pool.fits(gpu, memory, others, committed)) return evicted;
  std::vector<const Instance*> candidates;
  candidates.reserve(gpu.instances.size());
  for (const Instance* instance : gpu.instances) {
    if (instance->may_be_evicted() && instance != keep && may_evict(*instance)) candidates.push_back(instance);
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
