// How an address is kept to the tenant's memory: decided here, as a value, and written by memory_writer.h.
//
//   ld.global.f32 %f1, [%rd4+16];        kCompanion: the offset is within the guard
//   ld.global.f32 %f1, [%rd4+70000];     kSum
//   st.local.b32  [%rd2], %r1;           kFrame, 8: %rd2 is known to be 8 bytes into the function's frame
//   ld.shared.f32 %f1, [%r7];            nothing: the hardware bounds shared memory to the block
//
// What no way is known for is refused. Pure. Threads: none of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/fence/function_facts.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

struct Confinement {
  enum class Way : std::uint8_t {
    kConstant,   // `place` is the address, before it is fenced
    kCompanion,  // of the address's register (address_plan.h), to which the offset is added
    kSum,        // register and offset are added, and the sum is fenced
    kGeneric,    // likewise, but an address of shared memory stays what it is and one of .local is kept to the arena
    kFrame,      // `place` is an offset in this function's frame
    kArena,      // register and offset are added, and the sum is kept to the arena
  };
  Way way = Way::kConstant;
  std::uint64_t place = 0;
  bool may_be_shared = false, may_be_local = false;  // of kGeneric: what the module has variables in
};

// Nothing: the address may stay as it is written. Else how it is confined, or why it cannot be. `instruction` is the one
// that accesses `address` in `space`.
Result<std::optional<Confinement>> confine(Space space, const Operand& address, const Instruction& instruction,
                                           const FunctionFacts& facts);
// Of a register that has to be added to: 32 or 64 bits.
Status can_be_summed(const Operand& address, const FunctionFacts& facts);

}  // namespace fairlead::fence
