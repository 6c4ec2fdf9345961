// Kernels the machine's tests compile with clang at build time.
#include "abi/cuda_device.h"

#define KERNEL extern "C" __global__ void

KERNEL saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL sgemm_tile(int n, const float* a, const float* b, float* c) {
  __shared__ float as[16][16], bs[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[ty][tx] = a[row * n + k + tx];
    bs[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[ty][i] * bs[i][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// 64x64 of the result per block of 16x16 threads, 4x4 per thread.
KERNEL sgemm_register(int n, const float* a, const float* b, float* c) {
  __shared__ float as[16][64], bs[16][64];
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = 0; i < 4; ++i) {
      const int at = thread + 256 * i;
      as[at % 16][at / 16] = a[(row + at / 16) * n + k + at % 16];
      bs[at / 64][at % 64] = b[(k + at / 64) * n + column + at % 64];
    }
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      float x[4], y[4];
      for (int j = 0; j < 4; ++j) x[j] = as[i][ty * 4 + j];
      for (int j = 0; j < 4; ++j) y[j] = bs[i][tx + 16 * j];
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += x[p] * y[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + ty * 4 + p) * n + column + tx + 16 * q] = sum[p][q];
}

// A strip of `rows` rows per thread.
KERNEL jacobi_strip(int n, int rows, const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x < 1 || x >= n - 1) return;
  const int first = blockIdx.y * rows < 1 ? 1 : blockIdx.y * rows;
  const int last = (blockIdx.y + 1) * rows > n - 1 ? n - 1 : (blockIdx.y + 1) * rows;
  const float* at = from + first * n + x;
  float* out = to + first * n + x;
  float above = at[-n], here = at[0];
#pragma unroll 4
  for (int y = first; y < last; ++y, at += n, out += n) {
    const float below = at[n];
    *out = 0.25f * (above + below + at[-1] + at[1]);
    above = here;
    here = below;
  }
}

KERNEL jacobi(int n, const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  to[y * n + x] = 0.25f * (from[y * n + x - 1] + from[y * n + x + 1] + from[(y - 1) * n + x] + from[(y + 1) * n + x]);
}

KERNEL empty() {}

KERNEL collatz(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int histogram[4] = {};
  int steps = 0;
  for (unsigned v = i + 1; v != 1; v = v % 2 == 0 ? v / 2 : 3 * v + 1) {
    ++steps;
    ++histogram[v % 4];
  }
  out[i] = steps * 1000 + histogram[i % 4];
}

KERNEL reduce(int n, const float* in, float* out) {
  __shared__ float partial[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < n ? in[i] : 0;
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __nvvm_shfl_sync_down_f32(0xffffffff, sum, distance, 31);
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (int w = 0; w < 8; ++w) total += partial[w];
  __nvvm_atom_add_gen_f(out, total);
}

__device__ __attribute__((noinline)) int ackermann_of(int m, int n) {
  if (m == 0) return n + 1;
  return ackermann_of(m - 1, n == 0 ? 1 : ackermann_of(m, n - 1));
}
KERNEL ackermann(int* out) {
  out[threadIdx.x] = ackermann_of(2 - threadIdx.x % 2, threadIdx.x % 5);
}

struct Line {
  double slope;
  int offset;
  char table[12];
};
__constant__ int hundreds[3] = {100, 200, 300};
KERNEL evaluate_line(Line line, double* out) {
  const int i = threadIdx.x;
  out[i] = line.slope * i + line.offset + line.table[i % 12] + hundreds[i % 3];
}

__device__ float exp2_of(float x) {
  return __nvvm_ex2_approx_f(x);
}

// A row per block of 256 threads: maximum, sum of exponentials, division.
KERNEL softmax(int columns, const float* in, float* out) {
  __shared__ float partial[256];
  const int thread = threadIdx.x;
  const float* row = in + blockIdx.x * columns;
  float most = row[thread];
  for (int i = thread; i < columns; i += 256) most = row[i] > most ? row[i] : most;
  partial[thread] = most;
  __syncthreads();
  for (int distance = 128; distance > 0; distance /= 2) {
    if (thread < distance && partial[thread + distance] > partial[thread]) partial[thread] = partial[thread + distance];
    __syncthreads();
  }
  most = partial[0];
  __syncthreads();
  float sum = 0;
  for (int i = thread; i < columns; i += 256) sum += exp2_of((row[i] - most) * 1.44269504f);
  partial[thread] = sum;
  __syncthreads();
  for (int distance = 128; distance > 0; distance /= 2) {
    if (thread < distance) partial[thread] += partial[thread + distance];
    __syncthreads();
  }
  const float scale = 1 / partial[0];
  for (int i = thread; i < columns; i += 256) {
    out[blockIdx.x * columns + i] = exp2_of((row[i] - most) * 1.44269504f) * scale;
  }
}
