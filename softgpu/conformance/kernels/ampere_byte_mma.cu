// sm_80: matrix products of bytes on tensor cores, mma.m16n8k32 with 32-bit sums.
#include "softgpu/conformance/kernels/common.h"

KERNEL mma_bytes(int k, const signed char* a, const signed char* b, int* c) {
  const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
  int sum[4] = {0, 0, 0, 0};
  for (int first = 0; first < k; first += 32) {
    const auto four = [first, k](const signed char* from, int row, int at) {
      return *(const unsigned*)&from[row * k + first + at];
    };
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(four(a, g, 4 * t)), "r"(four(a, g + 8, 4 * t)), "r"(four(a, g, 4 * t + 16)),
          "r"(four(a, g + 8, 4 * t + 16)), "r"(four(b, g, 4 * t)), "r"(four(b, g, 4 * t + 16)));
  }
  c[g * 8 + 2 * t] = sum[0];
  c[g * 8 + 2 * t + 1] = sum[1];
  c[(g + 8) * 8 + 2 * t] = sum[2];
  c[(g + 8) * 8 + 2 * t + 1] = sum[3];
}
