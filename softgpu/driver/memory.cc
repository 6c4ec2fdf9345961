#include "softgpu/driver/memory.h"

namespace softgpu {

Extent find_extent(std::uint64_t address) {
  Process& process = *Process::get();
  DriverDevice* owner = process.owner_of(address);
  return owner != nullptr ? owner->device->window().find(address) : process.find_host(address);
}

CUresult locate(std::uint64_t address, std::uint64_t bytes, Place& place) {
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  place.device = Process::get()->owner_of(address);
  const Extent extent = find_extent(address);
  place.pinned = place.device == nullptr && extent.end != 0;
  if (place.pageable()) return CUDA_SUCCESS;
  return extent.end != 0 && bytes <= extent.end - address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace softgpu
