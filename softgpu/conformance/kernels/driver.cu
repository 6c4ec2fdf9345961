// Small kernels for the rules of the driver.
#include "softgpu/conformance/kernels/common.h"

KERNEL store_index(int n, unsigned* out) {
  const int i = global_index();
  if (i < n) out[i] = (unsigned)i;
}

KERNEL add_to(unsigned* word, unsigned value) {
  *word = *word * 3 + value;
}

// Says that it runs in flag[1], then waits for flag[0]: host memory that the device sees.
KERNEL wait_for_flag(volatile unsigned* flag) {
  flag[1] = 1;
  __threadfence_system();
  while (flag[0] == 0) {
  }
}

__device__ int initialised[4] = {10, 20, 30, 40};
__constant__ float constants[3] = {0.5f, 1.5f, 2.5f};
KERNEL bump(int* out) {
  out[threadIdx.x] = initialised[threadIdx.x] += (int)constants[1];
}

KERNEL __launch_bounds__(128) bounded(int* out) {
  __shared__ int values[64];
  values[threadIdx.x % 64] = (int)threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x % 64];
}
