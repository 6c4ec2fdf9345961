// sm_80: matrix products of tf32 on tensor cores, mma.m16n8k8.
#include "softgpu/conformance/kernels/common.h"

KERNEL mma_tf32(int k, const float* a, const float* b, float* c) {
  const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
  float sum[4] = {0, 0, 0, 0};
  for (int first = 0; first < k; first += 8) {
    const auto rounded = [first, k](const float* from, int row, int at) {
      unsigned bits;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(from[row * k + first + at]));
      return bits;
    };
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(rounded(a, g, t)), "r"(rounded(a, g + 8, t)), "r"(rounded(a, g, t + 4)), "r"(rounded(a, g + 8, t + 4)),
          "r"(rounded(b, g, t)), "r"(rounded(b, g, t + 4)));
  }
  c[g * 8 + 2 * t] = sum[0];
  c[g * 8 + 2 * t + 1] = sum[1];
  c[(g + 8) * 8 + 2 * t] = sum[2];
  c[(g + 8) * 8 + 2 * t + 1] = sum[3];
}
