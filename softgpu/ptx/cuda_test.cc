// Kernels compiled from CUDA C++ by clang (testdata/kernels.cu), against loops on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "softgpu/ptx/ptx_evaluator.h"

#ifdef SOFTGPU_PTX_TESTDATA
namespace softgpu::ptx {
namespace {

using testing::load_or_fail;
using testing::run_kernel;
using testing::TestDevice;

class CompiledKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(SOFTGPU_PTX_TESTDATA "/kernels.ptx");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    module_ = load_or_fail(text, device_, [this](std::string_view printed) { printed_ += printed; });
    ASSERT_NE(module_, nullptr);
  }
  template <class... T>
  void run(const char* name, Dim3 grid, Dim3 block, T... values) {
    const Outcome outcome = run_kernel(*module_, device_, name, grid, block, values...);
    ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  }
  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 4;
    return values;
  }

  TestDevice device_;
  std::unique_ptr<Module> module_;
  std::string printed_;
};

TEST_F(CompiledKernels, Saxpy) {
  const auto x = numbers(1000), y = numbers(1000);
  const auto dx = device_.upload(x), dy = device_.upload(y);
  run("saxpy", {8}, {128}, 1000, 2.5f, dx, dy);
  const auto results = device_.download<float>(dy, 1000);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(results[i], std::fma(2.5f, x[i], y[i]));
}

TEST_F(CompiledKernels, BothMatrixProductsAreExact) {
  constexpr int n = 128;
  const auto a = numbers(n * n), b = numbers(n * n);
  std::vector<float> wanted(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < n; ++k) wanted[i * n + j] = std::fma(a[i * n + k], b[k * n + j], wanted[i * n + j]);
  const auto da = device_.upload(a), db = device_.upload(b), dc = device_.upload(std::vector<float>(n * n));
  run("sgemm_tile", {n / 16, n / 16}, {16, 16}, n, da, db, dc);
  EXPECT_EQ(device_.download<float>(dc, n * n), wanted);
  run("sgemm_register", {n / 64, n / 64}, {16, 16}, n, da, db, dc);
  EXPECT_EQ(device_.download<float>(dc, n * n), wanted);
}

TEST_F(CompiledKernels, JacobiStepsAgreeInBothForms) {
  constexpr int n = 96;
  const auto start = numbers(n * n);
  auto wanted = start;
  for (int y = 1; y < n - 1; ++y)
    for (int x = 1; x < n - 1; ++x)
      wanted[y * n + x] =
          0.25f * (start[y * n + x - 1] + start[y * n + x + 1] + start[(y - 1) * n + x] + start[(y + 1) * n + x]);
  const auto from = device_.upload(start), to = device_.upload(start), strip = device_.upload(start);
  run("jacobi", {n / 32, n / 8}, {32, 8}, n, from, to);
  run("jacobi_strip", {1, 4}, {n}, n, n / 4, from, strip);
  const auto points = device_.download<float>(to, n * n), strips = device_.download<float>(strip, n * n);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(points[i], wanted[i], 1e-6f);
    EXPECT_NEAR(strips[i], wanted[i], 1e-6f);
  }
}

TEST_F(CompiledKernels, DivergentLoopsWithLocalArrays) {
  const auto out = device_.upload(std::vector<int>(256));
  run("collatz", {2}, {128}, out);
  const auto results = device_.download<int>(out, 256);
  for (int i = 0; i < 256; ++i) {
    int steps = 0, histogram[4] = {};
    for (unsigned v = static_cast<unsigned>(i) + 1; v != 1; v = v % 2 == 0 ? v / 2 : 3 * v + 1) {
      ++steps;
      ++histogram[v % 4];
    }
    EXPECT_EQ(results[i], steps * 1000 + histogram[i % 4]) << i;
  }
}

TEST_F(CompiledKernels, BlockReductionWithShuffles) {
  const auto values = numbers(5000);
  const auto in = device_.upload(values), out = device_.upload(std::vector<float>(1));
  run("reduce", {20}, {256}, 5000, in, out);
  double sum = 0;
  for (const float value : values) sum += value;
  EXPECT_NEAR(device_.download<float>(out, 1)[0], sum, 1e-2);
}

TEST_F(CompiledKernels, CallsThatAreNotInlined) {
  const auto out = device_.upload(std::vector<int>(64));
  run("ackermann", {1}, {64}, out);
  const auto results = device_.download<int>(out, 64);
  // A(2, n) = 2n + 3 and A(1, n) = n + 2.
  for (int i = 0; i < 64; ++i) EXPECT_EQ(results[i], i % 2 == 0 ? 2 * (i % 5) + 3 : i % 5 + 2);
}

TEST_F(CompiledKernels, StructuresByValueAndConstants) {
  struct Line {
    double slope;
    int offset;
    char table[12];
  };
  Line line{2.5, 4, {}};
  for (int i = 0; i < 12; ++i) line.table[i] = static_cast<char>(i * 3);
  const auto out = device_.upload(std::vector<double>(32));
  run("evaluate_line", {1}, {32}, line, out);
  const auto results = device_.download<double>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(results[i], 2.5 * i + 4 + line.table[i % 12] + (i % 3 + 1) * 100);
}

}  // namespace
}  // namespace softgpu::ptx
#endif
