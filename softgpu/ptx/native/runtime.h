// What native code calls when its quick way does not apply. Rows of integers that lead to addresses are kept as
// *patterns* while a segment runs: in each half of the warp a first value and a distance from lane to lane. Adding two
// such rows is adding three numbers, and whether 32 addresses lie in an allocation takes two comparisons.
//
// Example: the addresses of x[tid] are {first = x, second = x + 64, stride = 4}; of a row of 16x16 tiles of floats,
// {x, x + pitch, 4}; of one element read by all lanes, {x, x, 0}.
#pragma once

#include <cstdint>

#include "softgpu/ptx/warp.h"

namespace softgpu::ptx::native {

enum class PatternState : std::uint64_t {
  kKnown,    // the pattern is the value; the row in the frame may be older
  kNone,     // the row has no pattern
  kUnknown,  // nobody has looked
};

// Of a row with 32-bit elements only the lower halves count.
struct Pattern {
  std::uint64_t first = 0, second = 0;  // values of lanes 0 and 16
  std::uint64_t stride = 0;
  PatternState state = PatternState::kUnknown;
};

// A row that a slow way reads or writes: its place in the frame and its number among the segment's patterns.
struct TrackedRow {
  std::int32_t row = 0;
  std::int32_t pattern = -1;  // -1: not tracked
  std::uint8_t bytes = 8;     // of an element
  bool is_stale = false;      // a known pattern is newer than the row
};

// An instruction's slow way.
struct SlowCall {
  Handler handler = nullptr;  // the interpreter's
  const Instruction* at = nullptr;
  TrackedRow a, b, dst;
  bool subtracts = false;
  std::uint32_t global_bytes = 0;  // per lane, that native code counts for the access
};

enum class SlowResult : std::uint64_t { kFault, kDone, kAgain };

// The instruction set's own versions of these are called by native code.
struct Runtime {
  // A load or store. kAgain: the pattern of the address is known now, try the quick way.
  SlowResult (*access)(Warp&, const SlowCall&, Pattern*) = nullptr;
  // dst = a + b, a - b, or a for a move.
  void (*arithmetic)(Warp&, const SlowCall&, Pattern*) = nullptr;
  // Writes row `a` from its pattern if that is known.
  void (*materialise)(Warp&, const SlowCall&, Pattern*) = nullptr;
};

}  // namespace softgpu::ptx::native
