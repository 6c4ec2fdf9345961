// For kernels that clang compiles to PTX without a CUDA toolkit: the device side of CUDA C++ (abi/cuda_device.h), and on
// top of it warp reductions and single-precision mathematics.
//
// Example: compile with fairlead_kernels() of FairleadFunction.cmake, or by hand:
//   clang++-16 -x cuda --cuda-device-only -S -O2 -std=c++20 -nocudainc -nocudalib --cuda-gpu-arch=sm_70
//              --cuda-feature=+ptx63 -I functions/runtime -I . kernels.cu -o kernels.ptx
//
// Declare kernels `extern "C" __global__ void name(...)`, so that the driver finds them under their plain name.
// Accuracy: functions marked "approximate" use the hardware's approximation (relative error about 2^-22); the others are
// correctly rounded.
#pragma once

#ifndef __CUDA_ARCH__
#error "fairlead/device.h is for device compilation: clang++ -x cuda --cuda-device-only"
#endif

#include "abi/cuda_device.h"

#define FAIRLEAD_DEVICE CUDA_DEVICE_INLINE

constexpr unsigned kWarpSize = 32;
constexpr unsigned kFullMask = 0xffffffffu;

// The thread's index in a one-dimensional grid.
FAIRLEAD_DEVICE int global_thread() {
  return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

// __syncthreads() is a compiler builtin.

// Value of `value` in lane (own lane + delta), own value where that lane does not exist. All lanes take part.
FAIRLEAD_DEVICE int shuffle_down(int value, unsigned delta) {
  return __nvvm_shfl_sync_down_i32(kFullMask, value, delta, kWarpSize - 1);
}
FAIRLEAD_DEVICE float shuffle_down(float value, unsigned delta) {
  return __nvvm_shfl_sync_down_f32(kFullMask, value, delta, kWarpSize - 1);
}
FAIRLEAD_DEVICE float shuffle_xor(float value, unsigned lane_mask) {
  return __nvvm_shfl_sync_bfly_f32(kFullMask, value, lane_mask, kWarpSize - 1);
}

// Sum and maximum over the warp; every lane receives the result.
FAIRLEAD_DEVICE float warp_sum(float value) {
  for (unsigned mask = kWarpSize / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}
FAIRLEAD_DEVICE float warp_max(float value) {
  for (unsigned mask = kWarpSize / 2; mask > 0; mask /= 2) value = __builtin_fmaxf(value, shuffle_xor(value, mask));
  return value;
}

FAIRLEAD_DEVICE int float_to_int_rounded(float x) {
  return __nvvm_f2i_rn(x);
}  // ties to even

// Approximate.
FAIRLEAD_DEVICE float rsqrtf(float x) {
  return __nvvm_rsqrt_approx_f(x);
}
FAIRLEAD_DEVICE float exp2f(float x) {
  return __nvvm_ex2_approx_f(x);
}
FAIRLEAD_DEVICE float log2f(float x) {
  return __nvvm_lg2_approx_f(x);
}
FAIRLEAD_DEVICE float expf(float x) {
  return exp2f(x * 1.44269504f);
}
FAIRLEAD_DEVICE float logf(float x) {
  return log2f(x) * 0.69314718f;
}

// Approximate; absolute error about 2^-20 for |x| < 1000.
FAIRLEAD_DEVICE float reduce_to_pi(float x) {
  return x - 6.28318531f * __nvvm_floor_f(x * 0.159154943f + 0.5f);
}
FAIRLEAD_DEVICE float sinf(float x) {
  return __nvvm_sin_approx_f(reduce_to_pi(x));
}
FAIRLEAD_DEVICE float cosf(float x) {
  return __nvvm_cos_approx_f(reduce_to_pi(x));
}

// Approximate. The argument is clamped where the result is 1 to single precision and exp would overflow.
FAIRLEAD_DEVICE float tanhf(float x) {
  const float e = expf(2.0f * fminf(fmaxf(x, -10.0f), 10.0f));
  return (e - 1.0f) / (e + 1.0f);
}
