// From the ABI's descriptions of a box (CUDA_MEMCPY3D and its kin) to the rows that are copied.
#pragma once

#include "softgpu/driver/memory/copy.h"

namespace softgpu {

// One side of a description: memory by address, or an array; and where in it the box begins.
struct BoxSide {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  const void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::uint64_t x_bytes = 0, y = 0, z = 0;
  std::uint64_t pitch = 0;   // bytes; 0: as wide as the box
  std::uint64_t height = 0;  // rows of a plane; 0: as high as the box
};

// The copy between two sides. INVALID_VALUE when the box leaves an array or a pitch is too small, INVALID_HANDLE for an
// array that does not exist.
CUresult box_of(const BoxSide& source, const BoxSide& target, std::uint64_t width, std::uint64_t height,
                std::uint64_t depth, Rectangle& box, Sides& sides);
CUresult box_of(const CUDA_MEMCPY3D& copy, Rectangle& box, Sides& sides);
CUresult box_of(const CUDA_MEMCPY2D& copy, Rectangle& box, Sides& sides);

}  // namespace softgpu
