// Where native code keeps what it works on.
//
// Registers: rbx the warp, rbp its frame, r13 the end of the constants, r14 the extent cache, r15d the mask, r12 the
// number of active lanes; the patterns of tracked rows lie on the stack. ymm0 to ymm11 hold three rows of 32-bit
// elements, four vectors each; ymm12 to ymm15 are scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/ptx/native/assembler.h"
#include "softgpu/ptx/native/runtime.h"
#include "softgpu/ptx/native/vector_code.h"

namespace softgpu::ptx::native {

// Bit l of lane l, to turn masks into vectors.
struct LaneBits {
  alignas(32) std::uint32_t bits[kLanes];
  constexpr LaneBits() : bits{} {
    for (int lane = 0; lane < kLanes; ++lane) bits[lane] = 1u << lane;
  }
};
inline constexpr LaneBits kLaneBits;

inline constexpr std::int32_t kVectorBytes = 32;
inline constexpr int kParts = 4;  // vectors of a row of 32-bit elements
inline constexpr Vector kScratch = 12;

// The fields of a pattern in memory.
inline constexpr std::int32_t kPatternFirst = offsetof(Pattern, first), kPatternSecond = offsetof(Pattern, second),
                              kPatternStride = offsetof(Pattern, stride), kPatternState = offsetof(Pattern, state);

template <class T>
Memory warp_field(T Warp::*field) {
  static const Warp warp;
  const auto at = reinterpret_cast<const char*>(&(warp.*field)) - reinterpret_cast<const char*>(&warp);
  return {rbx, static_cast<std::int32_t>(at)};
}

// A row of the frame, or of the constants.
inline Memory row_memory(std::int32_t row) {
  return {row < 0 ? r13 : rbp, row};
}

}  // namespace softgpu::ptx::native
