// Barriers, fences, locks, and blocks that wait for each other.
#include "softgpu/conformance/kernels/common.h"

// What a cooperative launch promises: all blocks are resident, so they may wait for each other. The barrier counts blocks
// and turns a generation.
CUDA_DEVICE_INLINE void grid_barrier(unsigned* arrived, unsigned* generation) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned now = load_acquire(generation);
    __threadfence();
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
      *(volatile unsigned*)arrived = 0;
      __threadfence();
      store_release(generation, now + 1);
    } else {
      while (load_acquire(generation) == now) {
      }
    }
  }
  __syncthreads();
}
KERNEL grid_sync(int rounds, unsigned* barrier, unsigned* from, unsigned* to) {
  const int n = (int)(gridDim.x * blockDim.x), i = global_index();
  for (int round = 0; round < rounds; ++round) {
    to[i] = from[(i + 1) % n] * 3u + from[(i + n / 2) % n];
    grid_barrier(&barrier[0], &barrier[1]);
    unsigned* swap = from;
    from = to;
    to = swap;
  }
}

// A lock in device memory, taken by one thread of each block; the data it guards is plain memory.
KERNEL block_lock(unsigned* lock, int* account) {
  __shared__ int deposit;
  if (threadIdx.x == 0) deposit = 0;
  __syncthreads();
  atomicAdd(&deposit, (int)(blockIdx.x + threadIdx.x));
  __syncthreads();
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0u, 1u) != 0) {
  }
  __threadfence();
  *(volatile int*)account = *(volatile int*)account + deposit;
  __threadfence();
  atomicExch(lock, 0u);
}

// Even blocks produce, odd ones consume, through a ring of four slots guarded by sequence numbers.
KERNEL producer_consumer(int count, unsigned* ready, unsigned* data, unsigned* out) {
  const unsigned pair = blockIdx.x / 2;
  unsigned *own_ready = ready + pair * 4, *ring = data + pair * 4 * 64;
  const bool produces = blockIdx.x % 2 == 0;
  for (int i = 0; i < count; ++i) {
    const unsigned slot = (unsigned)i % 4, turn = (unsigned)i / 4;
    if (threadIdx.x == 0) {
      // Slot states: 2 turn: empty for this turn, 2 turn + 1: full.
      while (load_acquire(&own_ready[slot]) != 2 * turn + (produces ? 0 : 1)) {
      }
    }
    __syncthreads();
    if (produces)
      ring[slot * 64 + threadIdx.x] = (pair + 1) * 1000u + (unsigned)i * threadIdx.x;
    else
      out[(pair * (unsigned)count + (unsigned)i) * 64 + threadIdx.x] = ring[slot * 64 + threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) store_release(&own_ready[slot], 2 * turn + (produces ? 1 : 2));
  }
}

// The last block to arrive sums the partial sums of all.
KERNEL last_block_reduce(int n, const int* in, long long* partial, unsigned* arrived, long long* total) {
  __shared__ bool last;
  __shared__ long long warps[8];
  long long sum = 0;
  for (int i = global_index(); i < n; i += (int)(gridDim.x * blockDim.x)) sum += in[i];
  sum = (long long)warp_sum((unsigned long long)sum);
  if (threadIdx.x % warpSize == 0) warps[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0;
    for (unsigned warp = 0; warp < blockDim.x / warpSize; ++warp) sum += warps[warp];
    ((volatile long long*)partial)[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) sum += ((volatile long long*)partial)[block];
  *total = sum;
}

// Two groups of warps in one block hand work over through named barriers: warps 0-1 fill, warps 2-3 empty.
KERNEL named_barriers(int rounds, const int* in, int* out) {
  __shared__ int buffer[64];
  const int t = (int)threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int round = 0; round < rounds; ++round) {
      buffer[t] = in[round * 64 + t] * 2;
      asm volatile("bar.arrive 1, 128;" ::: "memory");
      asm volatile("bar.sync 2, 128;" ::: "memory");
    }
  } else {
    for (int round = 0; round < rounds; ++round) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[round * 64 + t] = buffer[63 - t];
      asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  }
}

KERNEL barrier_reductions(const int* in, int* out) {
  const int value = in[global_index()];
  const int count = __syncthreads_count(value > 50);
  const int all = __syncthreads_and(value > 0);
  const int any = __syncthreads_or(value > 98);
  out[global_index()] = count * 100 + (all != 0) * 10 + (any != 0);
}

// A pipeline through dynamic shared memory with several arrays in it.
KERNEL dynamic_shared(int n, const double* in, double* out) {
  extern __shared__ double pool[];
  double* values = pool;
  int* order = (int*)(values + n);
  short* back = (short*)(order + n);
  const int i = threadIdx.x;
  values[i] = in[blockIdx.x * n + i];
  order[(i * 7) % n] = i;
  __syncthreads();
  back[order[i]] = (short)i;
  __syncthreads();
  out[blockIdx.x * n + i] = values[order[i]] + back[i];
}

// Message passing, store buffering aside: readers that see the flag see the data.
KERNEL message_passing(int rounds, unsigned* flag, unsigned* data, unsigned* errors) {
  if (threadIdx.x != 0) return;
  for (int round = 1; round <= rounds; ++round) {
    if (blockIdx.x == 0) {
      while (load_acquire(&flag[1]) != (unsigned)(round - 1) * (gridDim.x - 1)) {
      }
      for (int i = 0; i < 8; ++i) data[i] = (unsigned)(round * 100 + i);
      store_release(&flag[0], (unsigned)round);
    } else {
      while (load_acquire(&flag[0]) != (unsigned)round) {
      }
      for (int i = 0; i < 8; ++i) {
        if (data[i] != (unsigned)(round * 100 + i)) atomicAdd(errors, 1u);
      }
      __threadfence();
      atomicAdd(&flag[1], 1u);
    }
  }
}

// Every atomic at once, on words whose final values do not depend on order.
KERNEL atomics(const unsigned* in, unsigned* words, unsigned long long* wide) {
  const unsigned value = in[global_index()];
  atomicAdd(&words[0], value);
  atomicMin(&words[1], value);
  atomicMax(&words[2], value);
  atomicAnd(&words[3], value | 0xffff);
  atomicOr(&words[4], value & 0xff00ff);
  atomicXor(&words[5], value);
  atomicInc(&words[6], 99u);
  atomicDec(&words[7], 49u);
  atomicAdd(&wide[0], (unsigned long long)value << 20);
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(&wide[1]), "l"((unsigned long long)value << 13) : "memory");
  asm volatile("red.relaxed.gpu.global.and.b64 [%0], %1;" ::"l"(&wide[2]),
               "l"((unsigned long long)value << 32 | value));
  asm volatile("atom.global.cta.or.b32 %0, [%1], %2;" : "=r"(words[16 + global_index()]) : "l"(&words[8]), "r"(0u));
}
