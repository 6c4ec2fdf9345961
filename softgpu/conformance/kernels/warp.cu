// Operations between the lanes of a warp, with whole and partial masks, and divergence.
#include "softgpu/conformance/kernels/common.h"

// All modes and widths; lanes that read outside their segment keep their own value.
KERNEL shuffles(const int* in, int* out) {
  const int lane = threadIdx.x, value = in[lane];
  int* o = out + lane;
  o[0] = __shfl_sync(kAllLanes, value, (lane * 7) % 32);
  o[32] = __shfl_sync(kAllLanes, value, 5, 8);
  o[64] = __shfl_up_sync(kAllLanes, value, 3);
  o[96] = __shfl_up_sync(kAllLanes, value, 2, 4);
  o[128] = __shfl_down_sync(kAllLanes, value, 9);
  o[160] = __shfl_down_sync(kAllLanes, value, 1, 16);
  o[192] = __shfl_xor_sync(kAllLanes, value, 21);
  o[224] = __shfl_xor_sync(kAllLanes, value, 6, 8);
  const double wide = value * 1.5;
  o[256] = (int)__shfl_sync(kAllLanes, wide, 31 - lane);
}

// The two halves of a warp, and odd lanes within them, go different ways and shuffle among themselves.
KERNEL partial_shuffles(const int* in, int* out) {
  const int lane = threadIdx.x;
  int value = in[lane];
  if (lane < 16) {
    value = __shfl_xor_sync(0x0000ffff, value, 1);
    if ((lane & 1) != 0) value += __shfl_down_sync(0x0000aaaa, value, 2, 16);
  } else {
    value -= __shfl_sync(0xffff0000, value, 20);
    if (lane % 3 == 0) value ^= __shfl_sync(0x49240000u, value, 30);
  }
  out[lane] = value;
}

KERNEL votes(int threshold, const int* in, unsigned* out) {
  const int lane = threadIdx.x, value = in[blockIdx.x * 32 + lane];
  unsigned* o = out + (blockIdx.x * 32 + lane) * 6;
  o[0] = __ballot_sync(kAllLanes, value > threshold);
  o[1] = (unsigned)__any_sync(kAllLanes, value == threshold) | (unsigned)__all_sync(kAllLanes, value < 90) << 1;
  o[2] = 0;
  if (lane >= 5 && lane < 23) {
    const unsigned mask = 0x007fffe0u;
    o[2] = __ballot_sync(mask, (value & 1) != 0) | (unsigned)__all_sync(mask, value >= 0) << 31;
  }
  o[3] = __match_any_sync(kAllLanes, (unsigned)value & 7);
  int same = 0;
  o[4] = __match_all_sync(kAllLanes, (unsigned)(value >> 8), &same) | (unsigned)same;
  o[5] = __match_any_sync(kAllLanes, (unsigned)(lane / 5));
}

// Lanes leave a loop one by one; each round counts who is left.
KERNEL divergent_loop(const int* trips, int* out) {
  int rounds = 0, company = 0;
  for (int i = 0; i < trips[global_index()]; ++i) {
    rounds += i % 3 == 0 ? 2 : 1;
    if (i % 5 == 4) continue;
    company += i;
    if (company > 500) break;
  }
  __syncwarp();
  out[global_index()] = rounds * 1000 + company + __builtin_popcount(__ballot_sync(kAllLanes, rounds > 20));
}

// A switch that becomes a jump table; each lane takes its own way.
KERNEL interpreter(int steps, const unsigned char* programs, int* out) {
  const int i = global_index();
  int a = i, b = 1;
  for (int step = 0; step < steps; ++step) {
    switch (programs[i * steps + step] & 15) {
      case 0: a += b; break;
      case 1: a -= b; break;
      case 2: a *= 3; break;
      case 3: b = a ^ 0x55; break;
      case 4: a = a >> 1; break;
      case 5: b += 7; break;
      case 6: a = -a; break;
      case 7: a ^= b << 2; break;
      case 8: b = a & 0xff; break;
      case 9: a = a > b ? a - 11 : b; break;
      case 10: b *= b; break;
      case 11: a |= 1; break;
      default: a += 2;
    }
  }
  out[i] = a ^ b;
}

// Lanes of one warp take a spin lock in turn: progress needs Volta's independent threads.
KERNEL lane_lock(int* lock, int* counter, int* order) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      const int place = *(volatile int*)counter;
      order[place] = (int)threadIdx.x;
      *(volatile int*)counter = place + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// Producer and consumer lanes of the same warp pass values through one slot.
KERNEL lane_pipe(int count, volatile int* slot, int* out) {
  if (threadIdx.x == 0) {
    for (int i = 1; i <= count; ++i) {
      while (*slot != 0) {
      }
      *slot = i * i;
    }
  } else if (threadIdx.x == 1) {
    for (int i = 0; i < count; ++i) {
      int value;
      while ((value = *slot) == 0) {
      }
      out[i] = value;
      *slot = 0;
    }
  }
}

// Exclusive sums of bits by ballot and lane masks; lanes that have ended do not take part.
KERNEL early_exit(const int* in, int* out) {
  const int lane = threadIdx.x;
  if (lane % 4 == 3) return;
  const unsigned active = __activemask() & 0x77777777u;
  const unsigned odd = __ballot_sync(0x77777777u, in[lane] & 1);
  out[lane] = __builtin_popcount(odd & __lanemask_lt()) + 100 * (active != 0);
  __syncthreads();
  out[lane] += (int)__builtin_popcount(odd) * 1000;
}

// A matrix transposed within a warp by shuffles only: lane i ends with column i of its 32 x 8 values.
KERNEL register_transpose(const int* in, int* out) {
  const int lane = threadIdx.x;
  int value[8];
  for (int i = 0; i < 8; ++i) value[i] = in[lane * 8 + i];
  for (int bit = 1; bit < 8; bit *= 2) {
    for (int i = 0; i < 8; ++i) {
      if ((i & bit) != 0) continue;
      const bool upper = (lane & bit) != 0;
      const int give = upper ? value[i] : value[i | bit];
      const int got = __shfl_xor_sync(kAllLanes, give, bit);
      if (upper)
        value[i] = got;
      else
        value[i | bit] = got;
    }
  }
  for (int i = 0; i < 8; ++i) out[lane * 8 + i] = value[i];
}
