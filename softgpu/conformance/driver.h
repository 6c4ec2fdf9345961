// The CUDA driver under test: libcuda.so.1, opened at run time, so that the same binary checks the software GPU and a real
// one. Entry points are reached as driver().cuMemAlloc(...), with the names and versions of abi/cuda.h.
#pragma once

#include <string>

#include "abi/cuda.h"

// clang-format off
#define CONFORMANCE_ENTRY_POINTS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuGetProcAddress) \
  X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxGetState) \
  X(cuCtxCreate_v2) X(cuCtxDestroy) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxSetCurrent) X(cuCtxGetCurrent) \
  X(cuCtxGetDevice) X(cuCtxSynchronize) X(cuCtxSetLimit) X(cuCtxGetLimit) X(cuCtxGetStreamPriorityRange) \
  X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoad) X(cuModuleUnload) X(cuModuleGetFunction) \
  X(cuModuleGetGlobal) X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuMemGetInfo) X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemFree) X(cuMemGetAddressRange) X(cuMemAllocHost) \
  X(cuMemFreeHost) X(cuMemHostAlloc) X(cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuMemHostRegister) \
  X(cuMemHostUnregister) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuPointerGetAttribute) \
  X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) \
  X(cuMemcpyDtoDAsync) X(cuMemcpy2D) X(cuMemsetD8) X(cuMemsetD16) X(cuMemsetD32) X(cuMemsetD2D8) X(cuMemsetD2D32) \
  X(cuMemsetD8Async) X(cuMemsetD32Async) \
  X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(cuStreamQuery) X(cuStreamSynchronize) \
  X(cuStreamWaitEvent) X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuEventCreate) X(cuEventDestroy) \
  X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) X(cuEventElapsedTime) \
  X(cuLaunchKernel) X(cuLaunchCooperativeKernel) X(cuLaunchHostFunc)
// clang-format on

namespace softgpu::conformance {

struct Driver {
#define CONFORMANCE_MEMBER(name) decltype(&::name) name = nullptr;
  CONFORMANCE_ENTRY_POINTS(CONFORMANCE_MEMBER)
#undef CONFORMANCE_MEMBER
};

// Opens `library` and resolves every entry point; one that an old driver lacks returns CUDA_ERROR_NOT_SUPPORTED. False,
// and why in `error`, if the library cannot be opened or is no CUDA driver. Called once, before driver().
bool open_driver(const char* library, std::string& error);

const Driver& driver();

// "CUDA_ERROR_INVALID_VALUE", or the number of a code the driver does not know.
std::string name_of(CUresult result);

}  // namespace softgpu::conformance
