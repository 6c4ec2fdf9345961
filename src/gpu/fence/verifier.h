// The fence proves its output: every fenced module is checked here before a driver gets it, in production. In the manner of
// Native Client (Yee et al., IEEE S&P 2009): what rewrites is large and need not be trusted, what judges the result is
// small, reads the text alone and knows nothing of how it came about. The rewriter plans (which register is fenced where, what
// is cleared); here is one pass over the lines, which remembers of each register what the last lines say about it.
//
//   and.b64 %a, %rd4, 0xffffffff;         %a is at most 0xffffffff
//   or.b64  %a, %a, 0x700000000000;       %a is in the range
//   ld.global.f32 %f1, [%a+16];           16 is within the guard: accepted
//   L:                                    nothing is known any more
//   ld.global.f32 %f1, [%a];              refused
//
// **The invariant.** At a label, which may be reached from anywhere, a register is known to be in the range only if
//   1. the function's head, the lines before its first label or branch, made it so, and
//   2. it is written nowhere else, or by such pairs alone: an `and` with the range's mask, in the next line an `or` with its
//      base, neither under a predicate; or a `mov` of a constant in the range.
// Between labels each line adds what it proves and forgets what it overwrites. Where a register may be used as an address:
//   .global, generic    in the range, by offsets within the guard; generic also shared memory that `isspacep` recognised, and
//                       the thread's arena
//   .local              in the arena: at a constant place, or by a register masked to it. How deep frames may lie is the sum
//                       along the deepest chain of calls
//   .param, .const      by name, inside of the variable; .const, and what an entry reads of its parameters, by register,
//                       which hardware bounds. .shared: hardware bounds it
//   call                of a function of the module, by its name, with operands of its parameters' sizes, the arena and a frame
//                       in it among them. A call through a register is refused, so there is no address of code to forge
//   brx                 by an index that a `min` holds within its table
// An instruction that is not on this file's own list is refused, and so is text that is not exactly what its tree prints: what
// the parser skips (comments, strings, debug information, a second spelling of a number) the driver might read.
//
// **What is shared with the rewriter** and so is trusted: the lexer, the parser, the tree and its printing (lexer.h, ptx.h),
// because two parsers that agree prove little about the driver's; FenceOptions, which is the claim itself. Not the list of
// instructions, the layout, the plans or the flow graph.
//
// **What is not proved here**: that what others left is cleared (definitions.h, clears.h; tests only), that the kernel computes
// what it did, that the driver's compiler reads PTX as this parser does, and that hardware keeps shared and constant memory
// apart, as docs/explanation/fencing.md says.
//
// Time and memory are linear in the text, but for calls among functions with frames: those are gone through at most 16 times.
// Pure. Threads: none of its own.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gpu/fence/fence.h"

namespace fairlead::fence {

// Whether no kernel of `fenced`, a FencedModule::ptx, reaches outside the range of `options`. kInternal: function, line,
// instruction and reason, in words that say that this is the fence's fault and not the module's.
Status verify_fenced(std::string_view fenced, const FenceOptions& options);

}  // namespace fairlead::fence
