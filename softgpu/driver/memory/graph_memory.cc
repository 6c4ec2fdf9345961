#include "softgpu/driver/memory/graph_memory.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "softgpu/driver/memory/memory.h"
#include "softgpu/mutex.h"

namespace softgpu {

// Use of one device, in bytes.
struct GraphMemoryUse {
  std::uint64_t used = 0;
  std::uint64_t used_high = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
};

struct GraphMemoryRegistry {
  Mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<GraphMemory>> by_address SOFTGPU_GUARDED_BY(mutex);
  std::map<const DriverDevice*, GraphMemoryUse> use SOFTGPU_GUARDED_BY(mutex);

  static GraphMemoryRegistry& get() {
    static auto* instance = new GraphMemoryRegistry;
    return *instance;
  }
  // Unmaps what no launch has left allocated.
  void trim(const DriverDevice& device);
};

GraphMemory::GraphMemory(CUcontext context, std::uint64_t address, std::uint64_t bytes)
    : context_(context), context_id_(context->id()), address_(address), bytes_(bytes) {}

std::shared_ptr<GraphMemory> GraphMemory::allocate(CUcontext context, std::uint64_t bytes) {
  const std::uint64_t address = context->heap().allocate(bytes);
  if (address == 0) return nullptr;
  std::shared_ptr<GraphMemory> memory(new GraphMemory(context, address, bytes));
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const LockGuard guard(all.mutex);
  all.by_address[address] = memory;
  GraphMemoryUse& use = all.use[&context->owner()];
  use.reserved += bytes;
  use.reserved_high = std::max(use.reserved_high, use.reserved);
  return memory;
}

GraphMemory::~GraphMemory() {
  {
    GraphMemoryRegistry& all = GraphMemoryRegistry::get();
    const LockGuard guard(all.mutex);
    // Another may have been given the address since, if the context that owned this one has ended.
    if (const auto found = all.by_address.find(address_); found != all.by_address.end() && found->second.expired()) {
      all.by_address.erase(found);
    }
    GraphMemoryUse& use = all.use[&context_->owner()];
    use.reserved -= bytes_;
    if (mapped_) use.used -= bytes_;
  }
  // A context that has ended took its memory with it.
  if (context_->active() && context_->id() == context_id_) release_memory(context_, address_);
}

std::shared_ptr<GraphMemory> GraphMemory::find(std::uint64_t address) {
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const LockGuard guard(all.mutex);
  const auto found = all.by_address.find(address);
  return found != all.by_address.end() ? found->second.lock() : nullptr;
}

bool GraphMemory::live() const {
  const LockGuard guard(GraphMemoryRegistry::get().mutex);
  return self_ != nullptr;
}

void GraphMemory::begin_life() {
  std::shared_ptr<GraphMemory> self = find(address_);
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const LockGuard guard(all.mutex);
  self_ = std::move(self);
  if (std::exchange(mapped_, true)) return;
  GraphMemoryUse& use = all.use[&context_->owner()];
  use.used += bytes_;
  use.used_high = std::max(use.used_high, use.used);
}

bool GraphMemory::end_life() {
  std::shared_ptr<GraphMemory> self;  // declared before the lock: the last reference must go without it
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const LockGuard guard(all.mutex);
  if (self_ == nullptr) return false;
  self.swap(self_);
  return true;
}

void GraphMemoryRegistry::trim(const DriverDevice& device) {
  std::vector<std::shared_ptr<GraphMemory>> held;  // declared before the lock: the last reference must go without it
  const LockGuard guard(mutex);
  for (const auto& [address, weak] : by_address) {
    auto memory = weak.lock();
    if (memory == nullptr) continue;
    if (&memory->context_->owner() == &device && memory->self_ == nullptr && std::exchange(memory->mapped_, false)) {
      use[&device].used -= memory->bytes_;
    }
    held.push_back(std::move(memory));
  }
}

CUresult free_graph_memory(std::uint64_t address) {
  const auto memory = GraphMemory::find(address);
  return memory != nullptr && memory->end_life() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace softgpu

using softgpu::GraphMemoryRegistry;
using softgpu::GraphMemoryUse;

// The pages stay with their nodes: nothing is cached that could be given back, but it is no longer counted as mapped.
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  softgpu::DriverDevice* device = nullptr;
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  GraphMemoryRegistry::get().trim(*device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  softgpu::DriverDevice* device = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const softgpu::LockGuard guard(all.mutex);
  const GraphMemoryUse& use = all.use[device];
  auto* const bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *bytes = use.used; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *bytes = use.used_high; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *bytes = use.reserved; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *bytes = use.reserved_high; return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// The high-water marks may be set back, to zero only.
CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  softgpu::DriverDevice* device = nullptr;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::get_device(ordinal, device));
  GraphMemoryRegistry& all = GraphMemoryRegistry::get();
  const softgpu::LockGuard guard(all.mutex);
  GraphMemoryUse& use = all.use[device];
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: use.used_high = use.used; return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: use.reserved_high = use.reserved; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
