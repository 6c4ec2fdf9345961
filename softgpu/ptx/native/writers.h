// The writers: each appends the native code of one instruction, family by family. All end with the result defined in
// `emission`. REQUIRES of each: the step's meaning is one of its family's; rows that it reads itself have been brought
// (Emission::bring_row), which write_instruction does.
#pragma once

#include "softgpu/ptx/native/emission.h"

namespace softgpu::ptx::native {

// Any instruction but a branch.
void write_instruction(Emission& emission, const Step& step);

// arithmetic_writer.cc: rows of numbers.
void write_narrow(Emission& emission, const Step& step);     // one or two sources of 32-bit elements
void write_wide(Emission& emission, const Step& step);       // of 64-bit elements, which stay in the frame
void write_fused(Emission& emission, const Step& step);      // a * b + c
void write_widening(Emission& emission, const Step& step);   // 32-bit elements in, 64-bit elements out
void write_narrowing(Emission& emission, const Step& step);  // 64-bit elements in, their lower halves out

// predicate_writer.cc: masks.
void write_compare(Emission& emission, const Step& step);
void write_predicate(Emission& emission, const Step& step);
void write_select(Emission& emission, const Step& step);

// uniform_writer.cc: values that the launch brings.
void write_parameter(Emission& emission, const Step& step);
void write_special(Emission& emission, const Step& step);
void write_thread_index(Emission& emission, const Step& step);

// pattern_writer.cc: a sum that leads to an address, of tracked rows only.
void write_pattern(Emission& emission, const Step& step);
// What the step's slow way is told.
SlowCall slow_call(const TrackedRows& rows, const Step& step);

// access_writer.cc: loads and stores.
void write_access(Emission& emission, const Step& step);

}  // namespace softgpu::ptx::native
