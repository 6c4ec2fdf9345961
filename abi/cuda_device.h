// The device side of CUDA C++ under its own names, for kernels that clang compiles to PTX without a toolkit: qualifiers,
// index variables, barriers, warp operations, atomics, and the arithmetic that is one instruction.
//
// Example: clang++-16 -x cuda --cuda-device-only -S -O3 -std=c++20 -nocudainc -nocudalib --cuda-gpu-arch=sm_70
//                     --cuda-feature=+ptx63 -I <root> kernels.cu -o kernels.ptx
//
// Compiler builtins that need no declaration: __syncthreads(), __builtin_fmaf, __builtin_popcount and the like.
#pragma once

#ifndef __CUDA_ARCH__
#error "for device code: compile with clang++ -x cuda --cuda-device-only"
#endif

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define CUDA_DEVICE_INLINE static __device__ inline __attribute__((always_inline))

// threadIdx.x reads a special register: each index variable is a stateless object whose members are properties.
#define CUDA_DEVICE_INDEX(type, variable, reg)           \
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
CUDA_DEVICE_INDEX(CudaThreadIndex, threadIdx, tid);
CUDA_DEVICE_INDEX(CudaBlockIndex, blockIdx, ctaid);
CUDA_DEVICE_INDEX(CudaBlockSize, blockDim, ntid);
CUDA_DEVICE_INDEX(CudaGridSize, gridDim, nctaid);
#undef CUDA_DEVICE_INDEX

constexpr int warpSize = 32;

// ---- Barriers and fences ----
CUDA_DEVICE_INLINE void __syncwarp(unsigned mask = 0xffffffffu) {
  __nvvm_bar_warp_sync(mask);
}
CUDA_DEVICE_INLINE int __syncthreads_count(int predicate) {
  return __nvvm_bar0_popc(predicate);
}
CUDA_DEVICE_INLINE int __syncthreads_and(int predicate) {
  return __nvvm_bar0_and(predicate);
}
CUDA_DEVICE_INLINE int __syncthreads_or(int predicate) {
  return __nvvm_bar0_or(predicate);
}
CUDA_DEVICE_INLINE void __threadfence() {
  __nvvm_membar_gl();
}
CUDA_DEVICE_INLINE void __threadfence_block() {
  __nvvm_membar_cta();
}
CUDA_DEVICE_INLINE void __threadfence_system() {
  __nvvm_membar_sys();
}

