#include "softgpu/cudart/testdata/program.h"

__device__ int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__constant__ int increment = 10;

__global__ void saxpy(float a, const float* x, const float* y, float* out, int count) {
  const int i =
      static_cast<int>(__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x());
  if (i < count) out[i] = a * x[i] + y[i];
}

extern __shared__ int scratch[];

__global__ void sum(int* out) {
  const int i = static_cast<int>(__nvvm_read_ptx_sreg_tid_x());
  scratch[i] = i;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (i < half) scratch[i] += scratch[i + half];
  }
  if (i == 0) *out = scratch[0];
}

__global__ void bump() {
  table[__nvvm_read_ptx_sreg_tid_x()] += increment;
}

__global__ void wild_store() {
  *reinterpret_cast<int*>(16) = 1;
}

extern "C" {
void launch_saxpy(float a, const float* x, const float* y, float* out, int count, cudaStream_t stream) {
  saxpy<<<(count + 63) / 64, 64, 0, stream>>>(a, x, y, out, count);
}
void launch_sum(int* out) {
  sum<<<1, 256, 256 * sizeof(int)>>>(out);
}
void launch_bump() {
  bump<<<1, 8>>>();
}
void launch_wild_store() {
  wild_store<<<1, 1>>>();
}
const void* saxpy_symbol() {
  return reinterpret_cast<const void*>(&saxpy);
}
const void* table_symbol() {
  return &table;
}
const void* increment_symbol() {
  return &increment;
}
}
