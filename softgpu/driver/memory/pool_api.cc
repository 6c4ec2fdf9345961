// Memory pools and stream-ordered allocation.
#include "softgpu/driver/memory/graph_memory.h"
#include "softgpu/driver/memory/pool.h"
#include "softgpu/driver/stream/capture.h"

#include <cstring>

#include "softgpu/driver/memory/memory.h"

using softgpu::DriverDevice;
using softgpu::get_device;
using softgpu::healthy_stream;
using softgpu::kPageBytes;
using softgpu::Pool;
using softgpu::PoolHandles;
using softgpu::Pools;
using softgpu::Process;
using softgpu::StreamUse;

namespace {

constexpr std::uint32_t kPointerMagic = 0x70707431;  // "ppt1"

// What CUmemPoolPtrExportData holds.
struct ExportedPointer {
  std::uint32_t magic;
  std::uint32_t generation;
  std::uint32_t slot;
  std::uint32_t offset;  // of the allocation in its first page
  std::uint64_t page;
  std::uint64_t bytes;
};
static_assert(sizeof(ExportedPointer) <= sizeof(CUmemPoolPtrExportData));

CUresult check_pool(CUmemoryPool pool) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return PoolHandles::valid(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_properties(const CUmemPoolProps* properties, DriverDevice*& device) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return properties->location.type == CU_MEM_LOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE
                                                                     : CUDA_ERROR_NOT_SUPPORTED;
  }
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      properties->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return get_device(properties->location.id, device);
}

// The device that a location names, for the queries of 13.0: pools are of devices and pinned.
CUresult device_of(const CUmemLocation* location, CUmemAllocationType type, DriverDevice*& device) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (location == nullptr || type == CU_MEM_ALLOCATION_TYPE_INVALID) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return get_device(location->id, device);
}

