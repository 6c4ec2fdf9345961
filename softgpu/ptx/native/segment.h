// A segment: a stretch of one function's handlers that nothing branches into, all of which have a meaning. It is the
// unit of native code. Branches forward may leave it; a branch from its end to its first instruction makes it a loop,
// which runs inside the native code.
#pragma once

#include <span>
#include <vector>

#include "softgpu/ptx/native/meaning.h"
#include "softgpu/ptx/native/runtime.h"
#include "softgpu/ptx/program.h"

namespace softgpu::ptx::native {

struct Step {
  const Instruction* at = nullptr;
  Meaning meaning;
};

// Rows that a step reads, and the one it writes or kNoRow.
struct RowUse {
  std::int32_t reads[3] = {kNoRow, kNoRow, kNoRow};
  std::int32_t write = kNoRow;
};
RowUse rows_of(const Step& step);

struct Segment {
  std::size_t first = 0;  // index of its first handler in Code::instructions
  std::vector<Step> steps;
  bool is_loop = false;  // the last step branches to the first
};

// The segments of a function that are worth compiling, in order.
std::vector<Segment> find_segments(const Code& code, const Meanings& meanings, Handler label);

// What becomes of rows while a segment runs.
class RowFlow {
 public:
  RowFlow(const Segment& segment, std::span<const RowLife> lives);

  // The step behind `step` that reads what the row holds then, or leaves the segment for code that may; the number of
  // steps when only code behind the segment may; INT_MAX when nobody does.
  int next_read(std::int32_t row, int step) const;
  bool is_live_at_end(std::int32_t row) const;

  // Rows that lead to addresses through sums, with their element sizes. Not ok when one row is used with two sizes.
  struct Tracked {
    std::vector<std::pair<std::int32_t, std::uint8_t>> rows;
    bool ok = true;
  };
  Tracked tracked() const;

 private:
  struct Event {
    std::int32_t row;
    int step;
    bool writes;
  };
  const Segment& segment_;
  std::span<const RowLife> lives_;
  std::vector<Event> events_;  // by row, then step; reads before the write of a step
  std::vector<int> exits_;     // steps that may leave the segment
};

}  // namespace softgpu::ptx::native
