// sm_80: reductions over the lanes of a mask in one instruction.
#include "softgpu/conformance/kernels/common.h"

KERNEL redux(const int* in, int* out) {
  const int lane = threadIdx.x, value = in[lane];
  int* o = out + 7 * lane;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(o[0]) : "r"(value));
  asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(o[1]) : "r"(value));
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(o[2]) : "r"(value));
  asm volatile("redux.sync.and.b32 %0, %1, 0xffffffff;" : "=r"(o[3]) : "r"(value | 0x40));
  asm volatile("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(o[4]) : "r"(value));
  asm volatile("redux.sync.xor.b32 %0, %1, 0xffffffff;" : "=r"(o[5]) : "r"(value));
  o[6] = 0;
  if (lane % 2 == 0) asm volatile("redux.sync.max.s32 %0, %1, 0x55555555;" : "=r"(o[6]) : "r"(value));
}
