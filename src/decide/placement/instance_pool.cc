#include "decide/placement/instance_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

void erase_pointer(std::vector<Instance*>& instances, const Instance* instance) {
  const auto found = std::find(instances.begin(), instances.end(), instance);
  FL_CHECK(found != instances.end());
  *found = instances.back();
  instances.pop_back();
}

}  // namespace

void refuse(const Instance& instance, InstanceEvent event) {
  const std::string what =
      fmt::format("instance {}: {} while {}", instance.id.value(), name_of(event), instance.life.text());
  check_failed("step(instance.life, event)", __FILE__, __LINE__, what);
}

void InstancePool::add_gpu(GpuId id, const Capacity& capacity) {
  const auto [gpu, is_new] = gpus_.try_emplace(id, Gpu{.id = id, .capacity = capacity});
  FL_CHECK(is_new, "GPU {} is there already", id.value());
  const auto after = [](GpuId wanted, const Gpu* other) { return wanted < other->id; };
  in_order_.insert(std::upper_bound(in_order_.begin(), in_order_.end(), id, after), gpu);
  gpu->serves = false;  // until it is in the sums
  set_slots(id, capacity.slots);
  set_serves(id, true);
}

void InstancePool::remove_gpu(GpuId id) {
  Gpu& gpu = gpus_.at(id);
  FL_CHECK(gpu.instances.empty(), "GPU {} has {} instances", id.value(), gpu.instances.size());
  if (claimed_ == &gpu) claimed_ = nullptr;
  set_serves(id, false);  // and so out of the sums
  std::erase(in_order_, &gpu);
  gpus_.erase(id);
}

void InstancePool::set_slots(GpuId id, std::size_t slots) {
  change_slots(gpus_.at(id), [slots](Gpu& gpu) {
    FL_CHECK(slots <= gpu.capacity.clients, "slots={} clients={}", slots, gpu.capacity.clients);
    gpu.capacity.slots = slots;
  });
}

void InstancePool::set_serves(GpuId id, bool serves) {
  change_slots(gpus_.at(id), [serves](Gpu& gpu) { gpu.serves = serves; });
}

void InstancePool::set_lanes(GpuId id, std::size_t lanes) {
  change_slots(gpus_.at(id), [lanes](Gpu& gpu) { gpu.lanes = lanes; });
}

void InstancePool::set_loads_at_once(GpuId id, std::size_t loads) {
  change_slots(gpus_.at(id), [loads](Gpu& gpu) { gpu.loads_at_once = loads; });
}

void InstancePool::set_for_programs(GpuId id, bool is_for_programs) {
  change_slots(gpus_.at(id), [is_for_programs](Gpu& gpu) { gpu.is_for_programs = is_for_programs; });
}

std::size_t free_turns(const InstancePool& pool, bool is_session) {
  if (!is_session) return pool.free_slots();
  std::size_t sum = 0;
  for (const Gpu* gpu : pool.gpus()) {
    const std::size_t lanes = gpu->task_lanes().lanes;
    sum += gpu->serves && gpu->computing() < lanes ? lanes - gpu->computing() : 0;
  }
  return sum;
}

void InstancePool::set_claim(FlowId flow, GpuId id, Bytes memory) {
  if (claimed_ != nullptr) claimed_->claimant = FlowId(), claimed_->claimed = Bytes(0);
  claimed_ = flow ? &gpus_.at(id) : nullptr;
  if (claimed_ != nullptr) claimed_->claimant = flow, claimed_->claimed = memory;
}

Instance& InstancePool::add(Instant now, FlowId flow, GpuId gpu_id, Bytes memory, InvocationId bound) {
  Gpu& gpu = gpus_.at(gpu_id);
  FL_CHECK(fits(gpu, memory, gpu.instances.size(), gpu.memory_committed), "no room on GPU {}", gpu_id.value());
  const InstanceId id(next_instance_++);
  Instance& instance = instances_[id];
  instance.id = id;
  instance.flow = flow;
  instance.gpu = gpu_id;
  instance.on = &gpu;
  instance.memory = memory;
  instance.pinned = memory;
  instance.last_used = now;
  gpu.instances.push_back(&instance);
  ++gpu.programs;
  count(gpu, instance);
  by_flow_[flow].push_back(&instance);
  if (bound) bind(instance, bound);
  return instance;
}

void InstancePool::set_terms(Instance& instance, const InstanceTerms& terms) {
  FL_CHECK(terms.is_seated || !terms.is_entitled, "instance {}", instance.id.value());
  FL_CHECK(!instance.bound || terms.is_entitled || !instance.terms.is_entitled, "instance {} has no slot to go on in",
           instance.id.value());
  Gpu& gpu = *instance.on;
  if (instance.bound && terms.is_entitled) {
    give_back(instance, instance.life.loads());
    task_room_.begin(instance.id);
  }
  uncount(gpu, instance);
  gpu.programs += instance.terms.is_session ? 1 : 0;
  instance.terms = terms;
  gpu.programs -= terms.is_session ? 1 : 0;
  count(gpu, instance);
}

