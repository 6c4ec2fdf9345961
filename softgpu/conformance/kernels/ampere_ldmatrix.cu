// ldmatrix: a warp loads 8 x 8 matrices of 16-bit elements from shared memory, straight or transposed.
#include "softgpu/conformance/kernels/common.h"

KERNEL ldmatrix(const unsigned short* in, unsigned* straight, unsigned* transposed) {
  __shared__ __attribute__((aligned(16))) unsigned short tile[32 * 8];
  const int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) tile[lane * 8 + i] = in[lane * 8 + i];
  __syncthreads();
  // Lane 8 m + r gives the address of row r of matrix m; register m of lane 4 g + t receives row g, columns 2 t and 2 t + 1.
  const unsigned address = (unsigned)(unsigned long)(__attribute__((address_space(3))) unsigned short*)&tile[lane * 8];
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  for (int m = 0; m < 4; ++m) straight[m * 32 + lane] = r[m];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  for (int m = 0; m < 4; ++m) transposed[m * 32 + lane] = r[m];
}
