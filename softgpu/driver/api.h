// The driver's ABI as its implementation sees it: exact symbol names, exported from the library.
#pragma once

#define CUDA_ABI_EXACT_NAMES
#pragma GCC visibility push(default)
#include "abi/cuda.h"
#pragma GCC visibility pop

// Leaves the entry point with the first error.
#define SOFTGPU_TRY(expression)                                                         \
  do {                                                                                  \
    if (const CUresult result_ = (expression); result_ != CUDA_SUCCESS) return result_; \
  } while (false)
