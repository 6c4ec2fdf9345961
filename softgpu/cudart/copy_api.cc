// Copies and fills. A copy's kind chooses the driver's entry point; cudaMemcpyDefault and host to host leave it to the
// driver to see where the addresses lie.
#include "softgpu/cudart/api.h"
#include "softgpu/cudart/registry.h"

using softgpu::cudart::device_address;
using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::report;

namespace {

// A copy in the stream, or one that is complete on return.
struct Order {
  bool is_async = false;
  cudaStream_t stream = nullptr;
};

CUresult copy(const Driver& driver, void* target, const void* source, size_t bytes, cudaMemcpyKind kind, Order order) {
  const CUdeviceptr to = device_address(target);
  const CUdeviceptr from = device_address(source);
  const CUstream stream = order.stream;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return order.is_async ? driver.cuMemcpyHtoDAsync(to, source, bytes, stream)
                            : driver.cuMemcpyHtoD(to, source, bytes);
    case cudaMemcpyDeviceToHost:
      return order.is_async ? driver.cuMemcpyDtoHAsync(target, from, bytes, stream)
                            : driver.cuMemcpyDtoH(target, from, bytes);
    case cudaMemcpyDeviceToDevice:
      return order.is_async ? driver.cuMemcpyDtoDAsync(to, from, bytes, stream) : driver.cuMemcpyDtoD(to, from, bytes);
    default: return order.is_async ? driver.cuMemcpyAsync(to, from, bytes, stream) : driver.cuMemcpy(to, from, bytes);
  }
}

bool is_kind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

cudaError_t checked_copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, Order order) {
  if (!is_kind(kind)) return report(cudaErrorInvalidMemcpyDirection);
  return in_context([&](const Driver& driver) {
    return bytes == 0 ? CUDA_SUCCESS : copy(driver, target, source, bytes, kind, order);
  });
}

CUmemorytype type_of(cudaMemcpyKind kind, bool is_target) {
  switch (kind) {
    case cudaMemcpyHostToHost: return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice: return is_target ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToHost: return is_target ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToDevice: return CU_MEMORYTYPE_DEVICE;
    default: return CU_MEMORYTYPE_UNIFIED;
  }
}

struct Plane {
  void* target;
  size_t target_pitch;
  const void* source;
  size_t source_pitch, width, height;
};

cudaError_t copy_2d(const Plane& plane, cudaMemcpyKind kind, Order order) {
  if (!is_kind(kind)) return report(cudaErrorInvalidMemcpyDirection);
  if (plane.width > plane.target_pitch || plane.width > plane.source_pitch) return report(cudaErrorInvalidPitchValue);
  CUDA_MEMCPY2D shape = {};
  shape.srcMemoryType = type_of(kind, false);
  shape.srcHost = plane.source;
  shape.srcDevice = device_address(plane.source);
  shape.srcPitch = plane.source_pitch;
  shape.dstMemoryType = type_of(kind, true);
  shape.dstHost = plane.target;
  shape.dstDevice = device_address(plane.target);
  shape.dstPitch = plane.target_pitch;
  shape.WidthInBytes = plane.width;
  shape.Height = plane.height;
  return in_context([&](const Driver& driver) {
    if (plane.width == 0 || plane.height == 0) return CUDA_SUCCESS;
    return order.is_async ? driver.cuMemcpy2DAsync(&shape, order.stream) : driver.cuMemcpy2DUnaligned(&shape);
  });
}

// The part of a registered variable that a copy wants; INVALID_VALUE when it is not inside.
cudaError_t part_of_symbol(const Driver& driver, const void* symbol, size_t bytes, size_t offset, void*& address) {
  CUdeviceptr base = 0;
  size_t size = 0;
  const cudaError_t error = softgpu::cudart::Registry::get().variable(driver, symbol, base, size);
  if (error != cudaSuccess) return error;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  address = reinterpret_cast<void*>(base + offset);
  return cudaSuccess;
}

