// sm_80: copies from device to shared memory that run beside the computation; two tiles in turn.
#include "softgpu/conformance/kernels/common.h"

CUDA_DEVICE_INLINE void copy_16_async(float* shared, const float* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   (unsigned)(unsigned long)(__attribute__((address_space(3))) float*)shared),
               "l"(global)
               : "memory");
}

// Sums of squares of the rows of a tile pipeline: 64 threads, tiles of 256 floats.
KERNEL copy_async_pipeline(int tiles, const float* in, float* out) {
  __shared__ __attribute__((aligned(16))) float buffer[2][256];
  const int t = threadIdx.x;
  copy_16_async(&buffer[0][4 * t], &in[4 * t]);
  asm volatile("cp.async.commit_group;");
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) copy_16_async(&buffer[(tile + 1) % 2][4 * t], &in[(tile + 1) * 256 + 4 * t]);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
      const float value = buffer[tile % 2][(t * 4 + i * 65) % 256];
      sum = fmaf(value, value, sum);
    }
    __syncthreads();
  }
  out[t] = sum;
}
