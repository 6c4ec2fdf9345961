// Copies of boxes, to and from arrays, and in batches.
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/copy_box.h"

using softgpu::BoxSide;
using softgpu::copy_async;
using softgpu::copy_now;
using softgpu::Rectangle;
using softgpu::Sides;

namespace {

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uint64_t>(address);
}

// The calls that name bytes of an array are for arrays of one dimension.
CUresult bytes_of(CUarray array, std::uint64_t offset, std::uint64_t bytes, std::uint64_t& address) {
  SOFTGPU_TRY(softgpu::check_array(array));
  if (array->rows() != 1 || array->planes() != 1) return CUDA_ERROR_INVALID_VALUE;
  if (offset > array->row_bytes || bytes > array->row_bytes - offset) return CUDA_ERROR_INVALID_VALUE;
  address = array->address + offset;
  return CUDA_SUCCESS;
}

Rectangle linear(std::uint64_t target, std::uint64_t source, std::uint64_t bytes) {
  return {target, bytes, source, bytes, bytes, 1};
}

// Contexts matter only to say where memory is, which its address does too.
CUresult box_of_peers(const CUDA_MEMCPY3D_PEER& c, Rectangle& box, Sides& sides) {
  if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (c.srcContext != nullptr) SOFTGPU_TRY(softgpu::check_context(c.srcContext));
  if (c.dstContext != nullptr) SOFTGPU_TRY(softgpu::check_context(c.dstContext));
  const BoxSide source = {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes,
                          c.srcY,          c.srcZ,    c.srcPitch,  c.srcHeight};
  const BoxSide target = {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes,
                          c.dstY,          c.dstZ,    c.dstPitch,  c.dstHeight};
  return softgpu::box_of(source, target, c.WidthInBytes, c.Height, c.Depth, box, sides);
}

// Attribute i holds from entry indices[i] on.
CUresult check_attributes(const CUmemcpyAttributes* attributes, const size_t* indices, size_t attribute_count,
                          size_t count) {
  if (attributes == nullptr || indices == nullptr || attribute_count == 0 || attribute_count > count) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < attribute_count; ++i) {
    const auto order = attributes[i].srcAccessOrder;
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (indices[i] >= count || (i == 0 ? indices[0] != 0 : indices[i] <= indices[i - 1])) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  Rectangle box;
  Sides sides = Sides::kAny;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::box_of(*copy, box, sides));
  return copy_now(box, sides);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  Rectangle box;
  Sides sides = Sides::kAny;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(softgpu::box_of(*copy, box, sides));
  return copy_async(box, sides, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  Rectangle box;
  Sides sides = Sides::kAny;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(box_of_peers(*copy, box, sides));
  return copy_now(box, sides);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  Rectangle box;
  Sides sides = Sides::kAny;
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(box_of_peers(*copy, box, sides));
  return copy_async(box, sides, stream);
}

CUresult cuMemcpyDtoA_v2(CUarray target, size_t offset, CUdeviceptr source, size_t bytes) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(target, offset, bytes, address));
  return copy_now(linear(address, source, bytes), Sides::kBothDevice);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr target, CUarray source, size_t offset, size_t bytes) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(source, offset, bytes, address));
  return copy_now(linear(target, address, bytes), Sides::kBothDevice);
}

CUresult cuMemcpyHtoA_v2(CUarray target, size_t offset, const void* source, size_t bytes) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(target, offset, bytes, address));
  return copy_now(linear(address, number(source), bytes), Sides::kTargetDevice);
}

CUresult cuMemcpyAtoH_v2(void* target, CUarray source, size_t offset, size_t bytes) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(source, offset, bytes, address));
  return copy_now(linear(number(target), address, bytes), Sides::kSourceDevice);
}

CUresult cuMemcpyAtoA_v2(CUarray target, size_t target_offset, CUarray source, size_t source_offset, size_t bytes) {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  SOFTGPU_TRY(bytes_of(target, target_offset, bytes, to));
  SOFTGPU_TRY(bytes_of(source, source_offset, bytes, from));
  return copy_now(linear(to, from, bytes), Sides::kBothDevice);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray target, size_t offset, const void* source, size_t bytes, CUstream stream) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(target, offset, bytes, address));
  return copy_async(linear(address, number(source), bytes), Sides::kTargetDevice, stream);
}

CUresult cuMemcpyAtoHAsync_v2(void* target, CUarray source, size_t offset, size_t bytes, CUstream stream) {
  std::uint64_t address = 0;
  SOFTGPU_TRY(bytes_of(source, offset, bytes, address));
  return copy_async(linear(number(target), address, bytes), Sides::kSourceDevice, stream);
}

// One after the other in the stream, which is an order that the batch allows.
CUresult cuMemcpyBatchAsync(CUdeviceptr* targets, CUdeviceptr* sources, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* attribute_indices, size_t attribute_count,
                            size_t* failed_index, CUstream stream) {
  if (failed_index != nullptr) *failed_index = SIZE_MAX;
  if (targets == nullptr || sources == nullptr || bytes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return CUDA_ERROR_INVALID_VALUE;  // as documented
  SOFTGPU_TRY(check_attributes(attributes, attribute_indices, attribute_count, count));
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = bytes[i] == 0 ? CUDA_ERROR_INVALID_VALUE
                                          : copy_async(linear(targets[i], sources[i], bytes[i]), Sides::kAny, stream);
    if (result == CUDA_SUCCESS) continue;
    if (failed_index != nullptr) *failed_index = i;
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* targets, CUdeviceptr* sources, size_t* bytes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* attribute_indices, size_t attribute_count,
                               CUstream stream) {
  return cuMemcpyBatchAsync(targets, sources, bytes, count, attributes, attribute_indices, attribute_count, nullptr,
                            stream);
}
