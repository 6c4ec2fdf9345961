// Which registers may share a row. PTX comes in nearly static single assignment: thousands of registers, few alive at
// once. Sharing rows keeps a warp's frame in the CPU's first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

struct RegisterLife {
  std::int32_t row = 0;
  int first = 0, last = 0;  // indices of instructions
};

struct RowAllocation {
  std::vector<std::int32_t> rows;   // by register: offset in the frame, or kNoRow when it is never used
  std::vector<RegisterLife> lives;  // of registers that are used
  std::size_t frame_bytes = 0;
  unsigned peak_words = 0;  // 32-bit registers per thread alive at once
};

RowAllocation allocate_rows(const ast::Function& function);

}  // namespace softgpu::ptx
