// What the kernels share.
#pragma once

#ifndef __CUDA_ARCH__
#error "for device code: compile with clang++ -x cuda --cuda-device-only"
#endif

#include "abi/cuda_device.h"

#define KERNEL extern "C" __global__ void

constexpr unsigned kAllLanes = 0xffffffffu;

// The thread's index in a one-dimensional grid.
CUDA_DEVICE_INLINE int global_index() {
  return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

// Sum over the warp, in every lane.
template <class T>
CUDA_DEVICE_INLINE T warp_sum(T value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// Sum of values[0 .. lane] over the lanes of the warp.
template <class T>
CUDA_DEVICE_INLINE T warp_inclusive_sum(T value) {
  const int lane = (int)(threadIdx.x % warpSize);
  for (int distance = 1; distance < warpSize; distance *= 2) {
    const T left = __shfl_up_sync(kAllLanes, value, distance);
    if (lane >= distance) value += left;
  }
  return value;
}

// exp(x) by the hardware's approximate power of two: relative error about 2^-21 for |x| < 80.
CUDA_DEVICE_INLINE float fast_exp(float x) {
  return __nvvm_ex2_approx_f(x * 1.44269504f);
}

// Acquire and release at device scope, for flags that guard other memory.
CUDA_DEVICE_INLINE unsigned load_acquire(const unsigned* address) {
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
CUDA_DEVICE_INLINE void store_release(unsigned* address, unsigned value) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
