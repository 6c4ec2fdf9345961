#include "placement/instance_pool.h"

#include <algorithm>

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

InstancePool::InstancePool(std::size_t instances_per_gpu) : instances_per_gpu_(instances_per_gpu) {
  FL_CHECK(instances_per_gpu >= 1);
}

void InstancePool::add_gpu(GpuId gpu, Bytes memory, std::size_t tokens) {
  Gpu added;
  added.id = gpu;
  added.memory = memory;
  FL_CHECK(gpus_.emplace(gpu, std::move(added)).second, "GPU {} is there already", gpu.value());
  set_tokens(gpu, tokens);
}

void InstancePool::set_tokens(GpuId gpu, std::size_t tokens) {
  FL_CHECK(tokens >= 1 && tokens <= instances_per_gpu_, "tokens={} instances_per_gpu={}", tokens, instances_per_gpu_);
  mutable_gpu(gpu).tokens = tokens;
}

void InstancePool::set_serves(GpuId gpu, bool serves) {
  mutable_gpu(gpu).serves = serves;
}

void InstancePool::set_claim(FlowId flow, GpuId claimed, Bytes memory) {
  for (auto& [id, gpu] : gpus_) {
    gpu.claimant = id == claimed ? flow : FlowId();
    gpu.claimed = id == claimed && flow ? memory : Bytes(0);
  }
}

Instance& InstancePool::add(Instant now, FlowId flow, GpuId gpu_id, Bytes memory, InvocationId bound) {
  Gpu& gpu = mutable_gpu(gpu_id);
  FL_CHECK(fits(gpu, memory, gpu.instances.size(), gpu.memory_committed), "no room on GPU {}", gpu_id.value());
  const InstanceId id(next_instance_++);
  Instance& instance = instances_[id];
  instance.id = id;
  instance.flow = flow;
  instance.gpu = gpu_id;
  instance.memory = memory;
  instance.pinned = memory;
  instance.last_used = now;
  gpu.instances.push_back(&instance);
  count(gpu, instance);
  by_flow_[flow].push_back(&instance);
  if (bound) bind(instance, bound);
  return instance;
}

void InstancePool::end_start(Instance& instance) {
  FL_CHECK(instance.starts_ahead(), "instance {}", instance.id.value());
  Gpu& gpu = mutable_gpu(instance.gpu);
  uncount(gpu, instance);
  instance.state = InstanceState::kIdle;
  count(gpu, instance);
}

void InstancePool::remove(InstanceId id) {
  Instance& instance = instances_.at(id);
  release(instance);
  Gpu& gpu = mutable_gpu(instance.gpu);
  uncount(gpu, instance);
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
  Gpu& gpu = mutable_gpu(instance.gpu);
  FL_CHECK(!instance.bound && invocation && has_free_token(gpu), "instance {} of GPU {}: bound={} tokens_in_use={}",
           instance.id.value(), gpu.id.value(), instance.bound.value(), gpu.tokens_in_use);
  uncount(gpu, instance);
  instance.bound = invocation;
  instance.fresh = false;
  count(gpu, instance);
  ++gpu.tokens_in_use;
  ++tokens_in_use_;
  task_room_.begin(instance.id);
}

void InstancePool::release(Instance& instance) {
  if (!instance.bound) return;
  Gpu& gpu = mutable_gpu(instance.gpu);
  uncount(gpu, instance);
  instance.bound = InvocationId();
  count(gpu, instance);
  --gpu.tokens_in_use;
  --tokens_in_use_;
  task_room_.end(instance.id);
}

void InstancePool::count_memory(Instance& instance, Bytes memory, Bytes pinned) {
  Gpu& gpu = mutable_gpu(instance.gpu);
  uncount(gpu, instance);
  instance.memory = memory;
  instance.pinned = pinned;
  count(gpu, instance);
}

void InstancePool::count(Gpu& gpu, const Instance& instance) {
  if (instance.starts_ahead()) {
    ++gpu.starting_ahead;
    gpu.memory_starting += instance.memory;
  }
  if (!instance.spare()) gpu.memory_in_use += instance.memory;
  gpu.memory_committed += instance.spare() ? instance.pinned : instance.memory;
}

void InstancePool::uncount(Gpu& gpu, const Instance& instance) {
  if (instance.starts_ahead()) {
    --gpu.starting_ahead;
    gpu.memory_starting -= instance.memory;
  }
  if (!instance.spare()) gpu.memory_in_use -= instance.memory;
  gpu.memory_committed -= instance.spare() ? instance.pinned : instance.memory;
}

const std::vector<Instance*>& InstancePool::of_flow(FlowId flow) const {
  static const std::vector<Instance*> none;
  const std::vector<Instance*>* found = by_flow_.find(flow);
  return found == nullptr ? none : *found;
}

const Gpu& InstancePool::gpu(GpuId gpu) const {
  return gpus_.at(gpu);
}

Gpu& InstancePool::mutable_gpu(GpuId gpu) {
  return gpus_.at(gpu);
}

bool InstancePool::has_free_token() const {
  return std::any_of(gpus_.begin(), gpus_.end(), [this](const auto& entry) { return has_free_token(entry.second); });
}

std::size_t InstancePool::free_tokens() const {
  std::size_t sum = 0;
  for (const auto& [id, gpu] : gpus_) sum += has_free_token(gpu) ? gpu.tokens - gpu.tokens_in_use : 0;
  return sum;
}

Bytes InstancePool::counted_memory(const Gpu& gpu, Bytes expected) {
  return gpu.memory == Bytes(0) ? Bytes(0) : std::min(expected, gpu.memory);
}

}  // namespace fairlead
