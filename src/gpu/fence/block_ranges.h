// Kernels that may be launched a part of their blocks at a time. Each one named gets a twin beside it, which is launched as a row of blocks
// and computes what the blocks from a given one on compute; launched range after range it does what the kernel does in one launch:
//
//   k, grid {5, 3, 1}: 15 blocks          k__cut_blocks, grid {8, 1, 1}, first block 0        blocks 0 to 7
//                                         k__cut_blocks, grid {7, 1, 1}, first block 8        blocks 8 to 14
//
// The twin has one parameter more, of 24 bytes (RangeWords): where its first block was in the grid, and the grid as it was asked for. Block
// i of the row is i blocks behind the first: in this example block 3 of the second range is 8 + 3 = 11 of 15, so %ctaid is {1, 2, 0}.
// %ctaid and %nctaid become registers that are computed from that with two divisions, and nothing else changes. So a block computes, bit by
// bit, what it computed; what the order of blocks decides (sums by floating-point atomics) was never promised.
//
// A kernel whose blocks wait for each other would wait for ever for one of a later range. Of such the words of PTX tell only a part:
//
//   told     clusters, %gridid and %envreg (grid.sync()), and loops that look at memory which others write: volatile, relaxed, acquire,
//            .cv and .cg loads, atomics that return something, memory fences, nanosleep
//   assumed  that no kernel waits by plain loads alone. A compiler may hoist those out of the loop, so programs do not
//
// What is told gets no twin, and why. Not told is a wait of blocks that are on the device together; so who launches ranges takes no fewer
// blocks at a time than the device holds (decide/residency/kernel_pieces.h).
//
// The source stays as it is, byte for byte, with the twins behind it: fenced and verified like any other (fence.h, verifier.h).
//
// Pure. Threads: none of its own. Linear in the text, but for functions that kernels call: those are read once for each kernel.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fairlead::fence {

struct RangedKernel {
  std::string name;
  std::string why_whole;  // empty: it has a twin
};

struct RangedModule {
  std::string ptx;
  std::vector<RangedKernel> kernels;  // in the order that was asked for
  bool has_variables = false;         // in .global: another module of the same source begins with them anew
  bool has_twins() const;
};

// kInvalidArgument: what is no PTX that the fence's parser reads, or has names of twins already. A kernel that is not in the module has no
// twin.
Result<RangedModule> add_ranges(std::string_view ptx, std::span<const std::string> kernels);

// The name of a kernel's twin.
std::string twin_of(std::string_view kernel);

// The twin's last parameter.
struct RangeWords {
  std::array<std::uint32_t, 3> first{};  // where the first block is in the grid
  std::array<std::uint32_t, 3> grid{};
};
static_assert(sizeof(RangeWords) == 24);
// `first`: of the blocks in the order of x, then y, then z. REQUIRES: below the number of the grid's blocks.
RangeWords range_words(const std::array<std::uint32_t, 3>& grid, std::uint64_t first);

}  // namespace fairlead::fence
