// Compiles segments to native code.
//
// A segment's code stands in for the handler of its first instruction; all others keep theirs. It runs when whole rows
// may be written (Warp::whole), else it hands over to the handler it replaced, and the interpreter does the segment.
// At its end every register is in its row, so nothing else in the machine knows about native code.
//
// Inside, three rows of 32-bit elements are held in vector registers, those needed soonest; rows nobody reads again are
// never written. Rows that lead to addresses are kept as patterns (runtime.h). Whatever is rare leaves the straight way
// for a slow way out of line, which puts registers into rows, calls the interpreter's handler and returns.
#pragma once

#include <memory>
#include <span>

#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/program.h"

namespace softgpu::ptx::native {

// Compiles `functions` of the program. They may run as long as the result lives; null when there is nothing to compile
// or the system refuses executable memory, and the functions stay as they are. REQUIRES: all functions of the program
// are decoded, its constants placed; none of `functions` is running.
std::shared_ptr<const void> compile(const Program& program, std::span<Code* const> functions,
                                    const InstructionSet& isa);

}  // namespace softgpu::ptx::native
