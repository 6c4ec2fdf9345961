// What program.cu offers to the test: launches with `<<<>>>` and the host symbols of its variables.
#pragma once

#include "abi/cuda_runtime.h"

extern "C" {
// out[i] = a * x[i] + y[i], in blocks of 64.
void launch_saxpy(float a, const float* x, const float* y, float* out, int count, cudaStream_t stream);
// *out = the sum of 0 .. 255, through dynamic shared memory.
void launch_sum(int* out);
// table[i] += increment for the 8 words of the variable `table`; `increment` is a __constant__.
void launch_bump();
// Writes through a pointer that is no device memory.
void launch_wild_store();
const void* saxpy_symbol();
const void* table_symbol();
const void* increment_symbol();
}
