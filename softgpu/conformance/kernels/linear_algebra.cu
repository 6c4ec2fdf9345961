// Dense and sparse linear algebra, and the discrete Fourier transform. All matrices are stored by rows.
#include "softgpu/conformance/kernels/common.h"

KERNEL sgemm_naive(int n, const float* a, const float* b, float* c) {
  const int column = global_index(), row = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + column], sum);
  c[row * n + column] = sum;
}

// 16 x 16 tiles in shared memory; n is a multiple of 16.
template <class T>
__device__ void gemm_tiled(int n, const T* a, const T* b, T* c) {
  __shared__ T left[16][16], right[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  T sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      if constexpr (sizeof(T) == 4)
        sum = fmaf(left[y][i], right[i][x], sum);
      else
        sum = fma(left[y][i], right[i][x], sum);
    }
    __syncthreads();
  }
  c[row * n + column] = sum;
}
KERNEL sgemm_tiled(int n, const float* a, const float* b, float* c) {
  gemm_tiled(n, a, b, c);
}
KERNEL dgemm_tiled(int n, const double* a, const double* b, double* c) {
  gemm_tiled(n, a, b, c);
}

// 64 x 64 of the result per block of 16 x 16 threads, 4 x 4 in each thread's registers.
KERNEL sgemm_register(int n, const float* a, const float* b, float* c) {
  __shared__ float left[16][64], right[16][64];
  const int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = 0; i < 4; ++i) {
      const int at = thread + 256 * i;
      left[at % 16][at / 16] = a[(row + at / 16) * n + k + at % 16];
      right[at / 64][at % 64] = b[(k + at / 64) * n + column + at % 64];
    }
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] = fmaf(left[i][y * 4 + p], right[i][x + 16 * q], sum[p][q]);
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(row + y * 4 + p) * n + column + x + 16 * q] = sum[p][q];
}

struct __attribute__((aligned(8))) Complex {
  float re, im;
};

// Many small products, one per block of n x n threads: c = alpha a b.
KERNEL cgemm_batched(int n, Complex alpha, const Complex* a, const Complex* b, Complex* c) {
  const int base = blockIdx.x * n * n, x = threadIdx.x, y = threadIdx.y;
  Complex sum = {0, 0};
  for (int k = 0; k < n; ++k) {
    const Complex u = a[base + y * n + k], v = b[base + k * n + x];
    sum.re = fmaf(u.re, v.re, fmaf(-u.im, v.im, sum.re));
    sum.im = fmaf(u.re, v.im, fmaf(u.im, v.re, sum.im));
  }
  c[base + y * n + x] = {fmaf(alpha.re, sum.re, -(alpha.im * sum.im)), fmaf(alpha.re, sum.im, alpha.im * sum.re)};
}

// 32 x 32 tiles with a padded column; 8 rows of threads.
KERNEL transpose(int rows, int columns, const float* in, float* out) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) {
    if (x < columns && y + i < rows) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * columns + x];
  }
  __syncthreads();
  const int tx = blockIdx.y * 32 + threadIdx.x, ty = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) {
    if (tx < rows && ty + i < columns) out[(ty + i) * rows + tx] = tile[threadIdx.x][threadIdx.y + i];
  }
}

