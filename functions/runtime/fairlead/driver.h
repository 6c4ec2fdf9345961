// The driver's entry points, for the parts of this library that call it. Not for functions.
#pragma once

#define CUDA_ABI_EXACT_NAMES
#include "abi/cuda.h"

namespace fairlead {

// clang-format off
#define FAIRLEAD_DRIVER_CALLS(X) \
  X(cuInit) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceTotalMem_v2) \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
  X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemsetD8_v2) \
  X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuEventCreate) \
  X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime) \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemImportFromShareableHandle) X(cuMemMap) X(cuMemUnmap) \
  X(cuMemRelease) X(cuMemSetAccess)
// clang-format on

struct Driver {
#define FAIRLEAD_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  FAIRLEAD_DRIVER_CALLS(FAIRLEAD_DRIVER_MEMBER)
#undef FAIRLEAD_DRIVER_MEMBER
};

// Throws Error("Gpu...") unless the result is success.
void check_driver(const Driver& driver, CUresult result, const char* call);

}  // namespace fairlead
