// The instruction set of one CPU instruction set: all families' opcodes, and the loop that runs them.
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

void leave() {
#if defined(SOFTGPU_ISA_V3) || defined(SOFTGPU_ISA_V4)
  __builtin_ia32_vzeroupper();
#endif
}

void run(Warp& warp) {
  const Instruction* next = warp.next;
  std::uint64_t instructions = 0, lanes = 0;
  while (next != nullptr) {
    const std::uint32_t counted = next->counted;
    instructions += counted;
    lanes += static_cast<std::uint64_t>(__builtin_popcount(warp.mask & (0u - counted)));
    next = next->run(warp, next);
  }
  warp.instructions += instructions;
  warp.lane_instructions += lanes;
  leave();
}

#define SOFTGPU_STRING(word) #word
#define SOFTGPU_NAME(word) SOFTGPU_STRING(word)

InstructionSet build() {
  InstructionSet set;
  set.name = SOFTGPU_NAME(SOFTGPU_ISA);
  for (const auto family :
       {integer_opcodes(), bit_opcodes(), carry_opcodes(), float_opcodes(), math_opcodes(), compare_opcodes(),
        convert_opcodes(), move_opcodes(), memory_opcodes(), atomic_opcodes(), control_opcodes(), warp_opcodes(),
        mma_opcodes(), matrix_opcodes(), async_opcodes(), hint_opcodes(), video_opcodes(), texture_opcodes()}) {
    for (const Opcode& opcode : family) set.opcodes.emplace(opcode.name, opcode);
  }
  add_control_helpers(set);
  add_move_helpers(set);
  add_convert_helpers(set);
#if defined(SOFTGPU_ISA_V3) || defined(SOFTGPU_ISA_V4)
  add_native(set);
#endif
  set.run = run;
  set.leave = leave;
  return set;
}

}  // namespace

const InstructionSet& instruction_set() {
  static const auto* set = new InstructionSet(build());  // kernels may run while the process exits
  return *set;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
