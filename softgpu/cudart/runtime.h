// What every entry point of the runtime shares: the thread's last error, its device and the context behind it.
//
// The runtime works in the device's primary context, retained with the first call that needs it, unless the program made
// another context current through the driver: then it works in that one.
#pragma once

#include "abi/cuda_runtime.h"
#include "softgpu/cudart/driver.h"

namespace softgpu::cudart {

// Remembers an error of the calling thread for cudaGetLastError and returns it.
cudaError_t report(cudaError_t error);
inline cudaError_t report(CUresult result) {
  return report(static_cast<cudaError_t>(result));  // the codes are the same numbers
}
cudaError_t last_error();
void forget_error();

// The initialised driver: INSUFFICIENT_DRIVER when there is none, or cuInit's error.
cudaError_t initialise(const Driver*& driver);

// The thread's device. Does not make it the current context's.
int current_device();
// Makes the device the thread's and its primary context current.
cudaError_t select_device(const Driver& driver, int device);
// A usable context is current afterwards.
cudaError_t bind_context(const Driver& driver);
// The primary context of a device, for calls that name two.
cudaError_t primary_context(const Driver& driver, int device, CUcontext& context);
// cudaDeviceReset for the thread's device.
cudaError_t reset_device(const Driver& driver);

// Runs a driver call that needs no context; reports its result.
template <typename Call>
cudaError_t with_driver(const Call& call) {
  const Driver* driver = nullptr;
  if (const cudaError_t error = initialise(driver); error != cudaSuccess) return report(error);
  return report(call(*driver));
}

// Runs a driver call in the thread's context; reports its result.
template <typename Call>
cudaError_t in_context(const Call& call) {
  const Driver* driver = nullptr;
  if (const cudaError_t error = initialise(driver); error != cudaSuccess) return report(error);
  if (const cudaError_t error = bind_context(*driver); error != cudaSuccess) return report(error);
  return report(call(*driver));
}

inline CUdeviceptr device_address(const void* address) {
  return reinterpret_cast<CUdeviceptr>(address);
}
inline CUdeviceptr* device_address(void** address) {
  return reinterpret_cast<CUdeviceptr*>(address);
}

}  // namespace softgpu::cudart
