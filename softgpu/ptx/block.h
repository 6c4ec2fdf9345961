// Running one block of threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

// Memory that only grows and is not cleared, so that a launch after the first allocates nothing.
class Arena {
 public:
  // At least `bytes`, aligned for rows; zero when newly taken from the system; null when that has none.
  std::byte* reserve(std::size_t bytes);
  std::size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

enum class BlockProgress { kFinished, kSuspended, kFaulted, kDeadlocked };

// A block and the memory it runs in. Reused from block to block and launch to launch.
class BlockRunner {
 public:
  // False when the host has no memory for the block.
  bool start(const LaunchState& run, AddressSpace::Extent* extents, std::uint64_t block_index);

  // What a step may execute: `all` instructions of the block's warps, `each` of one of them before the next has its turn.
  struct Limit {
    int all = 0;
    int each = 0;
  };
  // Runs until the block ends, faults, has reached the limit, or waits in all its warps for what other blocks do. The next
  // step begins with the warp that is next, so that none is passed over.
  BlockProgress step(const InstructionSet& isa, Limit limit);
  // Whether the block may be waiting for one that has not begun: a warp has given way by itself, or the warps have executed
  // a lot since the last time. Asking begins anew.
  bool needs_company();

  const Warp* faulted_warp() const { return faulted_; }
  const Block& block() const { return block_; }
  std::size_t memory_bytes() const { return frames_.capacity() + local_.capacity() + shared_.capacity(); }
  // Counts since the last call.
  void take_counts(Outcome& outcome);

 private:
  void set_thread_ids(const Dim3& block);
  void start_warp(std::size_t index, AddressSpace::Extent* extents);

  Block block_;
  Arena frames_, local_, shared_;
  std::vector<std::uint32_t> thread_ids_;  // per axis and warp a row
  Dim3 thread_ids_of_{0, 0, 0};
  const Warp* faulted_ = nullptr;
  std::size_t next_ = 0;             // the warp whose turn it is
  bool gave_way_ = false;            // a warp has stopped before its budget was used up, and waits for no barrier
  std::int64_t executed_alone_ = 0;  // since needs_company() was last true
};

}  // namespace softgpu::ptx
