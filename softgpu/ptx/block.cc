#include "softgpu/ptx/block.h"

#include <algorithm>
#include <cstdlib>

#include "softgpu/ptx/schedule.h"

namespace softgpu::ptx {
namespace {

std::size_t thread_count(const Dim3& dim) {
  return std::size_t{dim.x} * dim.y * dim.z;
}

// A warp's turn; returns what it has executed or paid for.
std::int64_t run_warp(const InstructionSet& isa, Warp& warp, int budget) {
  const std::uint64_t before = warp.instructions;
  warp.budget = budget;
  warp.next = resume(warp);
  if (warp.next != nullptr) isa.run(warp);
  return std::max(static_cast<std::int64_t>(warp.instructions - before), std::int64_t{budget} - warp.budget);
}

}  // namespace

void Arena::Free::operator()(void* memory) const {
  std::free(memory);
}

std::byte* Arena::reserve(std::size_t bytes) {
  const auto aligned = [&] {
    return reinterpret_cast<std::byte*>(align_up(reinterpret_cast<std::uintptr_t>(memory_.get()), kRowAlignment));
  };
  if (memory_ && bytes <= capacity_) return aligned();
  // calloc leaves large memory untouched until it is used.
  memory_.reset(static_cast<std::byte*>(std::calloc(1, bytes + kRowAlignment)));
  capacity_ = memory_ ? bytes : 0;
  return memory_ ? aligned() : nullptr;
}

void BlockRunner::set_thread_ids(const Dim3& dim) {
  if (dim.x == thread_ids_of_.x && dim.y == thread_ids_of_.y && dim.z == thread_ids_of_.z) return;
  thread_ids_of_ = dim;
  const std::size_t threads = align_up(thread_count(dim), kLanes);
  thread_ids_.resize(3 * threads);
  for (std::size_t i = 0; i < threads; ++i) {
    thread_ids_[i] = static_cast<std::uint32_t>(i % dim.x);
    thread_ids_[threads + i] = static_cast<std::uint32_t>(i / dim.x % dim.y);
    thread_ids_[2 * threads + i] = static_cast<std::uint32_t>(i / dim.x / dim.y);
  }
}

bool BlockRunner::start(const LaunchState& run, AddressSpace::Extent* extents, std::uint64_t block_index) {
  const Dim3& grid = run.launch->grid;
  const Dim3& dim = run.launch->block;
  const std::size_t threads = thread_count(dim);
  const std::size_t warps = (threads + kLanes - 1) / kLanes;
  block_.run = &run;
  block_.id = {static_cast<unsigned>(block_index % grid.x), static_cast<unsigned>(block_index / grid.x % grid.y),
               static_cast<unsigned>(block_index / grid.x / grid.y)};
  block_.live_lanes = static_cast<std::uint32_t>(threads);
  for (Barrier& barrier : block_.barriers) barrier = {};
  if (block_.warps.size() != warps) block_.warps.resize(warps);
  set_thread_ids(dim);
  faulted_ = nullptr;
  next_ = 0;
  gave_way_ = false;
  executed_alone_ = 0;
  std::byte* frames = frames_.reserve(warps * run.frame_bytes);
  std::byte* local = local_.reserve(warps * kLanes * run.local_bytes);
  std::byte* shared = shared_.reserve(run.shared_bytes);
  if (frames == nullptr || local == nullptr || shared == nullptr) return false;
  for (std::size_t i = 0; i < warps; ++i) {
    Warp& warp = block_.warps[i];
    warp.frames = frames + i * run.frame_bytes;
    warp.local = local + i * kLanes * run.local_bytes;
    warp.shared = shared;
    start_warp(i, extents);
  }
  return true;
}

void BlockRunner::start_warp(std::size_t index, AddressSpace::Extent* extents) {
  const LaunchState& run = *block_.run;
  const std::size_t threads = thread_count(run.launch->block);
  const std::size_t lanes = std::min<std::size_t>(kLanes, threads - index * kLanes);
  Warp& warp = block_.warps[index];
  warp.run = &run;
  set_frame(warp, 0);
  warp.live = warp.mask = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  warp.whole = true;
  warp.limit = reinterpret_cast<const Instruction*>(~std::uintptr_t{0});
  warp.extents = extents;
  warp.shared_bytes = run.shared_bytes;
  warp.global_bytes = warp.instructions = warp.lane_instructions = 0;
  warp.patience = kPatience;
  warp.converge_anyway = false;
  warp.carry = 0;
  if (warp.fault.kind != FaultKind::kNone) warp.fault = {};
  warp.status = WarpStatus::kReady;
  warp.waits_at = -1;
  warp.next = run.entry->instructions.data();
  warp.group_frame_end = static_cast<std::uint32_t>(run.entry->frame_bytes);
  warp.local_base = 0;
  warp.calls.clear();
  warp.others.clear();
  warp.block = &block_;
  warp.local_bytes = run.local_bytes;
  warp.parameters = run.parameters.data();
  warp.parameter_bytes = run.parameters.size();
  warp.index = static_cast<std::uint32_t>(index);
  const std::size_t axis_length = thread_ids_.size() / 3;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    warp.thread_ids[axis] = thread_ids_.data() + axis * axis_length + index * kLanes;
  }
}

// Barriers are met by going round: a pass over the warps may release warps that an earlier pass left waiting.
BlockProgress BlockRunner::step(const InstructionSet& isa, Limit limit) {
  const std::size_t warps = block_.warps.size();
  std::size_t waiting = 0;  // warps in a row that could not run
  bool yielded = false;
  std::int64_t executed = 0;
  while (waiting < warps) {
    Warp& warp = block_.warps[next_];
    next_ = next_ + 1 < warps ? next_ + 1 : 0;
    ++waiting;
    if (warp.status == WarpStatus::kReady) {
      waiting = 0;
      executed += run_warp(isa, warp, static_cast<int>(std::min<std::int64_t>(limit.each, limit.all - executed)));
      if (warp.status == WarpStatus::kFaulted) {
        faulted_ = &warp;
        return BlockProgress::kFaulted;
      }
      if (block_.live_lanes == 0) return BlockProgress::kFinished;
      if (warp.status == WarpStatus::kReady) {
        yielded = true;
        gave_way_ |= warp.budget >= 0;
      }
    }
    if (executed >= limit.all || (yielded && next_ == 0)) {
      executed_alone_ += executed;
      return BlockProgress::kSuspended;
    }
  }
  return BlockProgress::kDeadlocked;
}

bool BlockRunner::needs_company() {
  constexpr std::int64_t kAloneForEachWarp = 1 << 16;
  const bool needs = gave_way_ || executed_alone_ >= kAloneForEachWarp * static_cast<std::int64_t>(block_.warps.size());
  if (needs) executed_alone_ = 0;
  gave_way_ = false;
  return needs;
}

void BlockRunner::take_counts(Outcome& outcome) {
  for (Warp& warp : block_.warps) {
    outcome.warp_instructions += warp.instructions;
    outcome.lane_instructions += warp.lane_instructions;
    outcome.global_bytes += warp.global_bytes;
    warp.instructions = warp.lane_instructions = warp.global_bytes = 0;
  }
}

}  // namespace softgpu::ptx
