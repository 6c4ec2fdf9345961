// Plans of instructions (instruction_plan.h) written as text. Everything that was decided is in the plan; what is left is to name
// registers, to write a fence where the one of a line before does not hold any more, and to say when there is no room.
//
//   Access{operand 1, kCompanion} of `ld.global.f32 %f1, [%rd4+16];`, the first time in its region:
//     and.b64 %__fence_a0, %rd4, 0xffffffff;
//     or.b64 %__fence_a0, %__fence_a0, 0x700000000000;
//     ld.global.f32 %f1, [%__fence_a0+16];
//   and the second time the last line alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/fence/fenced_text.h"
#include "gpu/fence/function_facts.h"
#include "gpu/fence/instruction_plan.h"
#include "gpu/fence/scratch_registers.h"

namespace fairlead::fence {

// What is known of the warp's lanes until code is reached or left by others: a label or a jump.
struct LanesHere {
  bool is_whole_warp = false;
  std::string known_for;  // the mask for which scratch.lanes() is up to date; empty: none
};

// A function's body on its way to text: what was written so far, and what of it still holds.
struct FunctionWriter {
  FunctionWriter(const FunctionFacts& known, std::size_t most_bytes)
      : facts(known),
        text(most_bytes),
        scratch(known.function.registers.size()),
        fresh_in(known.function.registers.size(), -1) {}

  const FunctionFacts& facts;
  FencedText text;
  ScratchRegisters scratch;
  LanesHere lanes;
  std::vector<int> fresh_in;  // by register: the region in which its companion is up to date
  int region = 0;             // of address_plan.h, at the instruction in hand
  int labels_made = 0;        // labels of the fence are numbered, once for the function
  std::size_t accesses = 0;   // to global or generic memory
};

// What goes before `instruction`, `instruction` by its plan, and the companions of the registers that it writes behind it.
// kTooLarge, without words, when there is no room; kInvalidArgument, the reason, for a function that does not fit a call
// through an address.
Status write(const InstructionPlan& plan, const Instruction& instruction, FunctionWriter& to);

// Of one kind of plan each (memory_writer.cc, call_writer.cc, lane_writer.cc).
void write(const Access& plan, const Instruction& instruction, FunctionWriter& to);
void write(const SharedAccess& plan, const Instruction& instruction, FunctionWriter& to);
void write(const MatrixAccess& plan, const Instruction& instruction, FunctionWriter& to);
void write(const Shuffle& plan, const Instruction& instruction, FunctionWriter& to);
void write(const DirectCall& plan, const Instruction& instruction, FunctionWriter& to);
Status write(const IndirectCall& plan, const Instruction& instruction, FunctionWriter& to);

// `name` = `from`, fenced.
void write_fence(std::string_view name, std::string_view from, FunctionWriter& to);
// A trap before an instruction that needs all lanes of its warp, unless they are known to be here.
void write_lane_check(const Instruction& instruction, FunctionWriter& to);

}  // namespace fairlead::fence
