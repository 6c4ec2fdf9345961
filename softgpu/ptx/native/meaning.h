// What a handler means, for the native compiler. A handler without a meaning is never compiled: an instruction set
// grows by handlers alone, and a meaning is added where speed matters.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "softgpu/ptx/native/opcodes.h"
#include "softgpu/ptx/program.h"
#include "softgpu/ptx/types.h"

namespace softgpu::ptx::native {

enum class Action : std::uint8_t {
  kUnary,        // dst = op(a)
  kBinary,       // dst = op(a, b)
  kAdd,          // as kBinary; keeps patterns
  kSubtract,     //
  kMove,         // dst = a
  kMultiplyAdd,  // dst = a * b + c, integers
  kFused,        // dst = a * b + c, floats, one rounding
  kWiden,        // dst = a, 32 bits to 64
  kNarrow,       // dst = a, 64 bits to 32
  kMultiplyWide,
  kShift64,  // 64 bits by a row of 32-bit counts
  kCompareFloat,
  kCompareSigned,
  kCompareUnsigned,
  kPredicate,  // dst = op(a, b) of predicates
  kSelect,
  kThreadIndex,
  kSpecial,  // %ntid, %ctaid or %nctaid
  kLoad,
  kStore,
  kParameter,
  kBranchIf,
  kBranch,
};

// Whether the pattern of the result is told by those of the sources (runtime.h).
constexpr bool is_sum(Action action) {
  return action == Action::kAdd || action == Action::kSubtract || action == Action::kMove;
}

// Comparisons in the order of the handlers: eq ne lt le gt ge.
struct Meaning {
  Action action{};
  std::uint8_t bytes = 4;  // of an element of the result; of a compared or accessed element
  bool commutes = false;
  VectorOpcode opcode = {};      // of one vector
  std::uint8_t predicate = 0;    // comparison: number, or predicate of vcmpps; kPredicate: an Integer
  Space space = Space::kGlobal;  // of a load or store
  std::uint8_t address_bytes = 8;
};

using Meanings = std::unordered_map<Handler, Meaning>;

}  // namespace softgpu::ptx::native
