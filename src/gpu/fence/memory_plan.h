// The rules of what accesses memory, by family (instruction_set.h). Each says of every operand what it may be: one that is
// neither plain nor the address that the plan confines would get past the fence.
//
//   atom.global.add.u32 %r1, [%rd1], 1;              Access: operand 1
//   cp.async.ca.shared.global [%r1], [%rd1], 16;     Access: operand 1; operand 0 has to be in shared memory
//   ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1]; SharedAccess: operand 1
//   wmma.load.a.sync.aligned.m16n16k16.global.row.f16 {...}, [%rd1], %r2;   MatrixAccess: operand 1, 15 rows of 2 bytes
//
// Errors: kInvalidArgument with the reason alone. Pure. Threads: none of its own.
#pragma once

#include "gpu/fence/function_facts.h"
#include "gpu/fence/instruction_plan.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

Result<InstructionPlan> plan_access(const Instruction& instruction, const FunctionFacts& facts);
// prefetch.
Result<InstructionPlan> plan_hint(const Instruction& instruction, const FunctionFacts& facts);
Result<InstructionPlan> plan_async_copy(const Instruction& instruction, const FunctionFacts& facts);
Result<InstructionPlan> plan_shared_only(const Instruction& instruction, const FunctionFacts& facts);
Result<InstructionPlan> plan_matrix(const Instruction& instruction, const FunctionFacts& facts);

}  // namespace fairlead::fence
