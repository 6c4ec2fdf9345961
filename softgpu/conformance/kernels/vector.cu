// Maps, reductions, prefix sums and histograms.
#include "softgpu/conformance/kernels/common.h"

KERNEL vector_add(int n, const float* a, const float* b, float* c) {
  const int i = global_index();
  if (i < n) c[i] = a[i] + b[i];
}

// A grid-stride loop over four elements at a time.
struct __attribute__((aligned(16))) Four {
  float x, y, z, w;
};
KERNEL saxpy(int n, float a, const float* x, float* y) {
  const int stride = (int)(gridDim.x * blockDim.x);
  const Four* from = (const Four*)x;
  Four* to = (Four*)y;
  for (int i = global_index(); i < n / 4; i += stride) {
    const Four u = from[i];
    Four v = to[i];
    v.x = fmaf(a, u.x, v.x);
    v.y = fmaf(a, u.y, v.y);
    v.z = fmaf(a, u.z, v.z);
    v.w = fmaf(a, u.w, v.w);
    to[i] = v;
  }
}

// Warps by shuffle, then the block's warps through shared memory; one partial sum per block.
KERNEL reduce_shuffle(int n, const float* in, float* partial) {
  __shared__ float sums[32];
  float sum = 0;
  for (int i = global_index(); i < n; i += (int)(gridDim.x * blockDim.x)) sum += in[i];
  sum = warp_sum(sum);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x >= warpSize) return;
  sum = threadIdx.x < blockDim.x / warpSize ? sums[threadIdx.x] : 0.0f;
  sum = warp_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// The tree of halves in shared memory.
KERNEL reduce_shared(int n, const int* in, long long* total) {
  __shared__ long long tree[256];
  const int i = global_index();
  tree[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(total, tree[0]);
}

KERNEL reduce_atomic(int n, const float* in, float* sum, int* least, int* greatest) {
  const int i = global_index();
  if (i >= n) return;
  atomicAdd(sum, in[i]);
  const int scaled = (int)(in[i] * 1000000.0f);
  atomicMin(least, scaled);
  atomicMax(greatest, scaled);
}

KERNEL dot_double(int n, const double* a, const double* b, double* sum) {
  double partial = 0;
  for (int i = global_index(); i < n; i += (int)(gridDim.x * blockDim.x)) partial = fma(a[i], b[i], partial);
  partial = warp_sum(partial);
  if (threadIdx.x % warpSize == 0) atomicAdd(sum, partial);
}

// Inclusive sum within a block, in every thread; `warps` is scratch for 32 numbers.
__device__ unsigned block_inclusive_sum(unsigned value, unsigned* warps) {
  value = warp_inclusive_sum(value);
  const unsigned warp = threadIdx.x / warpSize;
  if (threadIdx.x % warpSize == warpSize - 1) warps[warp] = value;
  __syncthreads();
  if (warp == 0) warps[threadIdx.x] = warp_inclusive_sum(threadIdx.x < blockDim.x / warpSize ? warps[threadIdx.x] : 0u);
  __syncthreads();
  return warp == 0 ? value : value + warps[warp - 1];
}

KERNEL scan_block(const unsigned* in, unsigned* out) {
  __shared__ unsigned warps[32];
  const int i = global_index();
  out[i] = block_inclusive_sum(in[i], warps);
}

// A whole array in one pass. Each tile publishes its own sum, then looks back over its predecessors until one has its
// inclusive prefix. Tiles are taken by a counter, so that a tile never waits for one that has not started.
// state[tile] is (flag << 30 | value): flag 1 the tile's sum, 2 its inclusive prefix.
KERNEL scan_lookback(const unsigned* in, unsigned* out, unsigned* next_tile, unsigned* state) {
  __shared__ unsigned warps[32];
  __shared__ unsigned tile, before;
  if (threadIdx.x == 0) tile = atomicAdd(next_tile, 1u);
  __syncthreads();
  const unsigned i = tile * blockDim.x + threadIdx.x;
  const unsigned inclusive = block_inclusive_sum(in[i], warps);
  if (threadIdx.x == blockDim.x - 1) {
    unsigned prefix = 0;
    if (tile > 0) {
      store_release(&state[tile], 1u << 30 | inclusive);
      for (int left = (int)tile - 1;; --left) {
        unsigned word;
        do word = load_acquire(&state[left]);
        while (word == 0);
        prefix += word & 0x3fffffffu;
        if (word >> 31) break;
      }
    }
    store_release(&state[tile], 2u << 30 | (prefix + inclusive));
    before = prefix;
  }
  __syncthreads();
  out[i] = before + inclusive;
}

KERNEL histogram_shared(int n, const unsigned* in, unsigned* bins) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = global_index(); i < n; i += (int)(gridDim.x * blockDim.x)) atomicAdd(&local[in[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

KERNEL histogram_global(int n, const unsigned* in, unsigned* bins) {
  const int i = global_index();
  if (i < n) atomicAdd(&bins[in[i] >> 22], 1u);
}

// Keeps the values above a threshold: lanes that keep one agree by ballot on one atomic per warp.
KERNEL compact(int n, int threshold, const int* in, int* out, unsigned* count) {
  const int i = global_index();
  const bool keep = i < n && in[i] > threshold;
  const unsigned keepers = __ballot_sync(kAllLanes, keep);
  if (keepers == 0) return;
  const int leader = __builtin_ctz(keepers);
  unsigned base = 0;
  if ((int)(threadIdx.x % warpSize) == leader) base = atomicAdd(count, (unsigned)__builtin_popcount(keepers));
  base = __shfl_sync(kAllLanes, base, leader);
  if (keep) out[base + __builtin_popcount(keepers & __lanemask_lt())] = in[i];
}
