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

  // Runs until the block ends, faults, or one of its warps has made `budget` backward branches or calls.
  BlockProgress step(const InstructionSet& isa, int budget);

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
};

}  // namespace softgpu::ptx
