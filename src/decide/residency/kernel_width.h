// How wide a kernel task is: the part of a device's SMs that its kernels can be on at once, whatever they compute. A block is on one SM, so
// kernels of 8 blocks are on 8 SMs at most, and the others are somebody else's on a device that is paced (docs/explanation/pacer.md).
//
//   a (64 blocks) ──> b (4 blocks) ──┐
//                └──> c (6 blocks) ──┴─> d (8 blocks)         chains a b d and c: 64 + 6 blocks at most
//
// Kernels that depend on each other never run together. So the kernels are divided into chains of those that do, and no more run at once
// than one of each chain. The bound is not always reached: a and c above never run together, and 64 blocks is the truth.
//
// The streams of a launch plan (runtime/device_server/launch_plan.h) are such chains, too, as long as there are enough of them. Here there are as
// many as it takes, and finding one looks at a kernel's own dependencies alone: a task may have thousands of kernels that depend on nothing.
//
// Example: a chain of kernels of 8 blocks and less on a GPU of 80 SMs is 10 % wide. Ten such tasks run beside each other.
//
// What is not counted: filling buffers with zeros and copying them within the device, which a driver may do with kernels of its own.
//
// Pure. Threads: free functions, any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

// Blocks of all kernels that run at once, at most. before[k]: the earlier kernels that k follows; blocks[k]: of kernel k, at least 1.
// The largest number where the sum is none. REQUIRES: both are equally long.
std::uint64_t most_blocks_at_once(const std::vector<std::vector<std::uint32_t>>& before,
                                  const std::vector<std::uint64_t>& blocks);

// Per cent of so many SMs that so many blocks are on at most, 1 to 100. REQUIRES: sms > 0.
int width_percent(std::uint64_t blocks, std::uint64_t sms);

}  // namespace fairlead
