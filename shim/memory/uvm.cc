// Managed memory in place of device memory: the paper's way. The driver moves pages when they are touched; the four modes
// are what is done beside that (figure 4). Managed memory is there from the first touch on, so there is nothing to map.
#include "shim/driver.h"
#include "shim/memory/backing.h"

namespace fairlead::shim::memory {
namespace {

bool supported(CUdevice device) {
  int managed = 0, concurrent = 0;
  return FAIRLEAD_REAL(cuDeviceGetAttribute)(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device) == CUDA_SUCCESS &&
         FAIRLEAD_REAL(cuDeviceGetAttribute)(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device) ==
             CUDA_SUCCESS &&
         managed != 0 && concurrent != 0;
}

// A driver's managed memory usually begins at a granule; where it does not, a granule more is taken, which costs
// addresses and no memory.
CUresult reserve(Region& region) {
  CUdeviceptr address = 0;
  CUresult result = FAIRLEAD_REAL(cuMemAllocManaged)(&address, region.bytes, CU_MEM_ATTACH_GLOBAL);
  if (result == CUDA_SUCCESS && address % kGranule != 0) {
    FAIRLEAD_REAL(cuMemFree_v2)(address);
    result = FAIRLEAD_REAL(cuMemAllocManaged)(&address, region.bytes + kGranule, CU_MEM_ATTACH_GLOBAL);
  }
  if (result != CUDA_SUCCESS) return result;
  region.reserved = address;
  region.start = round_up(address, kGranule);
  return CUDA_SUCCESS;
}

void release(Region& region) {
  FAIRLEAD_REAL(cuMemFree_v2)(region.reserved);
}

CUresult map(Region&, const CUmemAccessDesc*, unsigned) {
  return CUDA_SUCCESS;
}

CUresult unmap(Region&) {
  return CUDA_SUCCESS;
}

CUresult prefetch(const Region& region, CUmemLocation to, CUstream stream) {
  if (driver_has(Symbol::cuMemPrefetchAsync_v2)) {
    return FAIRLEAD_REAL(cuMemPrefetchAsync_v2)(region.start, region.bytes, to, 0, stream);
  }
  const CUdevice device = to.type == CU_MEM_LOCATION_TYPE_DEVICE ? to.id : CU_DEVICE_CPU;
  return FAIRLEAD_REAL(cuMemPrefetchAsync)(region.start, region.bytes, device, stream);
}

CUresult prefer(const Region& region, CUdevice device) {
  if (driver_has(Symbol::cuMemAdvise_v2)) {
    return FAIRLEAD_REAL(cuMemAdvise_v2)(region.start, region.bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                                         {CU_MEM_LOCATION_TYPE_DEVICE, device});
  }
  return FAIRLEAD_REAL(cuMemAdvise)(region.start, region.bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device);
}

// Advice is a hint: a driver that refuses it has refused nothing that the program asked for.
CUresult reserve_advised(Region& region) {
  const CUresult result = reserve(region);
  if (result == CUDA_SUCCESS) prefer(region, region.heap->device);
  return result;
}

CUresult prefetch_out(Region& region, CUstream stream) {
  return prefetch(region, {CU_MEM_LOCATION_TYPE_HOST, 0}, stream);
}

// Pages leave when others need the room.
CUresult leave_to_driver(Region&, CUstream) {
  return CUDA_SUCCESS;
}

CUresult prefetch_in(Region& region, CUstream stream) {
  return prefetch(region, {CU_MEM_LOCATION_TYPE_DEVICE, region.heap->device}, stream);
}

constexpr Backing backing(CUresult (*reserve_it)(Region&), decltype(Backing::copy_out) copy_out, bool moves) {
  return {
      .supported = supported,
      .reserve = reserve_it,
      .release = release,
      .map = map,
      .set_access = map,
      .unmap = unmap,
      .copy_out = copy_out,
      .copy_in = prefetch_in,
      .staged = false,
      .moves = moves,
      .of_context = true,
  };
}
constexpr Backing kPlain = backing(reserve, leave_to_driver, false);
constexpr Backing kAdvised = backing(reserve_advised, leave_to_driver, false);
constexpr Backing kPrefetched = backing(reserve, leave_to_driver, true);
constexpr Backing kSwapped = backing(reserve, prefetch_out, true);

}  // namespace

const Backing& uvm_backing(wire::UvmMode mode) {
  switch (mode) {
    case wire::UvmMode::kPlain: return kPlain;
    case wire::UvmMode::kAdvise: return kAdvised;
    case wire::UvmMode::kPrefetch: return kPrefetched;
    case wire::UvmMode::kPrefetchSwap: return kSwapped;
  }
  return kPlain;
}

}  // namespace fairlead::shim::memory
