// What stands before a function's body: what the body turned out to need, so that it is written after the body, and the clearing
// of what the function could read before it has written it (prologue.cc shows the order).
//
//   .reg .b64 %__fence_a<1>;              for a body that asked for one companion
//   mov.b64 %__fence_a0, 0x700000000000;
#pragma once

#include "gpu/fence/clears.h"
#include "gpu/fence/fenced_text.h"
#include "gpu/fence/function_writer.h"

namespace fairlead::fence {

// Behind the function's own declarations in `out`. The parameter for which there was no room; null: all is written.
const Variable* write_prologue(const FunctionWriter& body, const Clears& clears, FencedText& out);

// Zeros to all of a parameter of .param, in steps that its alignment allows, the last ones smaller. False: there is no room.
bool store_zeros(const Variable& parameter, FencedText& out);

}  // namespace fairlead::fence
