#include "softgpu/ptx/memory.h"

namespace softgpu::ptx {
namespace {

Region space_region(Warp& warp, const Instruction* at, Space space, std::uint64_t address, int lane) {
  switch (space) {
    case Space::kGlobal: return device_region(warp, at, address);
    case Space::kShared: return shared_region(warp);
    case Space::kLocal: return local_region(warp, lane);
    case Space::kParam: return parameter_region(warp);
    case Space::kConst: return constant_region(warp);
    case Space::kGeneric: return generic_region(warp, at, address, lane);
  }
  return {};
}

}  // namespace

Region find_device_region(Warp& warp, const Instruction* at, std::uint64_t address) {
  AddressSpace::Extent& cached = warp.extents[at->slot];
  const AddressSpace::Extent& workspace = warp.run->workspace;
  const bool in_workspace = address - workspace.begin < workspace.end - workspace.begin;
  cached = in_workspace ? workspace : warp.run->memory->find(address);
  return {cached.begin, cached.end - cached.begin, 0, true};
}

Region generic_region(Warp& warp, const Instruction* at, std::uint64_t address, int lane) {
  switch (address & ~(kWindowBytes - 1)) {
    case kSharedWindow: return shared_region(warp, kSharedWindow);
    case kLocalWindow: return local_region(warp, lane, kLocalWindow);
    case kParamWindow: return parameter_region(warp, kParamWindow);
    default: return device_region(warp, at, address);
  }
}

std::byte* locate(Warp& warp, const Instruction* at, Space space, std::uint64_t address, std::uint64_t bytes,
                  int lane) {
  const Region region = space_region(warp, at, space, address, lane);
  if ((address & (bytes - 1)) != 0) {
    raise(warp, at, FaultKind::kMisalignedAddress, address, lane);
    return nullptr;
  }
  if (!region.contains(address, bytes)) {
    raise(warp, at, FaultKind::kIllegalAddress, address, lane);
    return nullptr;
  }
  if (region.is_global) warp.global_bytes += bytes;
  return region.host(address);
}

}  // namespace softgpu::ptx
