#include "softgpu/driver/memory/memory.h"

#include "softgpu/driver/memory/managed_memory.h"
#include "softgpu/driver/memory/virtual_memory.h"

namespace softgpu {

Known find_memory(std::uint64_t address) {
  Process& process = *Process::get();
  if (DriverDevice* owner = process.owner_of(address); owner != nullptr) {
    const Extent extent = owner->device->window().find(address);
    return extent.end != 0 ? Known{Known::Kind::kDevice, extent, owner} : Known{};
  }
  if (const auto mapping = VirtualMemory::instance().mapping_at(address); mapping.memory != nullptr) {
    return {Known::Kind::kMapped, mapping.extent, &mapping.memory->owner};
  }
  if (const auto managed = ManagedMemory::instance().at(address); managed.extent.end != 0) {
    DriverDevice* home = managed.context != nullptr ? &managed.context->owner() : process.devices().front().get();
    return {Known::Kind::kManaged, managed.extent, home};
  }
  const Extent host = process.find_host(address);
  return host.end != 0 ? Known{Known::Kind::kHost, host, nullptr} : Known{};
}

Extent find_extent(std::uint64_t address) {
  return find_memory(address).extent;
}

CUresult locate(std::uint64_t address, std::uint64_t bytes, Place& place) {
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  const Known known = find_memory(address);
  const bool managed = known.kind == Known::Kind::kManaged;
  place = {managed ? nullptr : known.device, managed || known.kind == Known::Kind::kHost};
  if (known.kind == Known::Kind::kMapped || VirtualMemory::instance().contains(address)) {
    return VirtualMemory::instance().accessible(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (known.kind == Known::Kind::kNothing) {
    return Process::get()->owner_of(address) == nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return bytes <= known.extent.end - address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace softgpu