// LU decomposition without pivoting, blocked: factor the diagonal tile, solve its row and column, update the rest.
constexpr int kLuTile = 16;
KERNEL lud_diagonal(float* matrix, int n, int offset) {
  __shared__ float tile[kLuTile][kLuTile];
  const int t = threadIdx.x;
  float* origin = matrix + offset * n + offset;
  for (int row = 0; row < kLuTile; ++row) tile[row][t] = origin[row * n + t];
  __syncthreads();
  for (int k = 0; k < kLuTile - 1; ++k) {
    if (t > k) {
      tile[t][k] /= tile[k][k];
      for (int column = k + 1; column < kLuTile; ++column) {
        tile[t][column] = fmaf(-tile[t][k], tile[k][column], tile[t][column]);
      }
    }
    __syncthreads();
  }
  for (int row = 0; row < kLuTile; ++row) origin[row * n + t] = tile[row][t];
}
KERNEL lud_perimeter(float* matrix, int n, int offset) {
  __shared__ float diagonal[kLuTile][kLuTile], tile[kLuTile][kLuTile];
  const int t = threadIdx.x, shift = (blockIdx.x + 1) * kLuTile;
  const bool below = blockIdx.y == 1;
  float* target = matrix + (below ? (offset + shift) * n + offset : offset * n + offset + shift);
  for (int row = 0; row < kLuTile; ++row) {
    diagonal[row][t] = matrix[(offset + row) * n + offset + t];
    tile[row][t] = target[row * n + t];
  }
  __syncthreads();
  for (int k = 0; k < kLuTile; ++k) {
    float sum = below ? tile[t][k] : tile[k][t];
    for (int j = 0; j < k; ++j) {
      sum = below ? fmaf(-tile[t][j], diagonal[j][k], sum) : fmaf(-diagonal[k][j], tile[j][t], sum);
    }
    if (below)
      tile[t][k] = sum / diagonal[k][k];
    else
      tile[k][t] = sum;
  }
  __syncthreads();
  for (int row = 0; row < kLuTile; ++row) target[row * n + t] = tile[row][t];
}
KERNEL lud_interior(float* matrix, int n, int offset) {
  __shared__ float left[kLuTile][kLuTile], top[kLuTile][kLuTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = offset + (blockIdx.y + 1) * kLuTile + y, column = offset + (blockIdx.x + 1) * kLuTile + x;
  left[y][x] = matrix[row * n + offset + x];
  top[y][x] = matrix[(offset + y) * n + column];
  __syncthreads();
  float sum = matrix[row * n + column];
  for (int k = 0; k < kLuTile; ++k) sum = fmaf(-left[y][k], top[k][x], sum);
  matrix[row * n + column] = sum;
}

// Gaussian elimination: the multipliers of column k, then the update of everything right and below.
KERNEL gaussian_multipliers(int n, int k, const float* a, float* multipliers) {
  const int row = k + 1 + global_index();
  if (row < n) multipliers[row] = a[row * n + k] / a[k * n + k];
}
KERNEL gaussian_update(int n, int k, const float* multipliers, float* a, float* b) {
  const int column = k + global_index(), row = k + 1 + (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (row >= n || column >= n) return;
  a[row * n + column] = fmaf(-multipliers[row], a[k * n + column], a[row * n + column]);
  if (column == k) b[row] = fmaf(-multipliers[row], b[k], b[row]);
}

// Compressed rows, one warp per row.
KERNEL spmv_csr(int rows, const int* starts, const int* columns, const float* values, const float* x, float* y) {
  const int row = global_index() / warpSize, lane = (int)(threadIdx.x % warpSize);
  if (row >= rows) return;
  float sum = 0;
  for (int at = starts[row] + lane; at < starts[row + 1]; at += warpSize) sum = fmaf(values[at], x[columns[at]], sum);
  sum = warp_sum(sum);
  if (lane == 0) y[row] = sum;
}

// Conjugate gradients for the five-point Laplacian on an s x s grid, by one block: the matrix is never stored.
__device__ double block_sum(double value, double* warps) {
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % warpSize == 0) warps[threadIdx.x / warpSize] = value;
  __syncthreads();
  double total = 0;
  for (unsigned warp = 0; warp < blockDim.x / warpSize; ++warp) total += warps[warp];
  return total;
}
KERNEL conjugate_gradient(int s, int iterations, const double* b, double* x, double* residual, double* direction) {
  __shared__ double warps[32];
  const int n = s * s, i = threadIdx.x;  // one unknown per thread
  const int column = i % s, row = i / s;
  double r = i < n ? b[i] : 0, solution = 0, p = r;
  double square = block_sum(r * r, warps);
  for (int iteration = 0; iteration < iterations && square > 1e-24; ++iteration) {
    direction[i] = p;
    __syncthreads();
    double product = 4 * p;
    if (column > 0) product -= direction[i - 1];
    if (column < s - 1) product -= direction[i + 1];
    if (row > 0) product -= direction[i - s];
    if (row < s - 1) product -= direction[i + s];
    const double alpha = square / block_sum(p * product, warps);
    solution = fma(alpha, p, solution);
    r = fma(-alpha, product, r);
    const double next = block_sum(r * r, warps);
    p = fma(next / square, p, r);
    square = next;
  }
  x[i] = solution;
  if (i == 0) *residual = square;
}

// Stockham's radix-2 transform of 2 * blockDim.x points in shared memory, one signal per block. `roots[k]` is
// exp(-2 pi i k / points).
KERNEL fft(const Complex* roots, const Complex* in, Complex* out) {
  extern __shared__ Complex work[];
  const int half = (int)blockDim.x, points = 2 * half, t = (int)threadIdx.x;
  Complex *from = work, *to = work + points;
  in += blockIdx.x * points;
  out += blockIdx.x * points;
  from[t] = in[t];
  from[t + half] = in[t + half];
  for (int stride = 1; stride < points; stride *= 2) {
    __syncthreads();
    const int k = t & (stride - 1);
    const Complex a = from[t], b = from[t + half], w = roots[k * (half / stride)];
    const Complex turned = {fmaf(b.re, w.re, -(b.im * w.im)), fmaf(b.re, w.im, b.im * w.re)};
    const int target = 2 * t - k;
    to[target] = {a.re + turned.re, a.im + turned.im};
    to[target + stride] = {a.re - turned.re, a.im - turned.im};
    Complex* swap = from;
    from = to;
    to = swap;
  }
  __syncthreads();
  out[t] = from[t];
  out[t + half] = from[t + half];
}
