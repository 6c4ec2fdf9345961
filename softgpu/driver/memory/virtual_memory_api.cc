// Virtual memory management (cuMemCreate, cuMemMap and their kin). The rules that NVIDIA documents are checked here; what
// the objects are is in virtual_memory.h.
#include "softgpu/driver/memory/virtual_memory.h"

using softgpu::DriverDevice;
using softgpu::get_device;
using softgpu::kPageBytes;
using softgpu::MemoryHandles;
using softgpu::PhysicalMemory;
using softgpu::Process;
using softgpu::VirtualMemory;

namespace {

bool whole_pages(std::uint64_t bytes) {
  return bytes != 0 && bytes % kPageBytes == 0;
}

CUresult initialised() {
  return Process::get() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult check_range(CUdeviceptr address, size_t bytes) {
  SOFTGPU_TRY(initialised());
  return address % kPageBytes == 0 && whole_pages(bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Only memory of a device, pinned there, exportable at most as a file descriptor.
CUresult check_properties(const CUmemAllocationProp* properties, DriverDevice*& device) {
  SOFTGPU_TRY(initialised());
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  const auto exportable = properties->requestedHandleTypes;
  if (exportable != CU_MEM_HANDLE_TYPE_NONE && exportable != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return get_device(properties->location.id, device);
}

CUresult create(DriverDevice& device, const CUmemAllocationProp& properties, std::uint64_t pages,
                CUmemGenericAllocationHandle& handle) {
  softgpu::Share share;
  softgpu::PageEntry first = {softgpu::PageEntry::Kind::kPrivate, device.device->self(), {}, softgpu::kNoWindowPage};
  if (properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    auto made = Process::get()->shares().create(
        {softgpu::ShareContent::Kind::kAllocation, device.device->memory_id(), pages, device.device->self()});
    if (!made) return CUDA_ERROR_OPERATING_SYSTEM;
    share = std::move(*made);
    first = {softgpu::PageEntry::Kind::kShared, {}, share.name(), 0};
  }
  auto runs = device.device->claim_pages(first, pages);
  if (runs.empty()) return CUDA_ERROR_OUT_OF_MEMORY;
  handle = MemoryHandles::instance().add(
      std::make_shared<PhysicalMemory>(device, properties, std::move(runs), std::move(share)));
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  DriverDevice* device = nullptr;
  if (granularity == nullptr || option < CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
      option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(check_properties(properties, device));
  *granularity = kPageBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
  SOFTGPU_TRY(initialised());
  if (address == nullptr || !whole_pages(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::uint64_t reserved = 0;
  SOFTGPU_TRY(VirtualMemory::instance().reserve(reserved, bytes, alignment, hint));
  *address = reserved;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  SOFTGPU_TRY(check_range(address, bytes));
  return VirtualMemory::instance().free(address, bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  DriverDevice* device = nullptr;
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_properties(properties, device));
  if (!whole_pages(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > device->device->total_bytes() || device->device->faults().take_allocation_failure()) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return create(*device, *properties, bytes / kPageBytes, *handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  SOFTGPU_TRY(initialised());
  return MemoryHandles::instance().release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  SOFTGPU_TRY(check_range(address, bytes));
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto memory = MemoryHandles::instance().find(handle);
  return memory != nullptr ? VirtualMemory::instance().map(address, bytes, memory) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  SOFTGPU_TRY(check_range(address, bytes));
  return VirtualMemory::instance().unmap(address, bytes);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  SOFTGPU_TRY(check_range(address, bytes));
  if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::uint32_t allowed = 0;
  std::uint32_t refused = 0;
  for (size_t i = 0; i < count; ++i) {
    DriverDevice* device = nullptr;
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    SOFTGPU_TRY(get_device(access[i].location.id, device));
    switch (access[i].flags) {
      case CU_MEM_ACCESS_FLAGS_PROT_READWRITE: allowed |= 1U << device->ordinal; break;
      case CU_MEM_ACCESS_FLAGS_PROT_NONE: refused |= 1U << device->ordinal; break;
      case CU_MEM_ACCESS_FLAGS_PROT_READ: return CUDA_ERROR_NOT_SUPPORTED;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }
  VirtualMemory& memory = VirtualMemory::instance();
  if (refused != 0) SOFTGPU_TRY(memory.set_access(address, bytes, refused, false));
  return allowed != 0 ? memory.set_access(address, bytes, allowed, true) : CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  DriverDevice* device = nullptr;
  SOFTGPU_TRY(initialised());
  if (flags == nullptr || location == nullptr || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(get_device(location->id, device));
  const auto mapping = VirtualMemory::instance().mapping_at(address);
  if (mapping.memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool allowed = (mapping.access & 1U << device->ordinal) != 0;
  *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  SOFTGPU_TRY(initialised());
  const auto memory = MemoryHandles::instance().find(handle);
  if (properties == nullptr || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = memory->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  SOFTGPU_TRY(initialised());
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto mapping = VirtualMemory::instance().mapping_at(reinterpret_cast<std::uint64_t>(address));
  if (mapping.memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = MemoryHandles::instance().retain(mapping.memory);
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  SOFTGPU_TRY(initialised());
  const auto memory = MemoryHandles::instance().find(handle);
  if (shareable == nullptr || flags != 0 || memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !memory->share.valid()) return CUDA_ERROR_INVALID_VALUE;
  softgpu::note_shared_memory();
  const int descriptor = memory->share.duplicate();
  if (descriptor < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = descriptor;
  return CUDA_SUCCESS;
}

// The descriptor comes as the pointer's value, as CUDA has it.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  SOFTGPU_TRY(initialised());
  if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
  auto share = Process::get()->shares().import(descriptor);
  if (!share || share->content().kind != softgpu::ShareContent::Kind::kAllocation) return CUDA_ERROR_INVALID_VALUE;
  DriverDevice* device = Process::get()->device_of_memory(share->content().memory);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  softgpu::note_shared_memory();
  const softgpu::PageEntry first = {softgpu::PageEntry::Kind::kShared, {}, share->name(), 0};
  auto runs = device->device->find_pages(first, share->content().page_count);
  if (runs.empty()) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
  *handle = MemoryHandles::instance().add(
      std::make_shared<PhysicalMemory>(*device, properties, std::move(runs), std::move(*share)));
  return CUDA_SUCCESS;
}
