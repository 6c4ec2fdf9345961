// Which instructions the fence knows. The list is one of what is allowed: an instruction it has never heard of might
// touch memory, so it is refused.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

enum class Family : std::uint8_t {
  kPlain,       // touches registers only
  kMove,        // mov
  kConvert,     // cvta
  kAccess,      // one address, in the space its modifiers name
  kHint,        // as kAccess, but it transfers nothing: prefetch
  kAsyncCopy,   // cp.async: shared, global
  kSharedOnly,  // mbarrier, ldmatrix: an address in shared memory even where no space is named
  kMatrix,      // wmma.load, wmma.store: rows of memory a stride apart
  kShuffle,     // shfl
  kBranch,      // bra
  kTable,       // brx.idx
  kCall,
  kRefused,
};

struct Knowledge {
  Family family = Family::kRefused;
  std::string_view reason;  // of a refusal
};

Knowledge knowledge_of(const Instruction& instruction);

bool has_modifier(const Instruction& instruction, std::string_view modifier);
// The space the modifiers name, or kGeneric.
Space space_of(const Instruction& instruction);
// True when the first operand is written by the instruction.
bool writes_first_operand(const Instruction& instruction);
// The operand whose registers the instruction writes, each of them whole; null: none.
const Operand* destination_of(const Instruction& instruction);
// Whether it reads or writes registers of all lanes of a warp, as if they were there.
bool needs_whole_warp(const Instruction& instruction);
bool reads_carry(const Instruction& instruction);
bool writes_carry(const Instruction& instruction);
// What ld, st and the like transfer; 0: their modifiers name no type.
std::uint64_t access_bytes(const Instruction& instruction);
// What they transfer at most: also where the type is not known, and by the wider one where two are named.
std::uint64_t most_access_bytes(const Instruction& instruction);

}  // namespace fairlead::fence
