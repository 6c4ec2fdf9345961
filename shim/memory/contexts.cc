// The part of Space that is about contexts: whose memory it is, who else may reach it, and the end of a context.
#include "shim/driver.h"
#include "shim/memory/accounts.h"
#include "shim/memory/space.h"

namespace fairlead::shim::memory {
namespace {

constexpr std::size_t kLeastCached = std::size_t{8} << 20;
constexpr std::size_t kMostCached = std::size_t{256} << 20;

// A thirty-second of the device may stay mapped after it was freed, between 8 and 256 MiB.
std::size_t cache_limit(std::size_t total) {
  const std::size_t part = total / 32;
  return part < kLeastCached ? kLeastCached : part > kMostCached ? kMostCached : part;
}

// Bytes of the program's that are allocated in the region.
std::size_t held_in(const Region& region) {
  if (region.slab == nullptr) return region.going ? 0 : region.asked;
  std::size_t held = 0;
  for (unsigned unit = 0; unit < kSlabUnits; unit += region.slab->blocks[unit].units) {
    const Block& block = region.slab->blocks[unit];
    if (block.going == 0) held += block.asked;
  }
  return held;
}

}  // namespace

Heap* Space::known(CUcontext context) {
  for (Heap& heap : heaps_) {
    if (heap.context.load(std::memory_order_acquire) == context) return &heap;
  }
  return nullptr;
}

bool Space::know(CUcontext context) {
  if (known(context) != nullptr) return true;
  const Guard guard(lock_);
  if (known(context) != nullptr) return true;
  Heap* heap = known(nullptr);
  if (heap != nullptr) heap->context.store(context, std::memory_order_release);
  return heap != nullptr;
}

void Space::prepare(Heap& heap, CUcontext context) {
  CUdevice device = -1;
  const bool has_device = FAIRLEAD_REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS;
  const bool movable = has_device && backing_->supported(device);
  std::size_t total = 0;
  if (movable) FAIRLEAD_REAL(cuDeviceTotalMem_v2)(&total, device);
  const Guard guard(lock_);
  if (heap.ready.load() || heap.context.load() != context) return;
  heap.movable = movable;
  heap.device = device;
  heap.device_bytes = total;
  heap.cache_limit = cache_limit(total);
  heap.access[0] = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  // A grant may have come before the first allocation.
  if (heap.accessors == 0) heap.accessors = 1;
  heap.ready.store(true, std::memory_order_release);
}

Heap* Space::heap_of(CUcontext context) {
  if (backing_ == nullptr || context == nullptr) return nullptr;
  Heap* heap = known(context);
  if (heap == nullptr) {
    if (!know(context)) return nullptr;
    heap = known(context);
  }
  if (heap == nullptr) return nullptr;
  if (!heap->ready.load(std::memory_order_acquire)) prepare(*heap, context);
  return heap->movable ? heap : nullptr;
}

bool Space::find(CUdeviceptr address, Range* range) {
  if (index_.find(address) == nullptr) return false;
  const Guard guard(lock_);
  const Region* region = index_.find(address);
  if (region == nullptr || region->going) return false;
  range->context = region->heap->context.load(std::memory_order_relaxed);
  if (region->slab == nullptr) {
    range->start = region->start;
    range->bytes = region->asked;
    return address - region->start < region->asked;
  }
  const Block* block = region->slab->find(address);
  if (block == nullptr) return false;
  range->start = region->slab->address_of(block);
  range->bytes = block->asked;
  return true;
}

void Space::pin(CUdeviceptr address) {
  const Guard guard(lock_);
  Region* region = index_.find(address);
  if (region == nullptr || region->state.fixed) return;
  region->state.fixed = true;
  accounts::add_fixed(region->bytes);
}

CUresult Space::grant(CUcontext owner, CUdevice device) {
  if (backing_ == nullptr || !know(owner)) return CUDA_SUCCESS;
  const Guard guard(lock_);
  Heap* heap = known(owner);
  if (heap == nullptr) return CUDA_SUCCESS;
  // Place 0 is the context's own device.
  if (heap->accessors == 0) heap->accessors = 1;
  for (unsigned i = 1; i < heap->accessors; ++i) {
    if (heap->access[i].location.id == device) return CUDA_SUCCESS;
  }
  if (heap->accessors == kMostAccessors) return CUDA_ERROR_TOO_MANY_PEERS;
  heap->access[heap->accessors++] = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const unsigned version = ++heap->access_version;
  CUresult result = CUDA_SUCCESS;
  for (Region* region = heap->regions.first(); region != nullptr; region = region->next) {
    if (!region->state.mapped || region->access_version == version) continue;
    region->access_version = version;
    const CUresult set = backing_->set_access(*region, heap->access, heap->accessors);
    if (set != CUDA_SUCCESS) result = set;
  }
  return result;
}

std::size_t Space::forget(CUcontext context) {
  Region* goes = nullptr;
  std::size_t held = 0;
  {
    const Guard guard(lock_);
    Heap* heap = known(context);
    if (heap == nullptr || context == nullptr) return 0;
    while (Region* region = heap->regions.first()) {
      held += held_in(*region);
      if (region->slab != nullptr) ::munmap(region->slab, Slab::kSlabBytes);
      region->slab = nullptr;
      retire(*heap, region, &goes);
    }
    while (Region* region = heap->cached.first()) {
      uncache(*heap, region);
      region->next_moving = goes;
      goes = region;
    }
    heap->slabs.drop_spares();
    heap->~Heap();
    new (heap) Heap();
  }
  while (goes != nullptr) {
    Region* region = goes;
    goes = region->next_moving;
    dispose_dead(region);
  }
  return held;
}

}  // namespace fairlead::shim::memory
