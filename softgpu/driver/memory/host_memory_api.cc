// Pinned host memory: allocated by the driver or registered by the program. Kernels reach it at its host address.
#include <sys/mman.h>

#include <map>

#include "softgpu/device/memory/memory_use.h"
#include "softgpu/driver/memory/is_mapped.h"
#include "softgpu/driver/memory/memory.h"
#include "softgpu/driver/stream/stream_handle.h"
#include "softgpu/mutex.h"

using softgpu::healthy_context;

namespace {

struct HostBlock {
  std::size_t bytes = 0;
  unsigned flags = 0;
  bool registered = false;
};

// The table, and with it what devices may access (Process::add_host): both change under one lock.
struct HostBlocks {
  softgpu::Mutex mutex;
  std::map<std::uint64_t, HostBlock> blocks SOFTGPU_GUARDED_BY(mutex);  // by address
};

HostBlocks& host_blocks() {
  static auto* instance = new HostBlocks;
  return *instance;
}

constexpr unsigned kAllocFlags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

// Enters memory that the driver has just allocated: nothing that lives can lie there.
void remember(std::uint64_t address, const HostBlock& block) {
  HostBlocks& all = host_blocks();
  const softgpu::LockGuard guard(all.mutex);
  all.blocks[address] = block;
  softgpu::Process::get()->add_host(address, block.bytes);
}

// Enters the program's memory; false when a part of it is known already.
bool remember_new(std::uint64_t address, const HostBlock& block) {
  HostBlocks& all = host_blocks();
  const softgpu::LockGuard guard(all.mutex);
  const auto next = all.blocks.lower_bound(address + block.bytes);
  if (next != all.blocks.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address) return false;
  all.blocks[address] = block;
  softgpu::Process::get()->add_host(address, block.bytes);
  return true;
}

// Takes the block out of the table; false when `address` begins none of that sort.
bool forget(std::uint64_t address, bool registered, HostBlock& block) {
  HostBlocks& all = host_blocks();
  const softgpu::LockGuard guard(all.mutex);
  const auto found = all.blocks.find(address);
  if (found == all.blocks.end() || found->second.registered != registered) return false;
  block = found->second;
  all.blocks.erase(found);
  softgpu::Process::get()->remove_host(address);
  return true;
}

}  // namespace

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  CUcontext context = nullptr;
  if (address == nullptr || bytes == 0 || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  remember(number(mapping), {bytes, flags | CU_MEMHOSTALLOC_DEVICEMAP, false});
  *address = mapping;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** address, size_t bytes) {
  return cuMemHostAlloc(address, bytes, 0);
}

CUresult cuMemFreeHost(void* address) {
  CUcontext context = nullptr;
  HostBlock block;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  if (address == nullptr) return CUDA_SUCCESS;
  SOFTGPU_TRY(context->synchronise());
  if (!forget(number(address), false, block)) return CUDA_ERROR_INVALID_VALUE;
  softgpu::MemoryUse::retire_mapping(number(address), block.bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  CUcontext context = nullptr;
  if (address == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (!softgpu::is_mapped(address, bytes)) return CUDA_ERROR_INVALID_VALUE;  // kernels would read what is not there
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  const softgpu::Known known = softgpu::find_memory(number(address));
  const bool pageable = known.kind == softgpu::Known::Kind::kNothing || known.kind == softgpu::Known::Kind::kHost;
  const bool device = softgpu::Process::get()->owner_of(number(address)) != nullptr;
  if (device || !pageable) return CUDA_ERROR_INVALID_VALUE;
  return remember_new(number(address), {bytes, flags, true}) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult cuMemHostUnregister(void* address) {
  CUcontext context = nullptr;
  HostBlock block;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::uncaptured_context(context));
  SOFTGPU_TRY(context->synchronise());
  if (!forget(number(address), true, block)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  softgpu::MemoryUse::wait_for_all();  // kernels of other contexts: the program may free it as soon as this returns
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_address, void* host_address, unsigned flags) {
  CUcontext context = nullptr;
  if (device_address == nullptr || host_address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  if (softgpu::Process::get()->find_host(number(host_address)).end == 0) return CUDA_ERROR_INVALID_VALUE;
  *device_address = number(host_address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* address) {
  CUcontext context = nullptr;
  if (flags == nullptr || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  const softgpu::Extent extent = softgpu::Process::get()->find_host(number(address));
  HostBlocks& all = host_blocks();
  const softgpu::LockGuard guard(all.mutex);
  const auto found = all.blocks.find(extent.begin);
  if (extent.end == 0 || found == all.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->second.flags;
  return CUDA_SUCCESS;
}
