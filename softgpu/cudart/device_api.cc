// Devices.
#include <algorithm>

#include "softgpu/cudart/api.h"

using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::report;
using softgpu::cudart::with_driver;

namespace {

// Runs a call between this thread's context and a peer's.
template <typename Call>
cudaError_t with_peer(int peer, const Call& call) {
  return in_context([&](const Driver& driver) {
    CUcontext context = nullptr;
    const cudaError_t error = softgpu::cudart::primary_context(driver, peer, context);
    return error != cudaSuccess ? error : static_cast<cudaError_t>(call(driver, context));
  });
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return report(cudaErrorInvalidValue);
  *count = 0;
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetCount(count); });
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return report(cudaErrorInvalidValue);
  return with_driver([&](const Driver& driver) {
    CUcontext context = nullptr;
    *device = softgpu::cudart::current_device();
    const CUresult result = driver.cuCtxGetCurrent(&context);
    return result == CUDA_SUCCESS && context != nullptr ? driver.cuCtxGetDevice(device) : result;
  });
}

cudaError_t cudaSetDevice(int device) {
  return with_driver([&](const Driver& driver) { return softgpu::cudart::select_device(driver, device); });
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  return with_driver([&](const Driver& driver) {
    CUcontext context = nullptr;
    if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
      const CUresult result = driver.cuDevicePrimaryCtxSetFlags(device, device_flags);
      if (result != CUDA_SUCCESS) return static_cast<cudaError_t>(result);
    }
    return softgpu::cudart::primary_context(driver, device, context);
  });
}

// The list's first device becomes the thread's; the others stand by for devices that another process has for itself.
cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (count < 0 || (count > 0 && devices == nullptr)) return report(cudaErrorInvalidValue);
  return count == 0 ? cudaSuccess : cudaSetDevice(devices[0]);
}

// The first device that has at least what is wanted, else the first of all.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  int count = 0;
  if (device == nullptr || wanted == nullptr) return report(cudaErrorInvalidValue);
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  *device = 0;
  for (int candidate = count - 1; candidate >= 0; --candidate) {
    cudaDeviceProp has;
    if (const cudaError_t error = cudaGetDeviceProperties(&has, candidate); error != cudaSuccess) return error;
    const bool is_new_enough = has.major * 10 + has.minor >= wanted->major * 10 + wanted->minor;
    if (is_new_enough && has.totalGlobalMem >= wanted->totalGlobalMem) *device = candidate;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetAttribute(value, attribute, device); });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetByPCIBusId(device, id); });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetPCIBusId(id, length, device); });
}

cudaError_t cudaDeviceSynchronize(void) {
  return in_context([](const Driver& driver) { return driver.cuCtxSynchronize(); });
}

cudaError_t cudaDeviceReset(void) {
  return with_driver([](const Driver& driver) { return softgpu::cudart::reset_device(driver); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return in_context([&](const Driver& driver) { return driver.cuCtxSetLimit(limit, value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return in_context([&](const Driver& driver) { return driver.cuCtxGetLimit(value, limit); });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return in_context([&](const Driver& driver) { return driver.cuCtxSetCacheConfig(config); });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return in_context([&](const Driver& driver) { return driver.cuCtxGetCacheConfig(config); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&](const Driver& driver) { return driver.cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return with_driver([&](const Driver& driver) {
    return driver.cuDevicePrimaryCtxSetFlags(softgpu::cudart::current_device(), flags);
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return report(cudaErrorInvalidValue);
  return with_driver([&](const Driver& driver) {
    int active = 0;
    const CUresult result = driver.cuDevicePrimaryCtxGetState(softgpu::cudart::current_device(), flags, &active);
    *flags |= cudaDeviceMapHost;  // always the case in the runtime
    return result;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceCanAccessPeer(can, device, peer); });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return with_peer(
      peer, [&](const Driver& driver, CUcontext context) { return driver.cuCtxEnablePeerAccess(context, flags); });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return with_peer(peer,
                   [](const Driver& driver, CUcontext context) { return driver.cuCtxDisablePeerAccess(context); });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int target) {
  return with_driver(
      [&](const Driver& driver) { return driver.cuDeviceGetP2PAttribute(value, attribute, source, target); });
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
  return in_context([](const Driver& driver) { return driver.cuCtxResetPersistingL2Cache(); });
}
