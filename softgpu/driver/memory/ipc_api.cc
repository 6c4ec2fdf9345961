// Memory shared between processes. A handle names the owner and the pages of its window; the importer maps the same
// pages at an address of its own. As on hardware the exporter must keep the memory until the importers have closed it.
#include <cstring>

#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/memory/pool.h"
#include "softgpu/driver/stream/stream_handle.h"

using softgpu::healthy_context;
using softgpu::kPageBytes;

namespace {

constexpr std::uint32_t kHandleMagic = 0x69706331;  // "ipc1"

struct HandleContent {
  std::uint32_t magic;
  std::uint32_t device;
  std::uint32_t owner;  // Owner::pack
  std::uint32_t page_count;
  std::uint64_t window_page;
  std::uint64_t offset;  // of the allocation in its first page
  std::uint64_t bytes;
};
static_assert(sizeof(HandleContent) <= sizeof(CUipcMemHandle));

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  CUcontext context = nullptr;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  softgpu::DriverDevice* device = softgpu::Process::get()->owner_of(address);
  const softgpu::Extent extent = softgpu::find_extent(address);
  if (device == nullptr || extent.end == 0 || extent.begin != address) return CUDA_ERROR_INVALID_VALUE;
  if (softgpu::Pools::instance().find(address) != nullptr) return CUDA_ERROR_INVALID_VALUE;  // exported by their pool
  softgpu::note_shared_memory();
  const std::uint64_t window_page = device->device->window().window_page(address);
  const std::uint64_t offset = address % kPageBytes;
  const std::uint64_t bytes = extent.end - extent.begin;
  const HandleContent content = {kHandleMagic,
                                 device->device->memory_id(),
                                 device->device->self().pack(),
                                 static_cast<std::uint32_t>((offset + bytes + kPageBytes - 1) / kPageBytes),
                                 window_page,
                                 offset,
                                 bytes};
  *handle = {};
  std::memcpy(handle->reserved, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  CUcontext context = nullptr;
  if (address == nullptr || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  HandleContent content = {};
  std::memcpy(&content, handle.reserved, sizeof content);
  softgpu::Device& device = context->device();
  if (content.magic != kHandleMagic || content.device != device.memory_id()) return CUDA_ERROR_INVALID_VALUE;
  // A handle comes from another process: nothing of it is trusted.
  const std::uint64_t pages = content.page_count;
  if (pages > device.total_bytes() / kPageBytes || content.offset >= kPageBytes || content.bytes == 0 ||
      content.bytes > pages * kPageBytes - content.offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (content.owner == device.self().pack()) return CUDA_ERROR_INVALID_CONTEXT;  // not in the exporting process
  softgpu::note_shared_memory();
  const auto runs = device.find_pages(softgpu::Owner::unpack(content.owner), content.window_page, content.page_count);
  if (runs.empty()) return CUDA_ERROR_INVALID_HANDLE;
  const std::uint64_t mapped = context->heap().adopt(runs, content.offset, content.bytes);
  if (mapped == 0) return CUDA_ERROR_MAP_FAILED;
  *address = mapped;
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  CUcontext context = nullptr;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  CUcontext owner = softgpu::memory_owner(address);
  if (owner == nullptr || !owner->heap().adopted(address)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(owner->synchronise());
  return softgpu::release_memory(owner, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
