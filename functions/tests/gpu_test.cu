// Kernels for gpu_test.cc.
#include "fairlead/device.h"
#include "fairlead/random.h"

extern "C" __global__ void add_scaled(float* out, const float* in, float factor, int count) {
  const int i = global_thread();
  if (i < count) out[i] += factor * in[i];
}

extern "C" __global__ void write_nowhere(int* address, long long offset) {
  address[offset] = 1;
}

// out[k * count + i] = function k of in[i].
extern "C" __global__ void evaluate(const float* in, float* out, int count) {
  const int i = global_thread();
  if (i >= count) return;
  const float x = in[i];
  const float results[] = {
      expf(x),         logf(fabsf(x)),   sinf(x),        cosf(x),        tanhf(x),
      sqrtf(fabsf(x)), rsqrtf(fabsf(x)), fminf(x, 0.5f), fmaxf(x, 0.5f), (float)float_to_int_rounded(x)};
  for (const float result : results) {
    *(out + i) = result;
    out += count;
  }
}

extern "C" __global__ void random_numbers(unsigned seed, unsigned* bits, float* uniform, int count) {
  const int i = global_thread();
  if (i >= count) return;
  bits[i] = random_bits(seed, i);
  uniform[i] = random_uniform(seed, i);
}

// One warp: out holds the sum, the maximum and lane 3's value from 4 lanes on.
extern "C" __global__ void warp_operations(const float* in, float* out) {
  const float value = in[threadIdx.x];
  const float sum = warp_sum(value);
  const float largest = warp_max(value);
  const float shifted = shuffle_down(value, 4);
  if (threadIdx.x == 3) {
    out[0] = sum;
    out[1] = largest;
    out[2] = shifted;
  }
}

// All threads of all blocks count themselves, in shared memory first.
extern "C" __global__ void count_threads(int* total) {
  __shared__ int here;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) here = 0;
  __syncthreads();
  atomicAdd(&here, 1);
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) atomicAdd(total, here);
}
