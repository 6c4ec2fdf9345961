// Operands of instructions, with their names resolved. Any of them, in any place: which of them an instruction may have is for
// those to know who look at it (instruction_plan.h, verifier.h), and they must look at all of them.
//
//   %r1   -8   !%p1   %tid.x   %r1|%p1   table+4   [%rd1+16]   [1024]   {%r1, %r2}   (a, b)
#pragma once

#include "gpu/fence/ptx.h"
#include "gpu/fence/scopes.h"
#include "gpu/fence/token_reader.h"

namespace fairlead::fence {

// False when the reader has failed.
bool read_operand(TokenReader& reader, Scopes& scopes, Operand& out);

}  // namespace fairlead::fence
