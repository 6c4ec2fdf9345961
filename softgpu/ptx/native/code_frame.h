// How a segment's code is entered and left: saved registers, the stack with the patterns, and the counts.
//
// The code is called like a handler, with the warp in rdi, and returns the instruction that runs next, or null when the
// warp stops. Each way out counts the steps that it has behind it; nothing is counted in between.
#pragma once

#include <cstdint>

#include "softgpu/ptx/native/pattern_rows.h"
#include "softgpu/ptx/native/slow_ways.h"

namespace softgpu::ptx::native {

// Bytes of global memory that the step moves for each lane.
std::int32_t global_bytes(const Step& step);

class CodeFrame {
 public:
  // All must outlive this.
  CodeFrame(Assembler& assembler, const Segment& segment, const RowFlow& flow, SlowWays& slow)
      : as_(assembler), segment_(segment), flow_(flow), slow_(slow) {}

  // The entry. A warp that may not write whole rows goes to the handler that the code replaces.
  void enter(std::int32_t pattern_bytes);
  // Counts the first `steps` steps of the segment. Clobbers rcx.
  void count(int steps);
  // Leaves with what rax holds.
  void restore_and_return();
  // Continues at `next`, null when the warp stops, behind `steps` steps. All dirty slots have been written back; of `rows`
  // those are brought up to date that somebody reads behind step `behind`.
  void leave(const Instruction* next, int steps, int behind, const TrackedRows& rows);

 private:
  void take_back_first();
  void write_live_patterns(int behind, const TrackedRows& rows);

  Assembler& as_;
  const Segment& segment_;
  const RowFlow& flow_;
  SlowWays& slow_;
  std::int32_t stack_bytes_ = 0;
};

}  // namespace softgpu::ptx::native
