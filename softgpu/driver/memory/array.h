// CUDA arrays: rows of elements in device memory that only copies, textures and surfaces reach. Laid out as plain rows,
// so a copy to or from one is a copy of a box.
#pragma once

#include <atomic>
#include <cstdint>

#include "softgpu/driver/context/context.h"
#include "softgpu/driver/handle.h"

struct CUarray_st {
  static constexpr std::uint32_t kMagic = 0x61727279;  // "arry"
  std::atomic<std::uint32_t> magic{0};
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  CUcontext context = nullptr;
  std::uint64_t context_id = 0;
  std::uint64_t address = 0;  // of the first element
  std::uint64_t row_bytes = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;  // bytes from one plane or layer to the next

  // At least 1.
  std::uint64_t rows() const { return descriptor.Height != 0 ? descriptor.Height : 1; }
  std::uint64_t planes() const { return descriptor.Depth != 0 ? descriptor.Depth : 1; }
};

namespace softgpu {

using Arrays = HandlePool<CUarray_st>;

// Bytes of one channel; 0 for a format that does not exist.
unsigned channel_bytes(CUarray_format format);

// NOT_INITIALIZED, INVALID_HANDLE, CONTEXT_IS_DESTROYED, or fine.
CUresult check_array(CUarray array);

}  // namespace softgpu
