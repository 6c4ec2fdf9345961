// Memory: device, pinned, managed, stream-ordered, pools, shared between processes.
#include "softgpu/cudart/api.h"

using softgpu::cudart::device_address;
using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::report;
using softgpu::cudart::with_driver;

namespace {

constexpr unsigned kPitchElement = 4;  // bytes; the runtime does not know the program's elements

}  // namespace

cudaError_t cudaMalloc(void** address, size_t bytes) {
  if (address == nullptr) return report(cudaErrorInvalidValue);
  *address = nullptr;
  return in_context([&](const Driver& driver) {
    return bytes == 0 ? CUDA_SUCCESS : driver.cuMemAlloc(device_address(address), bytes);
  });
}

cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned flags) {
  if (address == nullptr || bytes == 0) return report(cudaErrorInvalidValue);
  return in_context(
      [&](const Driver& driver) { return driver.cuMemAllocManaged(device_address(address), bytes, flags); });
}

cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  if (address == nullptr || pitch == nullptr) return report(cudaErrorInvalidValue);
  return in_context([&](const Driver& driver) {
    *address = nullptr;
    *pitch = 0;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    return driver.cuMemAllocPitch(device_address(address), pitch, width, height, kPitchElement);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return report(cudaErrorInvalidValue);
  *memory = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  if (address == nullptr) return report(cudaErrorInvalidValue);
  *address = nullptr;
  return in_context([&](const Driver& driver) {
    return bytes == 0 ? CUDA_SUCCESS : driver.cuMemAllocAsync(device_address(address), bytes, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  if (address == nullptr) return report(cudaErrorInvalidValue);
  *address = nullptr;
  return in_context([&](const Driver& driver) {
    return bytes == 0 ? CUDA_SUCCESS : driver.cuMemAllocFromPoolAsync(device_address(address), bytes, pool, stream);
  });
}

cudaError_t cudaFree(void* address) {
  return in_context([&](const Driver& driver) {
    return address == nullptr ? CUDA_SUCCESS : driver.cuMemFree(device_address(address));
  });
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  return in_context([&](const Driver& driver) {
    return address == nullptr ? CUDA_SUCCESS : driver.cuMemFreeAsync(device_address(address), stream);
  });
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  if (address == nullptr) return report(cudaErrorInvalidValue);
  *address = nullptr;
  return in_context(
      [&](const Driver& driver) { return bytes == 0 ? CUDA_SUCCESS : driver.cuMemHostAlloc(address, bytes, flags); });
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* address) {
  return in_context(
      [&](const Driver& driver) { return address == nullptr ? CUDA_SUCCESS : driver.cuMemFreeHost(address); });
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned flags) {
  return in_context([&](const Driver& driver) { return driver.cuMemHostRegister(address, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* address) {
  return in_context([&](const Driver& driver) { return driver.cuMemHostUnregister(address); });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_address, unsigned flags) {
  return in_context([&](const Driver& driver) {
    return driver.cuMemHostGetDevicePointer(device_address(device_pointer), host_address, flags);
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* address) {
  return in_context([&](const Driver& driver) { return driver.cuMemHostGetFlags(flags, address); });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return in_context([&](const Driver& driver) { return driver.cuMemGetInfo(free_bytes, total_bytes); });
}

cudaError_t cudaMemPrefetchAsync(const void* address, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
  return in_context([&](const Driver& driver) {
    return driver.cuMemPrefetchAsync(device_address(address), bytes, location, flags, stream);
  });
}

cudaError_t cudaMemAdvise(const void* address, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location) {
  return in_context(
      [&](const Driver& driver) { return driver.cuMemAdvise(device_address(address), bytes, advice, location); });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, nullptr, {}};
  return in_context([&](const Driver& driver) {
    unsigned type = 0;
    unsigned managed = 0;
    CUdeviceptr device_pointer = 0;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* values[] = {&type, &managed, &attributes->device, &device_pointer, &attributes->hostPointer};
    const CUresult result = driver.cuPointerGetAttributes(5, wanted, values, device_address(address));
    if (result != CUDA_SUCCESS) return result;
    attributes->devicePointer = reinterpret_cast<void*>(device_pointer);
    attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                                                      : cudaMemoryTypeUnregistered;
    if (attributes->type == cudaMemoryTypeUnregistered) {
      attributes->device = -1;
      attributes->hostPointer = const_cast<void*>(address);
    }
    return result;
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  return in_context([&](const Driver& driver) { return driver.cuIpcGetMemHandle(handle, device_address(address)); });
}

cudaError_t cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned flags) {
  return in_context(
      [&](const Driver& driver) { return driver.cuIpcOpenMemHandle(device_address(address), handle, flags); });
}

cudaError_t cudaIpcCloseMemHandle(void* address) {
  return in_context([&](const Driver& driver) { return driver.cuIpcCloseMemHandle(device_address(address)); });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return in_context([&](const Driver& driver) { return driver.cuIpcGetEventHandle(handle, event); });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return in_context([&](const Driver& driver) { return driver.cuIpcOpenEventHandle(event, handle); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetDefaultMemPool(pool, device); });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceGetMemPool(pool, device); });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return with_driver([&](const Driver& driver) { return driver.cuDeviceSetMemPool(device, pool); });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const void* properties) {
  return with_driver([&](const Driver& driver) { return driver.cuMemPoolCreate(pool, properties); });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return with_driver([&](const Driver& driver) { return driver.cuMemPoolDestroy(pool); });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  return with_driver([&](const Driver& driver) { return driver.cuMemPoolTrimTo(pool, bytes_to_keep); });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  return with_driver([&](const Driver& driver) { return driver.cuMemPoolSetAttribute(pool, attribute, value); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  return with_driver([&](const Driver& driver) { return driver.cuMemPoolGetAttribute(pool, attribute, value); });
}
