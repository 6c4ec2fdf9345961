// Physical memory that comes and goes under a reserved address. The handle of the memory is given back as soon as it is
// mapped: the mapping keeps the memory, and unmapping frees it.
#include "shim/driver.h"
#include "shim/memory/backing.h"

namespace fairlead::shim::memory {
namespace {

CUmemAllocationProp properties(CUdevice device) {
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return wanted;
}

bool supported(CUdevice device) {
  int has = 0;
  std::size_t granularity = 0;
  const CUmemAllocationProp wanted = properties(device);
  return FAIRLEAD_REAL(cuDeviceGetAttribute)(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) ==
             CUDA_SUCCESS &&
         has != 0 &&
         FAIRLEAD_REAL(cuMemGetAllocationGranularity)(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
             CUDA_SUCCESS &&
         granularity != 0 && kGranule % granularity == 0;
}

CUresult reserve(Region& region) {
  region.reserved = 0;
  return FAIRLEAD_REAL(cuMemAddressReserve)(&region.start, region.bytes, kGranule, 0, 0);
}

void release(Region& region) {
  FAIRLEAD_REAL(cuMemAddressFree)(region.start, region.bytes);
}

CUresult set_access(Region& region, const CUmemAccessDesc* access, unsigned accessors) {
  return FAIRLEAD_REAL(cuMemSetAccess)(region.start, region.bytes, access, accessors);
}

CUresult map(Region& region, const CUmemAccessDesc* access, unsigned accessors) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = properties(region.heap->device);
  CUresult result = FAIRLEAD_REAL(cuMemCreate)(&handle, region.bytes, &wanted, 0);
  if (result != CUDA_SUCCESS) return result;
  result = FAIRLEAD_REAL(cuMemMap)(region.start, region.bytes, 0, handle, 0);
  FAIRLEAD_REAL(cuMemRelease)(handle);
  if (result != CUDA_SUCCESS) return result;
  result = set_access(region, access, accessors);
  if (result != CUDA_SUCCESS) FAIRLEAD_REAL(cuMemUnmap)(region.start, region.bytes);
  return result;
}

CUresult unmap(Region& region) {
  return FAIRLEAD_REAL(cuMemUnmap)(region.start, region.bytes);
}

CUresult copy_out(Region& region, CUstream stream) {
  for (std::size_t done = 0; done < region.bytes;) {
    char* to = region.staged.host + done;
    const std::size_t bytes = Staging::stretch(region.staged, done);
    const CUresult result = FAIRLEAD_REAL(cuMemcpyDtoHAsync_v2)(to, region.start + done, bytes, stream);
    if (result != CUDA_SUCCESS) return result;
    done += bytes;
  }
  return CUDA_SUCCESS;
}

CUresult copy_in(Region& region, CUstream stream) {
  for (std::size_t done = 0; done < region.bytes;) {
    const char* from = region.staged.host + done;
    const std::size_t bytes = Staging::stretch(region.staged, done);
    const CUresult result = FAIRLEAD_REAL(cuMemcpyHtoDAsync_v2)(region.start + done, from, bytes, stream);
    if (result != CUDA_SUCCESS) return result;
    done += bytes;
  }
  return CUDA_SUCCESS;
}

constexpr Backing kVmm = {
    .supported = supported,
    .reserve = reserve,
    .release = release,
    .map = map,
    .set_access = set_access,
    .unmap = unmap,
    .copy_out = copy_out,
    .copy_in = copy_in,
    .staged = true,
    .moves = true,
    .of_context = false,
};

}  // namespace

const Backing& vmm_backing() {
  return kVmm;
}

}  // namespace fairlead::shim::memory
