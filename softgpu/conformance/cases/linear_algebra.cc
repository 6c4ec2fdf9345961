// Dense and sparse linear algebra, and the discrete Fourier transform.
#include <complex>
#include <numbers>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

// Row by row with one fma per product in the order of k: what each kernel below promises, too.
template <class T>
std::vector<T> product(int n, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> c(a.size());
  for (int row = 0; row < n; ++row) {
    for (int k = 0; k < n; ++k) {
      for (int column = 0; column < n; ++column) {
        T& sum = c[row * n + column];
        sum = std::fma(a[row * n + k], b[k * n + column], sum);
      }
    }
  }
  return c;
}

void sgemm(Test& test, const char* kernel, int n, const Shape& shape) {
  const auto a = uniform(n * n, 1), b = uniform(n * n, 2);
  const auto c = test.zeros<float>(n * n);
  test.launch(kernel, shape, n, test.upload(a), test.upload(b), c);
  test.equal("c", test.download(c), product(n, a, b));
}
void sgemm_naive(Test& test) {
  sgemm(test, "sgemm_naive", 75, {{5, 5}, {16, 16}});
}
void sgemm_tiled(Test& test) {
  sgemm(test, "sgemm_tiled", 96, {{6, 6}, {16, 16}});
}
void sgemm_register(Test& test) {
  sgemm(test, "sgemm_register", 128, {{2, 2}, {16, 16}});
}

void dgemm_tiled(Test& test) {
  const int n = 64;
  const auto a = uniform_double(n * n, 3), b = uniform_double(n * n, 4);
  const auto c = test.zeros<double>(n * n);
  test.launch("dgemm_tiled", {{4, 4}, {16, 16}}, n, test.upload(a), test.upload(b), c);
  test.equal("c", test.download(c), product(n, a, b));
}

struct alignas(8) Complex {
  float re, im;
};

void cgemm_batched(Test& test) {
  const int n = 12, batch = 20, count = batch * n * n;
  const auto parts_a = uniform(2 * count, 5), parts_b = uniform(2 * count, 6);
  std::vector<Complex> a(count), b(count), want(count);
  std::memcpy(a.data(), parts_a.data(), count * sizeof(Complex));
  std::memcpy(b.data(), parts_b.data(), count * sizeof(Complex));
  const Complex alpha{0.5f, -2.0f};
  const auto c = test.zeros<Complex>(count);
  test.launch("cgemm_batched", {batch, {n, n}}, n, alpha, test.upload(a), test.upload(b), c);
  for (int at = 0; at < count; ++at) {
    const int base = at / (n * n) * n * n, row = at % (n * n) / n, column = at % n;
    Complex sum{0, 0};
    for (int k = 0; k < n; ++k) {
      const Complex u = a[base + row * n + k], v = b[base + k * n + column];
      sum.re = std::fma(u.re, v.re, std::fma(-u.im, v.im, sum.re));
      sum.im = std::fma(u.re, v.im, std::fma(u.im, v.re, sum.im));
    }
    want[at] = {std::fma(alpha.re, sum.re, -(alpha.im * sum.im)), std::fma(alpha.re, sum.im, alpha.im * sum.re)};
  }
  test.equal("c", test.download(c), want);
}

void transpose(Test& test) {
  const int rows = 70, columns = 45;
  const auto in = uniform(rows * columns, 7);
  const auto out = test.zeros<float>(rows * columns);
  test.launch("transpose", {{2, 3}, {32, 8}}, rows, columns, test.upload(in), out);
  std::vector<float> want(in.size());
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) want[x * rows + y] = in[y * columns + x];
  }
  test.equal("transposed", test.download(out), want);
}

std::vector<float> dominant_matrix(int n, unsigned seed) {
  std::vector<float> matrix = uniform(n * n, seed);
  for (int i = 0; i < n; ++i) matrix[i * n + i] += static_cast<float>(n);
  return matrix;
}

// Eliminates column after column; each element sees the same products in the same order as in the blocked kernels.
void decompose(int n, std::vector<float>& a) {
  for (int k = 0; k < n; ++k) {
    for (int row = k + 1; row < n; ++row) {
      a[row * n + k] /= a[k * n + k];
      for (int column = k + 1; column < n; ++column) {
        a[row * n + column] = std::fma(-a[row * n + k], a[k * n + column], a[row * n + column]);
      }
    }
  }
}

void lud(Test& test) {
  const int n = 80, tile = 16;
  auto want = dominant_matrix(n, 8);
  const auto matrix = test.upload(want);
  for (int offset = 0; offset < n; offset += tile) {
    const unsigned rest = (n - offset) / tile - 1;
    test.launch("lud_diagonal", {1, tile}, matrix, n, offset);
    if (rest == 0) break;
    test.launch("lud_perimeter", {{rest, 2}, tile}, matrix, n, offset);
    test.launch("lud_interior", {{rest, rest}, {tile, tile}}, matrix, n, offset);
  }
  decompose(n, want);
  test.equal("lu", test.download(matrix), want);
}

