// Emits the native code of one segment: the entry, its instructions (writers.h), its ways out and the loop, and behind
// them what lies out of line (slow_ways.h).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>

#include "softgpu/ptx/native/assembler.h"
#include "softgpu/ptx/native/segment.h"

namespace softgpu::ptx::native {

// What the segments of a program have in common. All must outlive the code.
struct CompileTarget {
  Assembler& assembler;
  const Runtime& runtime;
  const Program& program;
  std::deque<SlowCall>& calls;
};

// Appends the code. REQUIRES: flow.tracked() is ok; `tracked` are its rows.
void compile_segment(const CompileTarget& target, const Segment& segment, const RowFlow& flow,
                     std::span<const std::pair<std::int32_t, std::uint8_t>> tracked);

}  // namespace softgpu::ptx::native
