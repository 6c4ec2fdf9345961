// The readers behind gpu/kernel_image.h, one a format. Each is handed a whole image of its format.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/kernel_image.h"

namespace fairlead {

// Larger claims of compressed parts are taken for an attack: some bytes must not become gigabytes.
inline constexpr std::size_t kMaxDecompressedBytes = 64 << 20;  // of one image

bool is_cubin(std::string_view image);
bool is_fatbin(std::string_view image);

// kInvalidArgument: "PTX line 12: ...", "cubin: section .nv.info.saxpy: ...", "fat binary, byte 16: ...".
Result<KernelImage> read_ptx(std::string_view text);
Result<KernelImage> read_cubin(std::string_view image);

// The PTX texts and cubins of a fat binary, decompressed; what else it holds is left out.
Result<std::vector<std::string>> unpack_fatbin(std::string_view image);

// Least multiple of `alignment` that is no less. REQUIRES: a power of two.
constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// x * y * z, or the largest number where that is no 32-bit one.
constexpr std::uint32_t volume(const Dim3& dim) {
  std::uint64_t product = 1;
  for (const std::uint32_t axis : dim) product = std::min<std::uint64_t>(product * axis, 0xffffffff);
  return static_cast<std::uint32_t>(product);
}

}  // namespace fairlead