void gaussian(Test& test) {
  const int n = 48;
  auto a = dominant_matrix(n, 9);
  auto b = uniform(n, 10);
  const auto device_a = test.upload(a), device_b = test.upload(b), multipliers = test.zeros<float>(n);
  for (int k = 0; k < n - 1; ++k) {
    test.launch("gaussian_multipliers", {1, 64}, n, k, device_a, multipliers);
    test.launch("gaussian_update", {{3, 3}, {16, 16}}, n, k, multipliers, device_a, device_b);
  }
  const auto upper = test.download(device_a), right = test.download(device_b);
  std::vector<double> x(n), sums(n), want(b.begin(), b.end());
  for (int row = n - 1; row >= 0 && test.ok(); --row) {
    double sum = right[row];
    for (int column = row + 1; column < n; ++column) sum -= static_cast<double>(upper[row * n + column]) * x[column];
    x[row] = sum / upper[row * n + row];
  }
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column) sums[row] += static_cast<double>(a[row * n + column]) * x[column];
  }
  test.near("a x", sums, want, 1e-5);
}

void spmv_csr(Test& test) {
  const int rows = 500;
  std::vector<int> starts{0}, columns;
  for (int row = 0; row < rows; ++row) {
    const unsigned length = random_word(11, row) % 60;
    for (unsigned i = 0; i < length; ++i) columns.push_back(static_cast<int>(random_word(12 + row, i) % rows));
    starts.push_back(static_cast<int>(columns.size()));
  }
  const auto values = uniform(columns.size(), 13), x = uniform(rows, 14);
  const auto y = test.zeros<float>(rows);
  test.launch("spmv_csr", {63, 256}, rows, test.upload(starts), test.upload(columns), test.upload(values),
              test.upload(x), y);
  std::vector<double> want(rows);
  for (int row = 0; row < rows; ++row) {
    for (int at = starts[row]; at < starts[row + 1]; ++at) {
      want[row] += static_cast<double>(values[at]) * x[columns[at]];
    }
  }
  const auto got = test.download(y);
  test.near("y", std::vector<double>(got.begin(), got.end()), want, 1e-5);
}

void conjugate_gradient(Test& test) {
  const int s = 16, n = s * s;
  const auto b = uniform_double(n, 15);
  const auto x = test.zeros<double>(n), residual = test.zeros<double>(1);
  test.launch("conjugate_gradient", {1, n}, s, 200, test.upload(b), x, residual, test.zeros<double>(n));
  const auto solution = test.download(x);
  std::vector<double> applied(n);
  for (int i = 0; i < n; ++i) {
    applied[i] = 4 * solution[i];
    if (i % s > 0) applied[i] -= solution[i - 1];
    if (i % s < s - 1) applied[i] -= solution[i + 1];
    if (i >= s) applied[i] -= solution[i - s];
    if (i < n - s) applied[i] -= solution[i + s];
  }
  test.near("a x", applied, b, 1e-9);
  test.near("residual", test.download(residual), {0.0}, 1e-20);
}

void fft(Test& test) {
  const int points = 256, signals = 4;
  const auto parts = uniform(2 * points * signals, 16);
  std::vector<Complex> in(points * signals), roots(points / 2);
  std::memcpy(in.data(), parts.data(), in.size() * sizeof(Complex));
  const auto root = [](double k) { return std::polar(1.0, -2 * std::numbers::pi * k / points); };
  for (int k = 0; k < points / 2; ++k) {
    roots[k] = {static_cast<float>(root(k).real()), static_cast<float>(root(k).imag())};
  }
  const auto out = test.zeros<Complex>(in.size());
  test.launch("fft", {signals, points / 2, 2 * points * sizeof(Complex)}, test.upload(roots), test.upload(in), out);
  const auto got = test.download(out);
  std::vector<float> flat(2 * got.size()), want;
  std::memcpy(flat.data(), got.data(), flat.size() * sizeof(float));
  for (int signal = 0; signal < signals; ++signal) {
    for (int k = 0; k < points; ++k) {
      std::complex<double> sum = 0;
      for (int t = 0; t < points; ++t) {
        const Complex& value = in[signal * points + t];
        sum += std::complex<double>(value.re, value.im) * root(static_cast<double>(k) * t);
      }
      want.push_back(static_cast<float>(sum.real()));
      want.push_back(static_cast<float>(sum.imag()));
    }
  }
  test.near("spectrum", flat, want, 1e-5);
}

constexpr Case kCases[] = {
    {"sgemm_naive", "linear_algebra", sgemm_naive},
    {"sgemm_tiled", "linear_algebra", sgemm_tiled},
    {"sgemm_register", "linear_algebra", sgemm_register},
    {"dgemm_tiled", "linear_algebra", dgemm_tiled},
    {"cgemm_batched", "linear_algebra", cgemm_batched},
    {"transpose", "linear_algebra", transpose},
    {"lud", "linear_algebra", lud},
    {"gaussian", "linear_algebra", gaussian},
    {"spmv_csr", "linear_algebra", spmv_csr},
    {"conjugate_gradient", "linear_algebra", conjugate_gradient},
    {"fft", "linear_algebra", fft},
};

}  // namespace

const Field kLinearAlgebra{"linear_algebra", kCases};

}  // namespace softgpu::conformance
