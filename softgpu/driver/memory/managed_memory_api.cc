// Managed memory: allocation, prefetch, advice. All devices have concurrent managed access, so attaching memory to a
// stream changes nothing but is checked.
#include "softgpu/driver/memory/managed_memory.h"

#include <algorithm>
#include <cstring>

#include "softgpu/device/time/time_model.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::healthy_context;
using softgpu::healthy_stream;
using softgpu::ManagedMemory;
using softgpu::StreamUse;

namespace {

using Advice = ManagedMemory::Advice;

// INVALID_VALUE unless the range lies in one managed allocation.
CUresult check_range(CUdeviceptr address, size_t bytes) {
  const softgpu::Extent extent = ManagedMemory::instance().at(address).extent;
  return extent.end != 0 && bytes != 0 && bytes <= extent.end - address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_device(int device) {
  softgpu::DriverDevice* found = nullptr;
  return device == CU_DEVICE_CPU ? CUDA_SUCCESS : softgpu::get_device(device, found);
}

// The form of 12.2 to that of 8.0: all of the host is one place.
CUresult device_of(const CUmemLocation& location, int& device) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (location.id < 0) return CUDA_ERROR_INVALID_DEVICE;
      device = location.id;
      return check_device(device);
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (location.id != 0) return CUDA_ERROR_INVALID_VALUE;
      [[fallthrough]];
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: device = CU_DEVICE_CPU; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

void run_prefetch(CUcontext context, CUdeviceptr address, size_t bytes, int device) {
  if (context->fault() != CUDA_SUCCESS) return;
  const std::uint64_t begin = softgpu::monotonic_ns();
  const std::uint64_t pages = ManagedMemory::instance().prefetch(address, bytes, device);
  const softgpu::Device& own = context->device();
  own.pace(begin, softgpu::link_copy_ns(own.profile(), pages * softgpu::kPageBytes), context->cancel());
}

CUresult prefetch(CUdeviceptr address, size_t bytes, int device, CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(healthy_stream(stream, use));
  SOFTGPU_TRY(check_range(address, bytes));
  CUcontext context = use.context;
  context->streams().submit(*use.stream, [=] { run_prefetch(context, address, bytes, device); });
  return CUDA_SUCCESS;
}

CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, int device) {
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(check_range(address, bytes));
  ManagedMemory::instance().advise(address, bytes, advice, device);
  return CUDA_SUCCESS;
}

bool names_device(CUmem_advise advice) {
  return advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
         advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

// One value for the whole range: that of all pages, else `mixed`.
int common(const std::vector<Advice>& pages, int Advice::*field, int mixed) {
  const int value = pages.front().*field;
  const bool same = std::all_of(pages.begin(), pages.end(), [&](const Advice& page) { return page.*field == value; });
  return same ? value : mixed;
}

int type_of(int location) {
  if (location == CU_DEVICE_INVALID) return CU_MEM_LOCATION_TYPE_INVALID;
  return location == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
}

// The devices that all pages name, then CU_DEVICE_INVALID as often as it fits.
void store_accessed_by(const std::vector<Advice>& pages, int* values, size_t count) {
  std::uint32_t mask = UINT32_MAX;
  for (const Advice& page : pages) mask &= page.accessed_by;
  size_t stored = 0;
  for (int device = 0; device < 31 && stored < count; ++device) {
    if ((mask & 1U << device) != 0) values[stored++] = device;
  }
  if ((mask & 1U << 31) != 0 && stored < count) values[stored++] = CU_DEVICE_CPU;
  std::fill(values + stored, values + count, CU_DEVICE_INVALID);
}

CUresult range_attribute(void* value, size_t value_bytes, CUmem_range_attribute attribute,
                         const std::vector<Advice>& pages) {
  if (value == nullptr || value_bytes == 0 || value_bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto store = [&](int content) {
    if (value_bytes != sizeof content) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, &content, sizeof content);
    return CUDA_SUCCESS;
  };
  const int preferred = common(pages, &Advice::preferred, CU_DEVICE_INVALID);
  const int prefetched = common(pages, &Advice::prefetched, CU_DEVICE_INVALID);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return store(std::all_of(pages.begin(), pages.end(), [](const Advice& page) { return page.read_mostly; }));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return store(preferred);
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      store_accessed_by(pages, static_cast<int*>(value), value_bytes / sizeof(int));
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: return store(prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return store(type_of(preferred));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return store(std::max(preferred, 0));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return store(type_of(prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return store(std::max(prefetched, 0));
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult check_batch(const CUdeviceptr* addresses, const size_t* bytes, size_t count, unsigned long long flags) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  if (addresses == nullptr || bytes == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) SOFTGPU_TRY(check_range(addresses[i], bytes[i]));
  return CUDA_SUCCESS;
}

// Entry i of `devices` is where range i goes; `indices` says where each location begins to count.
CUresult spread_locations(const CUmemLocation* locations, const size_t* indices, size_t location_count, size_t count,
                          std::vector<int>& devices) {
  if (locations == nullptr || indices == nullptr || location_count == 0 || location_count > count || indices[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  devices.resize(count);
  for (size_t i = 0; i < location_count; ++i) {
    const size_t end = i + 1 < location_count ? indices[i + 1] : count;
    if (indices[i] >= end || end > count) return CUDA_ERROR_INVALID_VALUE;
    int device = 0;
    SOFTGPU_TRY(device_of(locations[i], device));
    std::fill(devices.begin() + static_cast<std::ptrdiff_t>(indices[i]),
              devices.begin() + static_cast<std::ptrdiff_t>(end), device);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  CUcontext context = nullptr;
  const bool one_flag = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (address == nullptr || bytes == 0 || !one_flag) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  const std::uint64_t allocated = ManagedMemory::instance().allocate(context, bytes, flags);
  if (allocated == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = allocated;
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  SOFTGPU_TRY(check_device(device));
  return prefetch(address, bytes, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                               CUstream stream) {
  int device = 0;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(device_of(location, device));
  return prefetch(address, bytes, device, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  if (!names_device(advice)) return advise(address, bytes, advice, 0);
  SOFTGPU_TRY(check_device(device));
  return advise(address, bytes, advice, device);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location) {
  CUcontext context = nullptr;
  int device = 0;
  SOFTGPU_TRY(healthy_context(context));
  if (names_device(advice)) SOFTGPU_TRY(device_of(location, device));
  return advise(address, bytes, advice, device);
}

CUresult cuMemRangeGetAttribute(void* value, size_t value_bytes, CUmem_range_attribute attribute, CUdeviceptr address,
                                size_t bytes) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(check_range(address, bytes));
  return range_attribute(value, value_bytes, attribute, ManagedMemory::instance().advice(address, bytes));
}

CUresult cuMemRangeGetAttributes(void** values, size_t* value_bytes, CUmem_range_attribute* attributes, size_t count,
                                 CUdeviceptr address, size_t bytes) {
  CUcontext context = nullptr;
  if (values == nullptr || value_bytes == nullptr || attributes == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(check_range(address, bytes));
  const auto pages = ManagedMemory::instance().advice(address, bytes);
  for (size_t i = 0; i < count; ++i) SOFTGPU_TRY(range_attribute(values[i], value_bytes[i], attributes[i], pages));
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* bytes, size_t count, CUmemLocation* locations,
                                 size_t* location_indices, size_t location_count, unsigned long long flags,
                                 CUstream stream) {
  std::vector<int> devices;
  SOFTGPU_TRY(check_batch(addresses, bytes, count, flags));
  SOFTGPU_TRY(spread_locations(locations, location_indices, location_count, count, devices));
  for (size_t i = 0; i < count; ++i) SOFTGPU_TRY(prefetch(addresses[i], bytes[i], devices[i], stream));
  return CUDA_SUCCESS;
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* bytes, size_t count, unsigned long long flags,
                                CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(check_batch(addresses, bytes, count, flags));
  SOFTGPU_TRY(healthy_stream(stream, use));
  for (size_t i = 0; i < count; ++i) {
    use.context->streams().submit(*use.stream, [address = addresses[i], length = bytes[i]] {
      ManagedMemory::instance().discard(address, length);
    });
  }
  return CUDA_SUCCESS;
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* bytes, size_t count,
                                           CUmemLocation* locations, size_t* location_indices, size_t location_count,
                                           unsigned long long flags, CUstream stream) {
  std::vector<int> devices;
  SOFTGPU_TRY(check_batch(addresses, bytes, count, flags));
  SOFTGPU_TRY(spread_locations(locations, location_indices, location_count, count, devices));
  SOFTGPU_TRY(cuMemDiscardBatchAsync(addresses, bytes, count, flags, stream));
  return cuMemPrefetchBatchAsync(addresses, bytes, count, locations, location_indices, location_count, flags, stream);
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  StreamUse use;
  SOFTGPU_TRY(healthy_stream(stream, use));
  const softgpu::Extent extent = ManagedMemory::instance().at(address).extent;
  if (extent.end == 0 || extent.begin != address || (bytes != 0 && bytes != extent.end - extent.begin)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST) return CUDA_SUCCESS;
  // Only a stream of the program's own can have memory to itself.
  const bool own = stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  return flags == CU_MEM_ATTACH_SINGLE && own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
