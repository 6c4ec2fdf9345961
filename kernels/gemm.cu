// C = activation(alpha * A x B + beta * D + bias) for each matrix of a batch. A, B are given by strides, so that
// transposed and broadcast factors (stride 0) need no copy; D has C's layout and may be C.
#include "tile.h"

template <typename T>
struct Gemm {
  T* c;
  const T* a;
  const T* b;
  const T* d;     // read only if beta is not zero
  const T* bias;  // null: none
  int m, n, k;
  long long a_row, a_column, a_batch, b_row, b_column, b_batch, c_row, c_batch;
  T alpha, beta;
  int bias_axis;  // 0: one for each row of C, 1: for each column
  int activation;
};

template <typename T>
__device__ inline bool is_zero(T x) {
  return x == T{};
}
__device__ inline bool is_zero(Complex x) {
  return x.re == 0 && x.im == 0;
}

template <typename T, int kTile>
__device__ inline __attribute__((always_inline)) void gemm(const Gemm<T>& g) {
  using Product = TileProduct<T, kTile>;
  __shared__ typename Product::Strips strips;
  const T* a = g.a + (long long)blockIdx.z * g.a_batch;
  const T* b = g.b + (long long)blockIdx.z * g.b_batch;
  const long long c_first = (long long)blockIdx.z * g.c_batch;
  const bool has_addend = !is_zero(g.beta);
  Product::run(
      g.k, g.a_column == 1, g.b_column != 1, strips,
      [&](int row, int k) { return row < g.m && k < g.k ? a[row * g.a_row + k * g.a_column] : T{}; },
      [&](int k, int column) { return column < g.n && k < g.k ? b[k * g.b_row + column * g.b_column] : T{}; },
      [&](int row, int column, T value) {
        if (row >= g.m || column >= g.n) return;
        const long long at = c_first + row * g.c_row + column;
        value = g.alpha * value;
        if (has_addend) value = value + g.beta * g.d[at];
        if (g.bias) value = value + g.bias[g.bias_axis == 0 ? row : column];
        g.c[at] = activate(value, g.activation);
      });
}

#define GEMM(name, T, tile)                                                                                 \
  extern "C" __global__ void __launch_bounds__(TileProduct<T, tile>::kThreads)                              \
      name(T* c, const T* a, const T* b, const T* d, const T* bias, int m, int n, int k, long long a_row,   \
           long long a_column, long long a_batch, long long b_row, long long b_column, long long b_batch,   \
           long long c_row, long long c_batch, T alpha, T beta, int bias_axis, int activation) {            \
    gemm<T, tile>({c,       a,     b,        d,       bias,  m,       n,     k,    a_row,     a_column,     \
                   a_batch, b_row, b_column, b_batch, c_row, c_batch, alpha, beta, bias_axis, activation}); \
  }
GEMM(gemm_f32, float, 64)
GEMM(gemm_f32_small, float, 32)
GEMM(gemm_c64, Complex, 64)
GEMM(gemm_c64_small, Complex, 32)
GEMM(gemm_f64, double, 64)
GEMM(gemm_f64_small, double, 32)
