// Execution state. Everything a block needs to continue is explicit here, so a block can be suspended at any
// instruction, resumed by another call, or abandoned.
//
// Divergence. A warp's lanes are divided into groups, each with its own program counter and call stack. One group is
// current; the others are in Warp::others. The group with the lowest program counter in the deepest call runs first,
// and groups that meet at the same instruction merge, so that lanes which took different ways round an `if` reconverge
// behind it. A group that has looped often while others were ready gives way (Volta: every lane makes progress).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

namespace softgpu::ptx {

struct Block;

enum class WarpStatus : std::uint8_t { kReady, kBarrier, kExited, kFaulted };

struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::uint64_t address = 0;
  int lane = 0;
  const Instruction* instruction = nullptr;
  std::string detail;
};

// A caller waiting for a return.
struct CallRecord {
  const Instruction* call = nullptr;
  const Code* callee = nullptr;
  std::uint32_t frame = 0;  // of the caller: offset in Warp::frames
  std::uint32_t local = 0;
  bool operator==(const CallRecord&) const = default;
};

struct Group {
  enum class State : std::uint8_t {
    kReady,
    kBarrier,   // until the barrier is complete
    kConverge,  // at an instruction that waits for other lanes of the warp
  };
  const Instruction* next = nullptr;
  std::uint32_t mask = 0;
  std::uint32_t frame = 0;
  std::uint32_t frame_end = 0;
  std::uint32_t local = 0;
  State state = State::kReady;
  std::uint8_t barrier = 0;
  std::vector<CallRecord> calls;
};

// The state every block of a launch shares.
struct LaunchState {
  const Program* program = nullptr;
  const Code* entry = nullptr;
  const AddressSpace* memory = nullptr;
  const Launch* launch = nullptr;
  std::span<const std::byte> parameters;
  std::size_t static_shared_bytes = 0;
  std::size_t shared_bytes = 0;    // static and dynamic
  std::size_t frame_bytes = 0;     // per warp, all call frames
  std::size_t local_bytes = 0;     // per lane, all call depths
  AddressSpace::Extent workspace;  // zeroed, for the grid barrier of a cooperative launch
};

struct Warp {
  std::byte* frame = nullptr;     // of the current group: frames + group.frame
  std::int64_t to_constants = 0;  // from `frame` to the end of the constant pool, in bytes
  std::uint32_t mask = 0;         // the current group's lanes
  bool whole = false;             // no other lane of the warp needs its registers before these have ended or joined
                                  // it: whole rows may be written
  const Instruction* limit = nullptr;       // the first instruction another ready group waits at, or the end of memory
  AddressSpace::Extent* extents = nullptr;  // cache, by Instruction::slot
  std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
  std::uint64_t global_bytes = 0;
  std::uint64_t instructions = 0;
  std::uint64_t lane_instructions = 0;
  int budget = 0;             // instructions until the warp yields (budget.h)
  int patience = 0;           // backward branches until another ready group gets a turn
  std::uint32_t guarded = 0;  // the mask to return to behind a guarded instruction
  bool guarded_whole = false;
  bool converge_anyway = false;  // the lanes waited for can never come
  std::uint32_t carry = 0;       // condition code register, a bit per lane
  std::uint32_t live = 0;
  WarpStatus status = WarpStatus::kReady;
  int waits_at = -1;  // the barrier an undivided warp waits at

  const Instruction* next = nullptr;  // where to resume
  std::uint32_t group_frame = 0;      // the current group's part of Group, while it runs
  std::uint32_t group_frame_end = 0;
  std::uint32_t local_base = 0;
  std::vector<CallRecord> calls;
  std::vector<Group> others;

  Block* block = nullptr;
  const LaunchState* run = nullptr;
  std::byte* frames = nullptr;
  std::byte* local = nullptr;  // lane l's local memory begins at local + l * local_bytes
  std::size_t local_bytes = 0;
  const std::byte* parameters = nullptr;
  std::size_t parameter_bytes = 0;
  std::uint32_t index = 0;                  // in the block
  const std::uint32_t* thread_ids[3] = {};  // rows of %tid.x, .y, .z
  Fault fault;
};

struct Barrier {
  std::uint32_t lanes = 0;     // that have arrived
  std::uint32_t arrived = 0;   // in the units of `expected`
  std::uint32_t expected = 0;  // threads; 0: all live lanes
  std::uint32_t count_true = 0;
};

inline constexpr int kNamedBarriers = 16;
inline constexpr int kClusterBarrier = kNamedBarriers;  // of barrier.cluster: a cluster is a block
inline constexpr int kBarriers = kNamedBarriers + 1;

struct Block {
  std::vector<Warp> warps;
  std::uint32_t live_lanes = 0;
  Barrier barriers[kBarriers];
  Dim3 id;
  const LaunchState* run = nullptr;
};

// Stops the current group with a fault; returns null for the handler to return.
const Instruction* raise(Warp& warp, const Instruction* at, FaultKind kind, std::uint64_t address, int lane);
const Instruction* raise(Warp& warp, const Instruction* at, FaultKind kind, std::string detail);

// Makes the frame at `offset` of the warp's frames current.
inline void set_frame(Warp& warp, std::uint32_t offset) {
  warp.group_frame = offset;
  warp.frame = warp.frames + offset;
  warp.to_constants =
      reinterpret_cast<std::int64_t>(warp.run->program->constants_end) - reinterpret_cast<std::int64_t>(warp.frame);
}

// Makes `warp` stop running and continue at `next` later.
inline const Instruction* pause(Warp& warp, const Instruction* next) {
  warp.next = next;
  return nullptr;
}

}  // namespace softgpu::ptx
