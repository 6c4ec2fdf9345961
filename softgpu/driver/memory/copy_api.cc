// Copies.
#include "softgpu/driver/memory/copy_box.h"

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
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::box_of(*copy, rectangle, sides));
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
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::box_of(*copy, rectangle, sides));
  return copy_async(rectangle, sides, stream);
}