// ---- Warps ----
CUDA_DEVICE_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return __nvvm_vote_ballot_sync(mask, predicate);
}
CUDA_DEVICE_INLINE int __any_sync(unsigned mask, int predicate) {
  return __nvvm_vote_any_sync(mask, predicate);
}
CUDA_DEVICE_INLINE int __all_sync(unsigned mask, int predicate) {
  return __nvvm_vote_all_sync(mask, predicate);
}
CUDA_DEVICE_INLINE unsigned __match_any_sync(unsigned mask, unsigned value) {
  return __nvvm_match_any_sync_i32(mask, value);
}
CUDA_DEVICE_INLINE unsigned __match_all_sync(unsigned mask, unsigned value, int* equal) {
  return __nvvm_match_all_sync_i32p(mask, value, equal);
}
CUDA_DEVICE_INLINE unsigned __activemask() {
  unsigned mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
CUDA_DEVICE_INLINE unsigned __lanemask_lt() {
  unsigned mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

// Shuffles take part in sub-warps of `width` lanes. `bound` is the instruction's clamp, in its low five bits.
#define CUDA_DEVICE_SHUFFLE(name, mode, bound)                                                                 \
  CUDA_DEVICE_INLINE int name(unsigned mask, int value, int lane, int width = warpSize) {                      \
    return __nvvm_shfl_sync_##mode##_i32(mask, value, lane, ((warpSize - width) << 8) | (bound));              \
  }                                                                                                            \
  CUDA_DEVICE_INLINE unsigned name(unsigned mask, unsigned value, int lane, int width = warpSize) {            \
    return (unsigned)name(mask, (int)value, lane, width);                                                      \
  }                                                                                                            \
  CUDA_DEVICE_INLINE float name(unsigned mask, float value, int lane, int width = warpSize) {                  \
    return __nvvm_shfl_sync_##mode##_f32(mask, value, lane, ((warpSize - width) << 8) | (bound));              \
  }                                                                                                            \
  CUDA_DEVICE_INLINE unsigned long long name(unsigned mask, unsigned long long value, int lane,                \
                                             int width = warpSize) {                                           \
    const unsigned low = name(mask, (unsigned)value, lane, width);                                             \
    return (unsigned long long)name(mask, (unsigned)(value >> 32), lane, width) << 32 | low;                   \
  }                                                                                                            \
  CUDA_DEVICE_INLINE double name(unsigned mask, double value, int lane, int width = warpSize) {                \
    return __builtin_bit_cast(double, name(mask, __builtin_bit_cast(unsigned long long, value), lane, width)); \
  }
CUDA_DEVICE_SHUFFLE(__shfl_sync, idx, 31)
CUDA_DEVICE_SHUFFLE(__shfl_up_sync, up, 0)
CUDA_DEVICE_SHUFFLE(__shfl_down_sync, down, 31)
CUDA_DEVICE_SHUFFLE(__shfl_xor_sync, bfly, 31)
#undef CUDA_DEVICE_SHUFFLE

// ---- Atomics: the old value is returned ----
#define CUDA_DEVICE_ATOMIC(name, type, builtin)                \
  CUDA_DEVICE_INLINE type name(type* address, type value) {    \
    return (type)__nvvm_atom_##builtin((type*)address, value); \
  }
CUDA_DEVICE_ATOMIC(atomicAdd, int, add_gen_i)
CUDA_DEVICE_ATOMIC(atomicAdd, long long, add_gen_ll)
CUDA_DEVICE_ATOMIC(atomicAdd, float, add_gen_f)
CUDA_DEVICE_ATOMIC(atomicAdd, double, add_gen_d)
CUDA_DEVICE_ATOMIC(atomicMin, int, min_gen_i)
CUDA_DEVICE_ATOMIC(atomicMin, unsigned, min_gen_ui)
CUDA_DEVICE_ATOMIC(atomicMax, int, max_gen_i)
CUDA_DEVICE_ATOMIC(atomicMax, unsigned, max_gen_ui)
CUDA_DEVICE_ATOMIC(atomicExch, int, xchg_gen_i)
CUDA_DEVICE_ATOMIC(atomicAnd, int, and_gen_i)
CUDA_DEVICE_ATOMIC(atomicOr, int, or_gen_i)
CUDA_DEVICE_ATOMIC(atomicXor, int, xor_gen_i)
CUDA_DEVICE_ATOMIC(atomicInc, unsigned, inc_gen_ui)
CUDA_DEVICE_ATOMIC(atomicDec, unsigned, dec_gen_ui)
#undef CUDA_DEVICE_ATOMIC
CUDA_DEVICE_INLINE unsigned atomicAdd(unsigned* address, unsigned value) {
  return (unsigned)atomicAdd((int*)address, (int)value);
}
CUDA_DEVICE_INLINE unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return (unsigned long long)atomicAdd((long long*)address, (long long)value);
}
CUDA_DEVICE_INLINE unsigned atomicExch(unsigned* address, unsigned value) {
  return (unsigned)atomicExch((int*)address, (int)value);
}
CUDA_DEVICE_INLINE unsigned atomicAnd(unsigned* address, unsigned value) {
  return (unsigned)atomicAnd((int*)address, (int)value);
}
CUDA_DEVICE_INLINE unsigned atomicOr(unsigned* address, unsigned value) {
  return (unsigned)atomicOr((int*)address, (int)value);
}
CUDA_DEVICE_INLINE unsigned atomicXor(unsigned* address, unsigned value) {
  return (unsigned)atomicXor((int*)address, (int)value);
}
CUDA_DEVICE_INLINE int atomicCAS(int* address, int expected, int desired) {
  return __nvvm_atom_cas_gen_i(address, expected, desired);
}
CUDA_DEVICE_INLINE unsigned atomicCAS(unsigned* address, unsigned expected, unsigned desired) {
  return (unsigned)atomicCAS((int*)address, (int)expected, (int)desired);
}
CUDA_DEVICE_INLINE unsigned long long atomicCAS(unsigned long long* address, unsigned long long expected,
                                                unsigned long long desired) {
  return (unsigned long long)__nvvm_atom_cas_gen_ll((long long*)address, (long long)expected, (long long)desired);
}

// ---- Arithmetic ----
CUDA_DEVICE_INLINE int min(int a, int b) {
  return a < b ? a : b;
}
CUDA_DEVICE_INLINE int max(int a, int b) {
  return a > b ? a : b;
}
CUDA_DEVICE_INLINE float fminf(float a, float b) {
  return __builtin_fminf(a, b);
}
CUDA_DEVICE_INLINE float fmaxf(float a, float b) {
  return __builtin_fmaxf(a, b);
}
CUDA_DEVICE_INLINE float fabsf(float x) {
  return __builtin_fabsf(x);
}
CUDA_DEVICE_INLINE float fmaf(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CUDA_DEVICE_INLINE double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
CUDA_DEVICE_INLINE float sqrtf(float x) {
  return __nvvm_sqrt_rn_f(x);
}
CUDA_DEVICE_INLINE double sqrt(double x) {
  return __nvvm_sqrt_rn_d(x);
}
