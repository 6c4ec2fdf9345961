// sm_80: matrix products of half and bfloat16 on tensor cores, mma.m16n8k16 with single-precision sums.
#include "softgpu/conformance/kernels/common.h"

// A warp computes 16 x 8 of c = a b with a 16 x k row-major, b k x 8 stored by columns. In the fragments lane 4 g + t holds
// row or column g, and elements 2 t, 2 t + 1 along the other side.
#define MMA_KERNEL(name, type)                                                                            \
  KERNEL name(int k, const unsigned short* a, const unsigned short* b, float* c) {                        \
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;                                         \
    float sum[4] = {0, 0, 0, 0};                                                                          \
    for (int first = 0; first < k; first += 16) {                                                         \
      const auto pair = [first, k](const unsigned short* from, int row, int at) {                         \
        return *(const unsigned*)&from[row * k + first + at];                                             \
      };                                                                                                  \
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                 \
                   ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                 \
                   : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                               \
                   : "r"(pair(a, g, 2 * t)), "r"(pair(a, g + 8, 2 * t)), "r"(pair(a, g, 2 * t + 8)),      \
                     "r"(pair(a, g + 8, 2 * t + 8)), "r"(pair(b, g, 2 * t)), "r"(pair(b, g, 2 * t + 8))); \
    }                                                                                                     \
    c[g * 8 + 2 * t] = sum[0];                                                                            \
    c[g * 8 + 2 * t + 1] = sum[1];                                                                        \
    c[(g + 8) * 8 + 2 * t] = sum[2];                                                                      \
    c[(g + 8) * 8 + 2 * t + 1] = sum[3];                                                                  \
  }
MMA_KERNEL(mma_half, "f16")
MMA_KERNEL(mma_bfloat, "bf16")

// Half-precision sums: two results in a register.
KERNEL mma_half_sums(const unsigned short* a, const unsigned short* b, unsigned* c) {
  const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
  const auto pair = [](const unsigned short* from, int row, int at) { return *(const unsigned*)&from[row * 16 + at]; };
  unsigned sum[2] = {0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(sum[0]), "+r"(sum[1])
               : "r"(pair(a, g, 2 * t)), "r"(pair(a, g + 8, 2 * t)), "r"(pair(a, g, 2 * t + 8)),
                 "r"(pair(a, g + 8, 2 * t + 8)), "r"(pair(b, g, 2 * t)), "r"(pair(b, g, 2 * t + 8)));
  c[g * 4 + t] = sum[0];
  c[(g + 8) * 4 + t] = sum[1];
}
