// Pointer attributes.
#include <cstring>
#include <set>

#include "softgpu/driver/memory/managed_memory.h"
#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/memory/pool.h"
#include "softgpu/driver/memory/virtual_memory.h"
#include "softgpu/mutex.h"

using softgpu::healthy_context;
using softgpu::Known;

namespace {

template <typename T>
CUresult store(void* value, T content) {
  std::memcpy(value, &content, sizeof content);
  return CUDA_SUCCESS;
}

// Allocations for which SYNC_MEMOPS was set. Nothing follows from it: synchronous calls here always wait.
struct SyncMarks {
  softgpu::Mutex mutex;
  std::set<std::uint64_t> begins SOFTGPU_GUARDED_BY(mutex);
};

SyncMarks& sync_marks() {
  static auto* instance = new SyncMarks;
  return *instance;
}

bool sync_marked(std::uint64_t begin) {
  const softgpu::LockGuard guard(sync_marks().mutex);
  return sync_marks().begins.contains(begin);
}

CUcontext context_of(const Known& known) {
  switch (known.kind) {
    case Known::Kind::kDevice: return softgpu::memory_owner(known.extent.begin);  // null for memory of pools
    case Known::Kind::kManaged: return softgpu::ManagedMemory::instance().at(known.extent.begin).context;
    default: return nullptr;
  }
}

std::shared_ptr<softgpu::Pool> pool_of(const Known& known) {
  return known.kind == Known::Kind::kDevice ? softgpu::Pools::instance().find(known.extent.begin) : nullptr;
}

unsigned long long handle_types_of(const Known& known) {
  if (const auto pool = pool_of(known); pool != nullptr) return pool->properties.handleTypes;
  if (known.kind != Known::Kind::kMapped) return CU_MEM_HANDLE_TYPE_NONE;
  const auto mapping = softgpu::VirtualMemory::instance().mapping_at(known.extent.begin);
  return mapping.memory != nullptr ? mapping.memory->properties.requestedHandleTypes : CU_MEM_HANDLE_TYPE_NONE;
}

bool accessible(const Known& known, CUdeviceptr address) {
  return known.kind != Known::Kind::kMapped || softgpu::VirtualMemory::instance().accessible(address, 1);
}

CUresult attribute_of(const Known& known, CUdeviceptr address, CUpointer_attribute attribute, void* value) {
  const bool device = known.device != nullptr;
  const bool managed = known.kind == Known::Kind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return store(value, context_of(known));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return store<unsigned>(value, device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return store<CUdeviceptr>(value, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return device && !managed ? CUDA_ERROR_INVALID_VALUE : store(value, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return store<unsigned>(value, sync_marked(known.extent.begin) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return store<unsigned>(value, managed ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return store<unsigned>(value, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return store<unsigned long long>(value, known.extent.begin);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return store<int>(value, device ? known.device->ordinal : 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return store<unsigned>(value, known.kind == Known::Kind::kDevice && pool_of(known) == nullptr ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return store<CUdeviceptr>(value, known.extent.begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return store<std::size_t>(value, known.extent.end - known.extent.begin);
    case CU_POINTER_ATTRIBUTE_MAPPED: return store<unsigned>(value, accessible(known, address) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return store<unsigned long long>(value, handle_types_of(known));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return store<unsigned>(value, accessible(known, address) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
      const auto pool = pool_of(known);
      return store(value, pool != nullptr ? softgpu::Pools::instance().handle_of(*pool) : nullptr);
    }
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

// Only SYNC_MEMOPS can be set.
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Known known;
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(look_up(address, known));
  if (known.device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned flag = 0;
  std::memcpy(&flag, value, sizeof flag);
  const softgpu::LockGuard guard(sync_marks().mutex);
  if (flag != 0) {
    sync_marks().begins.insert(known.extent.begin);
  } else {
    sync_marks().begins.erase(known.extent.begin);
  }
  return CUDA_SUCCESS;
}
