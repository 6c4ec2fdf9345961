// What the verifier knows of single instructions. A list of its own, beside instruction_set.h: one wrong line in the
// rewriter's list must not be enough to let an instruction through that reaches memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

enum class Reach : std::uint8_t {
  kRefused,
  kRegisters,   // of registers and numbers only
  kMove,        // as kRegisters, and addresses of variables
  kMemory,      // one address, in the space that is named
  kCopy,        // cp.async: to shared memory, from global
  kSharedOnly,  // one address, in shared memory, which must be named
  kRows,        // wmma.load, wmma.store: one address, rows a stride apart
  kBranch,
  kTable,
  kCall,
};
Reach reach_of(const Instruction& instruction);

// The one space that is named, or kGeneric; `is_clear` is false where two are.
struct NamedSpace {
  Space space = Space::kGeneric;
  bool is_clear = true;
};
NamedSpace named_space(const Instruction& instruction);

// At most so many bytes are accessed; `is_known` is false where no type is named that has a size here.
struct Width {
  std::uint64_t bytes = 0;
  bool is_known = false;
};
Width width_of(const Instruction& instruction);

// From the first row of a fragment in memory to its last, per element of the stride; 0: its shape is not known.
std::uint64_t bytes_per_stride(const Instruction& instruction);

}  // namespace fairlead::fence