cudaError_t copy_to_symbol(const void* symbol, const void* source, size_t bytes, size_t offset, cudaMemcpyKind kind,
                           Order order) {
  if (!is_kind(kind) || kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) {
    return report(cudaErrorInvalidMemcpyDirection);
  }
  return in_context([&](const Driver& driver) {
    void* target = nullptr;
    const cudaError_t error = part_of_symbol(driver, symbol, bytes, offset, target);
    if (error != cudaSuccess || bytes == 0) return error;
    return static_cast<cudaError_t>(copy(driver, target, source, bytes, kind, order));
  });
}

cudaError_t copy_from_symbol(void* target, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                             Order order) {
  if (!is_kind(kind) || kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) {
    return report(cudaErrorInvalidMemcpyDirection);
  }
  return in_context([&](const Driver& driver) {
    void* source = nullptr;
    const cudaError_t error = part_of_symbol(driver, symbol, bytes, offset, source);
    if (error != cudaSuccess || bytes == 0) return error;
    return static_cast<cudaError_t>(copy(driver, target, source, bytes, kind, order));
  });
}

template <typename Call>
cudaError_t between_devices(int target_device, int source_device, const Call& call) {
  return in_context([&](const Driver& driver) {
    CUcontext target = nullptr;
    CUcontext source = nullptr;
    cudaError_t error = softgpu::cudart::primary_context(driver, target_device, target);
    if (error == cudaSuccess) error = softgpu::cudart::primary_context(driver, source_device, source);
    return error != cudaSuccess ? error : static_cast<cudaError_t>(call(driver, target, source));
  });
}

}  // namespace

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return checked_copy(target, source, bytes, kind, {});
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return checked_copy(target, source, bytes, kind, {true, stream});
}

cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device, size_t bytes) {
  return between_devices(target_device, source_device, [&](const Driver& driver, CUcontext to, CUcontext from) {
    return driver.cuMemcpyPeer(device_address(target), to, device_address(source), from, bytes);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source, int source_device, size_t bytes,
                                cudaStream_t stream) {
  return between_devices(target_device, source_device, [&](const Driver& driver, CUcontext to, CUcontext from) {
    return driver.cuMemcpyPeerAsync(device_address(target), to, device_address(source), from, bytes, stream);
  });
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return copy_2d({target, target_pitch, source, source_pitch, width, height}, kind, {});
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d({target, target_pitch, source, source_pitch, width, height}, kind, {true, stream});
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return copy_to_symbol(symbol, source, bytes, offset, kind, {});
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_to_symbol(symbol, source, bytes, offset, kind, {true, stream});
}

cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(target, symbol, bytes, offset, kind, {});
}

cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_from_symbol(target, symbol, bytes, offset, kind, {true, stream});
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  if (address == nullptr) return report(cudaErrorInvalidValue);
  return in_context([&](const Driver& driver) { return part_of_symbol(driver, symbol, 0, 0, *address); });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return report(cudaErrorInvalidValue);
  return in_context([&](const Driver& driver) {
    CUdeviceptr address = 0;
    return softgpu::cudart::Registry::get().variable(driver, symbol, address, *bytes);
  });
}

cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  return in_context([&](const Driver& driver) {
    return bytes == 0 ? CUDA_SUCCESS
                      : driver.cuMemsetD8(device_address(address), static_cast<unsigned char>(value), bytes);
  });
}

cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return in_context([&](const Driver& driver) {
    const auto byte = static_cast<unsigned char>(value);
    return bytes == 0 ? CUDA_SUCCESS : driver.cuMemsetD8Async(device_address(address), byte, bytes, stream);
  });
}

cudaError_t cudaMemset2D(void* address, size_t pitch, int value, size_t width, size_t height) {
  return in_context([&](const Driver& driver) {
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    return driver.cuMemsetD2D8(device_address(address), pitch, static_cast<unsigned char>(value), width, height);
  });
}

cudaError_t cudaMemset2DAsync(void* address, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return in_context([&](const Driver& driver) {
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    const auto byte = static_cast<unsigned char>(value);
    return driver.cuMemsetD2D8Async(device_address(address), pitch, byte, width, height, stream);
  });
}
