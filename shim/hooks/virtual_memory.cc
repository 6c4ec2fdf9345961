// Memory of cuMemCreate. It lives until its handle is released and nothing is mapped to it any more, in either order: a
// program may release the handle as soon as it has mapped it. So handles and mappings are followed, and the memory counts
// until the last of them is gone.
#include "shim/hooks/counted.h"
#include "shim/lock.h"
#include "shim/table.h"

namespace fairlead::shim {
namespace {

struct Memory {
  std::uint64_t handle;
  std::uint32_t references;  // handles and mappings
};
struct Mapping {
  std::uint64_t memory;  // key in `memories`
  std::size_t bytes;
};

// Mappings are whole granules apart.
constexpr std::size_t kGranule = std::size_t{2} << 20;

constinit Lock lock;
constinit Table<Memory> memories FL_GUARDED_BY(lock);          // by a number that is never used again, as handles are
constinit Table<std::uint64_t> by_handle FL_GUARDED_BY(lock);  // open handles; the key in `memories`
constinit Table<Mapping> mappings FL_GUARDED_BY(lock);         // by address
constinit std::uint64_t last_memory FL_GUARDED_BY(lock) = 0;

std::uint64_t new_memory(CUmemGenericAllocationHandle handle) {
  const Guard guard(lock);
  const std::uint64_t number = ++last_memory;
  if (!memories.insert(number, {handle, 1}) || !by_handle.insert(handle, number)) count_passed_through();
  return key_of(KeyKind::kVirtualMemory, number);
}

void add_reference(CUmemGenericAllocationHandle handle) {
  const Guard guard(lock);
  const std::uint64_t* const number = by_handle.find(handle);
  Memory* const memory = number != nullptr ? memories.find(*number) : nullptr;
  if (memory != nullptr) ++memory->references;
}

void drop_reference(std::uint64_t number) FL_REQUIRES(lock) {
  Memory* const memory = memories.find(number);
  if (memory == nullptr || --memory->references > 0) return;
  const std::uint64_t handle = memory->handle;
  const std::uint64_t* const still = by_handle.find(handle);
  if (still != nullptr && *still == number) by_handle.erase(handle);
  memories.erase(number);
  memory::forget(key_of(KeyKind::kVirtualMemory, number));
}

void release(CUmemGenericAllocationHandle handle) {
  const Guard guard(lock);
  const std::uint64_t* const number = by_handle.find(handle);
  if (number != nullptr) drop_reference(*number);
}

void map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  const Guard guard(lock);
  const std::uint64_t* const number = by_handle.find(handle);
  Memory* const memory = number != nullptr ? memories.find(*number) : nullptr;
  if (memory != nullptr && mappings.insert(address, {*number, bytes})) ++memory->references;
}

void unmap(CUdeviceptr address, std::size_t bytes) {
  const Guard guard(lock);
  for (CUdeviceptr at = address; at < address + bytes;) {
    const Mapping* const found = mappings.find(at);
    const Mapping mapping = found != nullptr ? *found : Mapping{0, kGranule};
    if (found != nullptr) {
      mappings.erase(at);
      drop_reference(mapping.memory);
    }
    at += mapping.bytes;
  }
}

bool on_device(const CUmemAllocationProp* properties) {
  return properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace
}  // namespace fairlead::shim

using namespace fairlead::shim;

HOOK cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                 unsigned long long flags) {
  const auto create = [&] { return FAIRLEAD_REAL(cuMemCreate)(handle, bytes, properties, flags); };
  return on_device(properties) ? count_new(bytes, create, [&] { return new_memory(*handle); }) : create();
}

// After the driver's answer: a handle that is still open cannot be given to somebody else meanwhile.
HOOK cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = FAIRLEAD_REAL(cuMemRetainAllocationHandle)(handle, address);
  if (result == CUDA_SUCCESS && !bypassed()) add_reference(*handle);
  return result;
}

// The reference goes first, as in count_gone: a released handle's number may be given out again at once.
HOOK cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!bypassed()) release(handle);
  return FAIRLEAD_REAL(cuMemRelease)(handle);
}

HOOK cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
              unsigned long long flags) {
  const CUresult result = FAIRLEAD_REAL(cuMemMap)(address, bytes, offset, handle, flags);
  if (result == CUDA_SUCCESS && !bypassed()) map(address, bytes, handle);
  return result;
}

HOOK cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const CUresult result = FAIRLEAD_REAL(cuMemUnmap)(address, bytes);
  if (result == CUDA_SUCCESS && !bypassed()) unmap(address, bytes);
  return result;
}

QUEUED_BOTH(cuMemMapArrayAsync, (void* maps, unsigned int count, CUstream stream), (maps, count, stream))
