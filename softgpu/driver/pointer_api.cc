// Pointer attributes.
#include <cstring>

#include "softgpu/driver/memory.h"

using softgpu::healthy_context;
using softgpu::Known;

namespace {

template <typename T>
CUresult store(void* value, T content) {
  std::memcpy(value, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult attribute_of(const Known& known, CUdeviceptr address, CUpointer_attribute attribute, void* value) {
  const bool device = known.device != nullptr;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return store(value, device ? softgpu::memory_owner(known.extent.begin) : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(value, device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return store<CUdeviceptr>(value, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return device ? CUDA_ERROR_INVALID_VALUE : store(value, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return store<unsigned>(value, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return store<unsigned long long>(value, known.extent.begin);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return store<int>(value, device ? known.device->ordinal : 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: return store<unsigned>(value, device ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return store<CUdeviceptr>(value, known.extent.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return store<std::size_t>(value, known.extent.end - known.extent.begin);
    case CU_POINTER_ATTRIBUTE_MAPPED: return store<unsigned>(value, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return store<unsigned long long>(value, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return store<unsigned>(value, 3);  // read and write
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return store<void*>(value, nullptr);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Unknown memory leaves a blank of the attribute's size.
void store_blank(CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: store<unsigned>(value, 0); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: store<int>(value, CU_DEVICE_INVALID); break;
    default: store<unsigned long long>(value, 0);
  }
}

CUresult look_up(CUdeviceptr address, Known& known) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  known = softgpu::find_memory(address);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Known known;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(look_up(address, known));
  if (known.extent.end == 0) return CUDA_ERROR_INVALID_VALUE;
  return attribute_of(known, address, attribute, value);
}

// Unlike the single query this one succeeds for unknown memory.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  Known known;
  if (count == 0 || attributes == nullptr || values == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(look_up(address, known));
  for (unsigned i = 0; i < count; ++i) {
    const bool stored = known.extent.end != 0 && attribute_of(known, address, attributes[i], values[i]) == CUDA_SUCCESS;
    if (!stored) store_blank(attributes[i], values[i]);
  }
  return CUDA_SUCCESS;
}
