// Copies.
#include "softgpu/driver/copy.h"

using softgpu::copy_async;
using softgpu::copy_now;
using softgpu::Rectangle;
using softgpu::Sides;

namespace {

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

Rectangle linear(std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
  return {target, bytes, source, bytes, bytes, 1};
}

// The address of a side's first byte; arrays are not supported.
CUresult address_of(CUmemorytype type, const void* host, CUdeviceptr device, std::uint64_t& address) {
  switch (type) {
    case CU_MEMORYTYPE_HOST: address = number(host); return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: address = device; return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult rectangle_of(const CUDA_MEMCPY2D* copy, Rectangle& rectangle, Sides& sides) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(address_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice, rectangle.source));
  SOFTGPU_TRY(address_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice, rectangle.target));
  rectangle.width = copy->WidthInBytes;
  rectangle.height = copy->Height;
  rectangle.source_pitch = copy->srcPitch != 0 ? copy->srcPitch : copy->WidthInBytes;
  rectangle.target_pitch = copy->dstPitch != 0 ? copy->dstPitch : copy->WidthInBytes;
  rectangle.source += copy->srcY * rectangle.source_pitch + copy->srcXInBytes;
  rectangle.target += copy->dstY * rectangle.target_pitch + copy->dstXInBytes;
  const bool source = copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
  const bool target = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE;
  sides = source && target ? Sides::kBothDevice
          : source         ? Sides::kSourceDevice
          : target         ? Sides::kTargetDevice
                           : Sides::kAny;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return copy_now(linear(target, source, bytes), Sides::kAny);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, size_t bytes) {
  return copy_now(linear(target, number(source), bytes), Sides::kTargetDevice);
}

CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, size_t bytes) {
  return copy_now(linear(number(target), source, bytes), Sides::kSourceDevice);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return copy_now(linear(target, source, bytes), Sides::kBothDevice);
}

CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context,
                      size_t bytes) {
  SOFTGPU_TRY(softgpu::check_context(target_context));
  SOFTGPU_TRY(softgpu::check_context(source_context));
  return cuMemcpyDtoD_v2(target, source, bytes);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  Rectangle rectangle;
  Sides sides = Sides::kAny;
  SOFTGPU_TRY(rectangle_of(copy, rectangle, sides));
  return copy_now(rectangle, sides);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return cuMemcpy2DUnaligned_v2(copy);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async(linear(target, source, bytes), Sides::kAny, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes, CUstream stream) {
  return copy_async(linear(target, number(source), bytes), Sides::kTargetDevice, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async(linear(number(target), source, bytes), Sides::kSourceDevice, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return copy_async(linear(target, source, bytes), Sides::kBothDevice, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context,
                           size_t bytes, CUstream stream) {
  SOFTGPU_TRY(softgpu::check_context(target_context));
  SOFTGPU_TRY(softgpu::check_context(source_context));
  return cuMemcpyDtoDAsync_v2(target, source, bytes, stream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  Rectangle rectangle;
  Sides sides = Sides::kAny;
  SOFTGPU_TRY(rectangle_of(copy, rectangle, sides));
  return copy_async(rectangle, sides, stream);
}