CUresult get_number(const Pool& pool, CUmemPool_attribute attribute, std::uint64_t& value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: value = pool.release_threshold.load(); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: value = pool.reserved_bytes(); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: value = pool.reserved_high(); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: value = pool.used_bytes(); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: value = pool.used_high(); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

bool is_reuse(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  DriverDevice* device = nullptr;
  softgpu::Share share;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_properties(properties, device));
  if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    auto made = Process::get()->shares().create(
        {softgpu::ShareContent::Kind::kPool, device->device->memory_id(), 0, device->device->self()});
    if (!made) return CUDA_ERROR_OPERATING_SYSTEM;
    share = std::move(*made);
  }
  *pool = Pools::instance().add(std::make_shared<Pool>(*device, *properties, std::move(share), false));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  SOFTGPU_TRY(check_pool(pool));
  return Pools::instance().destroy(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
  SOFTGPU_TRY(check_pool(pool));
  pool->pool->trim(bytes_to_keep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  SOFTGPU_TRY(check_pool(pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_reuse(attribute)) {
    const int flag = pool->pool->reuse[attribute - 1].load();
    std::memcpy(value, &flag, sizeof flag);
    return CUDA_SUCCESS;
  }
  std::uint64_t number = 0;
  SOFTGPU_TRY(get_number(*pool->pool, attribute, number));
  std::memcpy(value, &number, sizeof number);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  SOFTGPU_TRY(check_pool(pool));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_reuse(attribute)) {
    int flag = 0;
    std::memcpy(&flag, value, sizeof flag);
    pool->pool->reuse[attribute - 1].store(flag != 0 ? 1 : 0);
    return CUDA_SUCCESS;
  }
  std::uint64_t number = 0;
  std::memcpy(&number, value, sizeof number);
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->pool->release_threshold.store(number);
    return CUDA_SUCCESS;
  }
  // The high marks can only be reset, the rest only read.
  if (number != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
    pool->pool->reset_reserved_high();
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    pool->pool->reset_used_high();
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  SOFTGPU_TRY(check_pool(pool));
  if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint32_t mask = pool->pool->access.load();
  for (size_t i = 0; i < count; ++i) {
    DriverDevice* device = nullptr;
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    SOFTGPU_TRY(get_device(access[i].location.id, device));
    const bool own = device == &pool->pool->owner;
    switch (access[i].flags) {
      case CU_MEM_ACCESS_FLAGS_PROT_READWRITE: mask |= 1U << device->ordinal; break;
      case CU_MEM_ACCESS_FLAGS_PROT_NONE:
        if (own) return CUDA_ERROR_INVALID_VALUE;
        mask &= ~(1U << device->ordinal);
        break;
      case CU_MEM_ACCESS_FLAGS_PROT_READ: return CUDA_ERROR_NOT_SUPPORTED;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  pool->pool->access.store(mask);
  pool->pool->owner.device->window().invalidate();
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(check_pool(pool));
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(get_device(location->id, device));
  const bool allowed = (pool->pool->access.load() & 1U << device->ordinal) != 0;
  *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  StreamUse use;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_pool(pool));
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (use.capturing) return softgpu::recorder_of(use).allocate(use, bytes, *address);
  return softgpu::allocate_in_stream(*pool->pool, bytes, use, *address);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  StreamUse use;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (use.capturing) return softgpu::recorder_of(use).allocate(use, bytes, *address);
  const auto pool = Pools::instance().current_of(use.context->owner())->pool;
  return softgpu::allocate_in_stream(*pool, bytes, use, *address);
}

// Also takes memory of cuMemAlloc, which is unmapped when the stream gets there.
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (address == 0) return CUDA_SUCCESS;
  if (use.capturing) return softgpu::recorder_of(use).free(use, address);
  if (softgpu::GraphMemory::find(address) != nullptr) return softgpu::free_graph_memory(address);
  if (const auto pool = Pools::instance().find(address); pool != nullptr) {
    return softgpu::free_in_stream(pool, address, use);
  }
  CUcontext owner = softgpu::memory_owner(address);
  if (owner == nullptr || softgpu::find_extent(address).begin != address) return CUDA_ERROR_INVALID_VALUE;
  if (use.context->streams().idle()) {
    return softgpu::release_memory(owner, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  use.context->streams().submit(*use.stream, [owner, address] { softgpu::release_memory(owner, address); });
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  SOFTGPU_TRY(check_pool(pool));
  const bool exportable = pool->pool->share.valid() && !pool->pool->imported;
  if (handle == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !exportable) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  softgpu::note_shared_memory();
  const int descriptor = pool->pool->share.duplicate();
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(handle) = descriptor;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto share = Process::get()->shares().import(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)));
  if (!share || share->content().kind != softgpu::ShareContent::Kind::kPool) return CUDA_ERROR_INVALID_VALUE;
  DriverDevice* device = Process::get()->device_of_memory(share->content().memory);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  softgpu::note_shared_memory();
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
  *pool = Pools::instance().add(std::make_shared<Pool>(*device, properties, std::move(*share), true));
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  if (Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const auto pool = Pools::instance().find(address);
  if (data == nullptr || pool == nullptr || !pool->share.valid() || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  const softgpu::Extent extent = softgpu::find_extent(address);
  const softgpu::ShareName name = pool->share.name();
  const ExportedPointer content = {kPointerMagic,
                                   name.generation,
                                   name.slot,
                                   static_cast<std::uint32_t>(address % kPageBytes),
                                   pool->owner.device->window().window_page(address),
                                   extent.end - extent.begin};
  *data = {};
  std::memcpy(data->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

// The data comes from another process: nothing of it is trusted.
CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  SOFTGPU_TRY(check_pool(pool));
  if (address == nullptr || data == nullptr || !pool->pool->imported) return CUDA_ERROR_INVALID_VALUE;
  ExportedPointer content = {};
  std::memcpy(&content, data->reserved, sizeof content);
  const softgpu::ShareName name = pool->pool->share.name();
  const std::uint64_t total = pool->pool->owner.device->total_bytes();
  if (content.magic != kPointerMagic || name != softgpu::ShareName{content.slot, content.generation} ||
      content.offset >= kPageBytes || content.bytes == 0 || content.bytes > total - content.offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t mapped = pool->pool->import(content.page, content.offset, content.bytes);
  if (mapped == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = mapped;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  DriverDevice* device = nullptr;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  *pool = Pools::instance().default_of(*device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  DriverDevice* device = nullptr;
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, device));
  *pool = Pools::instance().current_of(*device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(get_device(ordinal, device));
  SOFTGPU_TRY(check_pool(pool));
  if (&pool->pool->owner != device || pool->pool->imported) return CUDA_ERROR_INVALID_VALUE;
  Pools::instance().set_current(*device, pool);
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(device_of(location, type, device));
  return cuDeviceGetDefaultMemPool(pool, device->ordinal);
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(device_of(location, type, device));
  return cuDeviceGetMemPool(pool, device->ordinal);
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(device_of(location, type, device));
  return cuDeviceSetMemPool(device->ordinal, pool);
}
