// The rows of a segment that are also kept as patterns (runtime.h), while it is emitted: where each pattern lies on the
// stack, and whether the row in the frame may be older than it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>

#include "softgpu/ptx/native/layout.h"
#include "softgpu/ptx/native/segment.h"

namespace softgpu::ptx::native {

// A row that is also kept as a pattern.
struct TrackedPattern {
  int pattern = 0;  // its number
  std::uint8_t bytes = 8;
  bool is_stale = false;  // the row in the frame is older than the pattern

  Memory memory() const { return {rsp, pattern * static_cast<std::int32_t>(sizeof(Pattern))}; }
};
// By row. Code out of line has a copy of what holds at its place.
using TrackedRows = std::unordered_map<std::int32_t, TrackedPattern>;

// The row as a slow call is told of it.
TrackedRow describe(const TrackedRows& rows, std::int32_t row);

class PatternRows {
 public:
  // `tracked` are rows and the size of their elements: RowFlow::tracked() of the segment.
  PatternRows(Assembler& assembler, const Segment& segment,
              std::span<const std::pair<std::int32_t, std::uint8_t>> tracked);

  const TrackedRows& rows() const { return rows_; }
  // Null when the row is not tracked.
  TrackedPattern* find(std::int32_t row);

  // Code that begins the patterns: those of constants are known, all others are not.
  void prepare(const Program& program);
  // Code that sets a tracked row's pattern to `value` in all lanes; the row in the frame stays behind.
  void set_uniform(TrackedPattern& row, Register value);
  // Code for a row that was written in the frame; its pattern is out of date.
  void changed(std::int32_t row);

 private:
  void store_uniform(Memory pattern, Register value);

  Assembler& as_;
  TrackedRows rows_;
};

}  // namespace softgpu::ptx::native
