// Kernels for the rules of launches.
#include "softgpu/conformance/kernels/common.h"

// Ends only when all blocks of the grid run at the same time.
KERNEL meet_all_blocks(unsigned* arrived, unsigned* out) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1u);
  while (load_acquire(arrived) < gridDim.x) {
  }
  out[blockIdx.x] = load_acquire(arrived);
}

// Through n words of dynamic shared memory.
KERNEL reverse_words(int n, unsigned* out) {
  extern __shared__ unsigned words[];
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) words[i] = 3u * (unsigned)i;
  __syncthreads();
  for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) out[i] = words[n - 1 - i];
}

struct Parameters {
  char letter;
  double number;
  short triple[3];
};
KERNEL mixed_parameters(char letter, Parameters parameters, unsigned long long* out, float last) {
  out[0] = (unsigned long long)letter;
  out[1] = (unsigned long long)parameters.letter;
  out[2] = (unsigned long long)parameters.number;
  out[3] = (unsigned long long)(parameters.triple[0] + parameters.triple[1] + parameters.triple[2]);
  out[4] = (unsigned long long)last;
}

__constant__ int table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
KERNEL with_local_memory(int n, int* out) {
  volatile int values[40];
  for (int i = 0; i < 40; ++i) values[i] = i * n;
  out[threadIdx.x] = values[(threadIdx.x * 7) % 40] + table[threadIdx.x % 8];
}
