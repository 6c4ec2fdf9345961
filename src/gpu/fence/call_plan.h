// The rules of calls: what is called is a function of this module, and what is handed over has the sizes that it states. An
// address of code may be forged, so that a call through one is planned by its table, and each function it may be of is judged
// when it is written (call_writer.cc): there may be as many as the module has functions.
//
//   call (r), f, (a);           DirectCall: f, with results and arguments of the right sizes
//   call (r), %rd1, (a), t;     IndirectCall: the functions of table t
//
// Errors: kInvalidArgument with the reason alone. Pure. Threads: none of its own.
#pragma once

#include "gpu/fence/function_facts.h"
#include "gpu/fence/instruction_plan.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

Result<InstructionPlan> plan_call(const Instruction& instruction, const FunctionFacts& facts);
// Whether the operands of a call have the sizes of the callee's parameters and results.
Status fits(const CallParts& parts, const Function& callee, const FunctionFacts& facts);

}  // namespace fairlead::fence
