// What the writers of a segment's instructions share: where its rows are, and what becomes of a row that an instruction
// has written. A writer reads its sources through `registers` and ends with one of the define functions.
#pragma once

#include <cstdint>

#include "softgpu/ptx/native/code_frame.h"
#include "softgpu/ptx/native/pattern_rows.h"
#include "softgpu/ptx/native/row_registers.h"
#include "softgpu/ptx/native/slow_ways.h"

namespace softgpu::ptx::native {

struct Emission {
  Assembler& as;
  VectorCode vectors;
  RowRegisters registers;
  PatternRows patterns;
  SlowWays& slow;
  CodeFrame& frame;

  // The slot's registers have become the row.
  void define(std::int32_t row, int slot);
  // The row was written in the frame.
  void define_in_frame(std::int32_t row);
  // eax becomes the row of a predicate.
  void define_mask(std::int32_t row);
  // A step reads the row itself, so it must be up to date.
  void bring_row(std::int32_t row);
};

}  // namespace softgpu::ptx::native
