// The device side of CUDA C++, for kernels that clang compiles to PTX without a CUDA toolkit: qualifiers, index
// variables, barrier, shuffles, atomics and single-precision mathematics.
//
// Example: compile with fairlead_kernels() of FairleadFunction.cmake, or by hand:
//   clang++-16 -x cuda --cuda-device-only -S -O2 -std=c++20 -nocudainc -nocudalib --cuda-gpu-arch=sm_70
//              --cuda-feature=+ptx63 -I functions/runtime kernels.cu -o kernels.ptx
//
// Declare kernels `extern "C" __global__ void name(...)`, so that the driver finds them under their plain name.
// Accuracy: functions marked "approximate" use the hardware's approximation (relative error about 2^-22); the others are
// correctly rounded.
#pragma once

#ifndef __CUDA_ARCH__
#error "fairlead/device.h is for device compilation: clang++ -x cuda --cuda-device-only"
#endif

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(max_threads) __attribute__((launch_bounds(max_threads)))

#define FAIRLEAD_DEVICE static __device__ inline __attribute__((always_inline))

// threadIdx.x reads a special register: each index variable is a stateless object whose members are properties.
#define FAIRLEAD_INDEX(type, variable, reg)              \
  struct type {                                          \
    __declspec(property(get = get_x)) unsigned x;        \
    __declspec(property(get = get_y)) unsigned y;        \
    __declspec(property(get = get_z)) unsigned z;        \
    static __device__ inline unsigned get_x() {          \
      return (unsigned)__nvvm_read_ptx_sreg_##reg##_x(); \
    }                                                    \
    static __device__ inline unsigned get_y() {          \
      return (unsigned)__nvvm_read_ptx_sreg_##reg##_y(); \
    }                                                    \
    static __device__ inline unsigned get_z() {          \
      return (unsigned)__nvvm_read_ptx_sreg_##reg##_z(); \
    }                                                    \
  };                                                     \
  extern const __device__ type variable

FAIRLEAD_INDEX(ThreadIndex, threadIdx, tid);
FAIRLEAD_INDEX(BlockIndex, blockIdx, ctaid);
FAIRLEAD_INDEX(BlockSize, blockDim, ntid);
FAIRLEAD_INDEX(GridSize, gridDim, nctaid);
#undef FAIRLEAD_INDEX

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

// Adds to device or shared memory; returns the old value.
FAIRLEAD_DEVICE int atomicAdd(int* address, int value) {
  return __nvvm_atom_add_gen_i(address, value);
}
FAIRLEAD_DEVICE long long atomicAdd(long long* address, long long value) {
  return __nvvm_atom_add_gen_ll(address, value);
}
FAIRLEAD_DEVICE float atomicAdd(float* address, float value) {
  return __nvvm_atom_add_gen_f(address, value);
}

FAIRLEAD_DEVICE int min(int a, int b) {
  return a < b ? a : b;
}
FAIRLEAD_DEVICE int max(int a, int b) {
  return a > b ? a : b;
}
FAIRLEAD_DEVICE float fminf(float a, float b) {
  return __builtin_fminf(a, b);
}
FAIRLEAD_DEVICE float fmaxf(float a, float b) {
  return __builtin_fmaxf(a, b);
}
FAIRLEAD_DEVICE float fabsf(float x) {
  return __builtin_fabsf(x);
}
FAIRLEAD_DEVICE float sqrtf(float x) {
  return __nvvm_sqrt_rn_f(x);
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
