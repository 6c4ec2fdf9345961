// Which lanes of a warp run next: divergence, reconvergence, waiting for other lanes and for barriers.
#pragma once

#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

inline constexpr int kPatience = 512;

// Puts the current group back at `next` and continues with the group that is first in order.
const Instruction* switch_group(Warp& warp, const Instruction* next);

// As switch_group, but prefers any other ready group: called when the current one may be spinning.
const Instruction* give_way(Warp& warp, const Instruction* next);

// Divides the current group at a conditional branch: `taken` lanes go to branch->target, the rest to the instruction
// behind it.
const Instruction* diverge(Warp& warp, const Instruction* branch, std::uint32_t taken);

// Splits off the lanes of the current group that are not in `stay`; they will execute `at` themselves.
void split_off(Warp& warp, const Instruction* at, std::uint32_t stay);

// Parks the current group at `at` until other lanes of the warp come to the same instruction. The instruction is
// executed again when they have, or, with Warp::converge_anyway set, when they never can.
const Instruction* await_lanes(Warp& warp, const Instruction* at);

// The `waiting` lanes of the current group park at `at` as in await_lanes; the others stay current and execute it now.
void hold_back(Warp& warp, const Instruction* at, std::uint32_t waiting);

// The current group's lanes have ended; continues with another group, or ends the warp.
const Instruction* exit_lanes(Warp& warp);

// Arrival of the current group at a barrier; `count` is the number of threads it needs, 0 for all of the block.
// Reductions write their result for every waiting group when the barrier completes.
enum class BarrierMode : std::uint32_t { kSync, kArrive, kPopc, kAnd, kOr };
const Instruction* arrive(Warp& warp, const Instruction* at, std::uint32_t id, std::uint32_t count,
                          std::uint32_t predicate);

// Where a ready warp continues; null when all its groups wait.
const Instruction* resume(Warp& warp);

// Calls `callee`, whose first arguments the handler has yet to copy into the new frame at Warp::frame; returns false
// after raising a fault when the call stack is full.
bool push_call(Warp& warp, const Instruction* call, const Code& callee);

// Removes the topmost call of the current group and makes the caller's frame current.
CallRecord pop_call(Warp& warp);

}  // namespace softgpu::ptx
