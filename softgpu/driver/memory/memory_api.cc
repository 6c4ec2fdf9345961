// Device memory.
#include "softgpu/driver/memory/graph_memory.h"
#include "softgpu/driver/memory/managed_memory.h"
#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/memory/pool.h"

using softgpu::healthy_context;
using softgpu::ManagedMemory;

namespace softgpu {

bool release_memory(CUcontext context, std::uint64_t address) {
  return context->heap().release(address);
}

CUcontext memory_owner(std::uint64_t address) {
  CUcontext current = nullptr;
  if (current_context(current) == CUDA_SUCCESS && current->heap().owns(address)) return current;
  return find_context([&](CUctx_st& context) { return context.heap().owns(address); });
}

}  // namespace softgpu

namespace {

constexpr std::size_t kPitchAlignment = 512;

CUresult free_managed(CUdeviceptr address) {
  const auto allocation = ManagedMemory::instance().at(address);
  const bool is_variable = allocation.context == nullptr;  // goes with its module
  if (allocation.extent.begin != address || is_variable) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(allocation.context->synchronise());
  return ManagedMemory::instance().release(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult free_pooled(softgpu::Pool& pool, CUdeviceptr address) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  SOFTGPU_TRY(context->synchronise());
  if (!pool.begin_free(address)) return CUDA_ERROR_INVALID_VALUE;
  pool.end_free(address);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  CUcontext context = nullptr;
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  *free_bytes = context->device().free_bytes();
  *total_bytes = context->device().total_bytes();
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  CUcontext context = nullptr;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  if (bytes > context->device().total_bytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t allocated = context->heap().allocate(bytes);
  if (allocated == 0) return context->active() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *address = allocated;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width_bytes, size_t height,
                            unsigned element_bytes) {
  const bool element_known = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (pitch == nullptr || width_bytes == 0 || height == 0 || !element_known) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t row = (width_bytes + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (row < width_bytes || height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
  SOFTGPU_TRY(cuMemAlloc_v2(address, row * height));
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  if (address == 0) return CUDA_SUCCESS;
  if (ManagedMemory::instance().at(address).extent.end != 0) return free_managed(address);
  if (const auto pool = softgpu::Pools::instance().find(address); pool != nullptr) return free_pooled(*pool, address);
  CUcontext owner = softgpu::memory_owner(address);
  if (owner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!owner->streams().idle()) SOFTGPU_TRY(owner->synchronise());
  if (softgpu::GraphMemory::find(address) != nullptr) return softgpu::free_graph_memory(address);
  return softgpu::release_memory(owner, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(healthy_context(context));
  const softgpu::Extent extent = softgpu::find_extent(address);
  if (extent.end == 0) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = extent.begin;
  if (bytes != nullptr) *bytes = extent.end - extent.begin;
  return CUDA_SUCCESS;
}