void InstancePool::remove(InstanceId id) {
  Instance& instance = instances_.at(id);
  Gpu& gpu = *instance.on;
  uncount(gpu, instance);
  if (instance.bound) give_back(instance, instance.life.loads());
  if (!instance.terms.is_session) --gpu.programs;
  erase_pointer(gpu.instances, &instance);
  std::vector<Instance*>& siblings = by_flow_.at(instance.flow);
  erase_pointer(siblings, &instance);
  if (siblings.empty()) by_flow_.erase(instance.flow);
  task_room_.remove(id);
  instances_.erase(id);
}

void InstancePool::set_session_memory(InstanceId id, SessionMemory memory) {
  task_room_.set(id, std::move(memory));
  if (instances_.at(id).bound) task_room_.begin(id);
}

void InstancePool::bind(Instance& instance, InvocationId invocation) {
  Gpu& gpu = *instance.on;
  const bool entitled = instance.terms.is_entitled;
  FL_CHECK(!instance.bound && invocation && (entitled ? gpu.serves : gpu.takes(instance)),
           "instance {} of GPU {}: bound={} slots_in_use={}", instance.id.value(), gpu.id.value(),
           instance.bound.value(), gpu.slots_in_use);
  const bool takes_load = instance.terms.is_session && gpu.task_lanes().loads_at_once > 0 && !entitled;
  const bool loads = takes_load && instance.reload > Duration(0);
  uncount(gpu, instance);
  advance(instance, loads ? InstanceEvent::kBoundToLoad : InstanceEvent::kBound);
  instance.bound = invocation;
  count(gpu, instance);
  task_room_.begin(instance.id);
  if (entitled) return;
  change_slots(gpu, [loads](Gpu& of) {
    ++of.slots_in_use;
    if (loads) ++of.loading;
  });
  ++slots_in_use_;
}

void InstancePool::release(Instance& instance) {
  if (!instance.bound) return;
  Gpu& gpu = *instance.on;
  const bool loads = instance.life.loads();
  uncount(gpu, instance);
  advance(instance, InstanceEvent::kEnded);
  instance.bound = InvocationId();
  count(gpu, instance);
  give_back(instance, loads);
}

void InstancePool::give_back(Instance& instance, bool loads) {
  task_room_.end(instance.id);
  if (instance.terms.is_entitled) return;
  change_slots(*instance.on, [loads](Gpu& of) {
    --of.slots_in_use;
    if (loads) --of.loading;
  });
  --slots_in_use_;
}

void InstancePool::count_memory(Instance& instance, Bytes memory, Bytes pinned) {
  Gpu& gpu = *instance.on;
  uncount(gpu, instance);
  instance.memory = memory;
  instance.pinned = pinned;
  count(gpu, instance);
}

namespace {

Bytes in_use(const Instance& instance) {
  return instance.life.spare() ? instance.kept_memory() : instance.memory;
}

Bytes committed(const Instance& instance) {
  return instance.life.spare() && !instance.keeps_memory() ? instance.pinned : instance.memory;
}

}  // namespace

void InstancePool::count(Gpu& gpu, const Instance& instance) {
  if (instance.starts_ahead()) {
    ++gpu.starting_ahead;
    ++starting_ahead_;
    gpu.memory_starting += instance.memory;
  }
  gpu.memory_in_use += in_use(instance);
  gpu.memory_committed += committed(instance);
  gpu.seats.held += instance.kept_memory();
}

void InstancePool::uncount(Gpu& gpu, const Instance& instance) {
  if (instance.starts_ahead()) {
    --gpu.starting_ahead;
    --starting_ahead_;
    gpu.memory_starting -= instance.memory;
  }
  gpu.memory_in_use -= in_use(instance);
  gpu.memory_committed -= committed(instance);
  gpu.seats.held -= instance.kept_memory();
}

const std::vector<Instance*>& InstancePool::of_flow(FlowId flow) const {
  static const std::vector<Instance*> none;
  const std::vector<Instance*>* found = by_flow_.find(flow);
  return found == nullptr ? none : *found;
}

namespace {

Bytes counted_beside(const Gpu& gpu, Bytes expected, Bytes seats) {
  if (gpu.capacity.memory == Bytes(0)) return Bytes(0);
  const Bytes taken = seats == Bytes(0) ? Bytes(0) : seats + gpu.unreported;  // as fits_beside() has it
  return std::min(expected, std::max(Bytes(0), gpu.capacity.memory - taken));
}

}  // namespace

Bytes counted_memory(const Gpu& gpu, Bytes expected) {
  return counted_beside(gpu, expected, gpu.seats.held + gpu.seats.awaited);
}

Bytes counted_memory(const Instance& instance, Bytes expected) {
  if (instance.keeps_memory()) {
    return counted_beside(*instance.on, expected, instance.on->seats.held - instance.kept_memory());
  }
  const SeatMemory& seats = instance.on->seats;
  return counted_beside(*instance.on, expected, seats.held - instance.kept_memory() + seats.awaited);
}

}  // namespace fairlead
