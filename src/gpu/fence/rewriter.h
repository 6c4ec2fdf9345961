// Rewrites one function: every statement of its body once more, with fences. The last pass of fence_ptx(), which is the way in.
//
//   facts_of()            what is known before a word is written: labels, tables, where addresses are fenced (function_facts.h)
//   plan_instruction()    what becomes of an instruction, as a value, or why it is refused (instruction_plan.h)
//   write()               the plan as text (function_writer.h); registers of the fence's own by scratch_registers.h
//   write_prologue()      what the body turned out to need (prologue.h)
//
// One pass over the items, and one way only through an instruction. Names of the fence begin with __fence or %__fence, and no
// name of a module may. Near linear in the function's length; nothing here is trusted, as verifier.h reads the result again.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gpu/fence/clears.h"
#include "gpu/fence/fence.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// The signature with, in a module that has an arena, the two parameters that hand it to a device function.
std::string signature_text(const Function& function, std::string_view name, const Layout& layout);
// Why a module whose fenced text would exceed most_fenced_bytes() is refused.
std::string too_large();

struct RewrittenFunction {
  std::string body;  // with its braces
  FunctionReport report;
};

// The fenced body, which begins with `clears`. It has at most `most_bytes`, or is refused: kTooLarge. kInvalidArgument names
// function, line, instruction and reason. REQUIRES: the function has a body.
Result<RewrittenFunction> rewrite_function(const Function& function, const Layout& layout, const Clears& clears,
                                           const FenceOptions& options, std::size_t most_bytes);

}  // namespace fairlead::fence
