// Queries. A program sees its cap as the device's memory, and its allocations as the driver's own would look.
#include "shim/hooks/counted.h"

namespace fairlead::shim {
namespace {

template <typename T>
void put(void* value, T right) {
  *static_cast<T*>(value) = right;
}

// What cuMemAlloc's memory would answer, where ours is something else to the driver. False: the driver is right.
bool correct(const memory::Range& range, CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: put<CUdeviceptr>(value, range.start); return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: put<std::size_t>(value, range.bytes); return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: put<unsigned int>(value, 0); return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: put<unsigned int>(value, CU_MEMORYTYPE_DEVICE); return true;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (range.context == nullptr) return false;
      put<CUcontext>(value, range.context);
      return true;
    default: return false;
  }
}

template <typename Bytes>
void show_capped_total(Bytes* total) {
  std::size_t free = *total;
  std::size_t shown = *total;
  memory::show_capped(&free, &shown);
  *total = shown;
}

}  // namespace
}  // namespace fairlead::shim

using namespace fairlead::shim;

HOOK cuMemGetInfo_v2(size_t* free, size_t* total) {
  enter_process();
  const CUresult result = FAIRLEAD_REAL(cuMemGetInfo_v2)(free, total);
  if (result == CUDA_SUCCESS && !bypassed() && free != nullptr && total != nullptr) memory::show_capped(free, total);
  return result;
}

HOOK cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  enter_process();
  const CUresult result = FAIRLEAD_REAL(cuDeviceTotalMem_v2)(bytes, device);
  if (result == CUDA_SUCCESS && !bypassed()) show_capped_total(bytes);
  return result;
}

HOOK cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const Passage passage;
  memory::Range range;
  if (passage.slot() == nullptr || !memory::find(address, &range)) {
    return FAIRLEAD_REAL(cuMemGetAddressRange_v2)(base, bytes, address);
  }
  if (base != nullptr) *base = range.start;
  if (bytes != nullptr) *bytes = range.bytes;
  return CUDA_SUCCESS;
}

HOOK cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const Passage passage;
  memory::Range range;
  const bool ours = passage.slot() != nullptr && value != nullptr && memory::find(address, &range);
  // A host pointer is what only managed memory has.
  if (ours && attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER) return CUDA_ERROR_INVALID_VALUE;
  if (ours && correct(range, attribute, value)) return CUDA_SUCCESS;
  return FAIRLEAD_REAL(cuPointerGetAttribute)(value, attribute, address);
}

HOOK cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  const Passage passage;
  const CUresult result = FAIRLEAD_REAL(cuPointerGetAttributes)(count, attributes, values, address);
  memory::Range range;
  if (result != CUDA_SUCCESS || passage.slot() == nullptr || !memory::find(address, &range)) return result;
  for (unsigned int i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
      put<void*>(values[i], nullptr);
    } else {
      correct(range, attributes[i], values[i]);
    }
  }
  return result;
}

GATED(cuMemRangeGetAttribute,
      (void* value, size_t size, CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes),
      (value, size, attribute, address, bytes))
GATED(cuMemRangeGetAttributes,
      (void** values, size_t* sizes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr address,
       size_t bytes),
      (values, sizes, attributes, count, address, bytes))
