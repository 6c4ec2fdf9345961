// The few CUDA words the test kernels need, for clang without any toolkit header.
#pragma once

#ifndef __CUDA_ARCH__
#error "for device code: compile with clang -x cuda --cuda-device-only"
#endif

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#define KERNEL extern "C" __global__ void

struct __cuda_builtin_threadIdx_t {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_tid_x(); }
  static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_tid_y(); }
  static __device__ unsigned get_z() { return __nvvm_read_ptx_sreg_tid_z(); }
};
struct __cuda_builtin_blockIdx_t {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
  static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
  static __device__ unsigned get_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
};
struct __cuda_builtin_blockDim_t {
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
  static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
};
struct __cuda_builtin_gridDim_t {
  __declspec(property(get = get_x)) unsigned x;
  static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
};
static __device__ __cuda_builtin_threadIdx_t threadIdx;
static __device__ __cuda_builtin_blockIdx_t blockIdx;
static __device__ __cuda_builtin_blockDim_t blockDim;
static __device__ __cuda_builtin_gridDim_t gridDim;
