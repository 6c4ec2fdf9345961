// Errors that end a context: from then on every call in it fails with the same code, and only the driver knows in which.
//
// Threads: any.
#pragma once

#include <atomic>

#include "abi/cuda_types.h"

namespace fairlead::shim {

extern std::atomic<bool> context_lost;

inline bool ends_context(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK: return true;
    default: return false;
  }
}

// What a waiting call returned. After the first such error allocations are left to the driver, which refuses them where
// they must be refused.
inline CUresult note_result(CUresult result) {
  if (result != CUDA_SUCCESS && ends_context(result)) context_lost.store(true, std::memory_order_relaxed);
  return result;
}

}  // namespace fairlead::shim
