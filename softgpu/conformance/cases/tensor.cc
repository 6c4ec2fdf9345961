// Tensor cores and asynchronous copies (sm_80), and PTX written by hand. Inputs are small integers, whose sums are exact in
// any order, so the bits are promised although the hardware's order of additions is not.
#include <bit>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

constexpr int kRows = 16, kColumns = 8;

// c = a b for b stored by columns.
template <class Sum>
std::vector<Sum> product(int k, const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<Sum> c(kRows * kColumns);
  for (int at = 0; at < kRows * kColumns; ++at) {
    int sum = 0;
    for (int i = 0; i < k; ++i) sum += a[at / kColumns * k + i] * b[at % kColumns * k + i];
    c[at] = static_cast<Sum>(sum);
  }
  return c;
}

unsigned short half_bits(int value) {
  return std::bit_cast<unsigned short>(static_cast<_Float16>(value));
}
unsigned short bfloat_bits(int value) {
  return static_cast<unsigned short>(std::bit_cast<unsigned>(static_cast<float>(value)) >> 16);
}

template <class T>
std::vector<T> converted(const std::vector<int>& values, T (*convert)(int)) {
  std::vector<T> out;
  for (const int value : values) out.push_back(convert(value));
  return out;
}

void mma_16_bits(Test& test, const char* kernel, unsigned short (*convert)(int)) {
  const int k = 48;
  const auto a = integers(kRows * k, 1, -9, 9), b = integers(k * kColumns, 2, -9, 9);
  const auto c = test.zeros<float>(kRows * kColumns);
  test.launch(kernel, {1, 32}, k, test.upload(converted(a, convert)), test.upload(converted(b, convert)), c);
  test.equal("c", test.download(c), product<float>(k, a, b));
}
void mma_half(Test& test) {
  mma_16_bits(test, "mma_half", half_bits);
}
void mma_bfloat(Test& test) {
  mma_16_bits(test, "mma_bfloat", bfloat_bits);
}

void mma_half_sums(Test& test) {
  const auto a = integers(kRows * 16, 3, -5, 5), b = integers(16 * kColumns, 4, -5, 5);
  const auto c = test.zeros<unsigned>(kRows * kColumns / 2);
  test.launch("mma_half_sums", {1, 32}, test.upload(converted(a, half_bits)), test.upload(converted(b, half_bits)), c);
  const auto sums = product<int>(16, a, b);
  std::vector<unsigned> want;
  for (std::size_t i = 0; i < sums.size(); i += 2) {
    want.push_back(half_bits(sums[i]) | static_cast<unsigned>(half_bits(sums[i + 1])) << 16);
  }
  test.equal("c", test.download(c), want);
}

void mma_tf32(Test& test) {
  const int k = 24;
  const auto a = integers(kRows * k, 5, -99, 99), b = integers(k * kColumns, 6, -99, 99);
  const auto c = test.zeros<float>(kRows * kColumns);
  test.launch("mma_tf32", {1, 32}, k, test.upload(std::vector<float>(a.begin(), a.end())),
              test.upload(std::vector<float>(b.begin(), b.end())), c);
  test.equal("c", test.download(c), product<float>(k, a, b));
}

void mma_bytes(Test& test) {
  const int k = 64;
  const auto a = integers(kRows * k, 7, -128, 127), b = integers(k * kColumns, 8, -128, 127);
  const auto c = test.zeros<int>(kRows * kColumns);
  test.launch("mma_bytes", {1, 32}, k, test.upload(std::vector<signed char>(a.begin(), a.end())),
              test.upload(std::vector<signed char>(b.begin(), b.end())), c);
  test.equal("c", test.download(c), product<int>(k, a, b));
}

void ldmatrix(Test& test) {
  const auto random = words(32 * 8, 9, 65536);
  const std::vector<unsigned short> in(random.begin(), random.end());
  const auto straight = test.zeros<unsigned>(4 * 32), transposed = test.zeros<unsigned>(4 * 32);
  test.launch("ldmatrix", {1, 32}, test.upload(in), straight, transposed);
  std::vector<unsigned> want_straight, want_transposed;
  for (int i = 0; i < 4 * 32; ++i) {
    const int matrix = i / 32 * 64, row = i % 32 / 4, column = i % 4 * 2;
    const unsigned short* m = &in[matrix];
    want_straight.push_back(m[row * 8 + column] | static_cast<unsigned>(m[row * 8 + column + 1]) << 16);
    want_transposed.push_back(m[column * 8 + row] | static_cast<unsigned>(m[(column + 1) * 8 + row]) << 16);
  }
  test.equal("straight", test.download(straight), want_straight);
  test.equal("transposed", test.download(transposed), want_transposed);
}

void copy_async(Test& test) {
  const int tiles = 5, threads = 64;
  const auto in = uniform(tiles * 256, 10);
  const auto out = test.zeros<float>(threads);
  test.launch("copy_async_pipeline", {1, threads}, tiles, test.upload(in), out);
  std::vector<float> want(threads);
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = 0; i < 4 * tiles; ++i) {
      const float value = in[i / 4 * 256 + (thread * 4 + i % 4 * 65) % 256];
      want[thread] = std::fma(value, value, want[thread]);
    }
  }
  test.equal("sums", test.download(out), want);
}

void jump_table(Test& test) {
  const auto in = integers(64, 11, 0, 3);
  const auto out = test.zeros<int>(64);
  test.launch("jump_table", {1, 64}, test.upload(in), out);
  std::vector<int> want;
  for (int i = 0; i < 64; ++i) want.push_back(in[i] == 0 ? i + 100 : in[i] == 1 ? i * 3 : in[i] == 2 ? -i : i);
  test.equal("results", test.download(out), want);
}

void barrier_reduce(Test& test) {
  const auto in = integers(96, 12, 0, 30);
  const auto out = test.zeros<unsigned>(96);
  test.launch("barrier_reduce", {1, 96}, test.upload(in), out);
  unsigned count = 0;
  for (const int value : in) count += value > 10;
  test.equal("reduced", test.download(out),
             std::vector<unsigned>(96, count * 4 + (count == 0 ? 2 : 0) + (count != 0 ? 1 : 0)));
}

void selections(Test& test) {
  const auto in = integers(4 * 64, 13, -3, 3);
  const auto out = test.zeros<int>(in.size());
  test.launch("selections", {1, 64}, test.upload(in), out);
  std::vector<int> want;
  for (int i = 0; i < 64; ++i) {
    int a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3];
    const bool negative = c < 0, p = (a < b) != negative, q = !(a < b) != negative;
    if (p) c += 1000;
    if (!q) d -= 1000;
    const auto wide =
        (static_cast<unsigned long long>(static_cast<unsigned>(b)) << 32 | static_cast<unsigned>(a)) >> 16;
    const int low = static_cast<int>(wide), high = static_cast<int>(wide >> 32);
    const int greater = a > b ? -1 : 0;
    const unsigned chosen = static_cast<unsigned>(d >= 0 ? low : high) + (high == 0 ? 1u : 0u);
    const float x = std::copysign(static_cast<float>(c), -1.0f);
    if (std::isnormal(x) || x == 0) d ^= 1;  // testp.normal: zeros are normal, unlike in C
    want.insert(want.end(), {static_cast<int>(chosen), greater, std::bit_cast<int>(x), d});
  }
  test.equal("results", test.download(out), want);
}

constexpr Case kCases[] = {
    {"mma_half", "ampere_half_mma", mma_half, Bits::kSame, 80},
    {"mma_half_sums", "ampere_half_mma", mma_half_sums, Bits::kSame, 80},
    {"mma_bfloat", "ampere_half_mma", mma_bfloat, Bits::kSame, 80},
    {"mma_tf32", "ampere_tf32_mma", mma_tf32, Bits::kSame, 80},
    {"mma_bytes", "ampere_byte_mma", mma_bytes, Bits::kSame, 80},
    {"ldmatrix", "ampere_ldmatrix", ldmatrix, Bits::kSame, 80},
    {"copy_async", "ampere_copy_async", copy_async, Bits::kSame, 80},
    {"jump_table", "handwritten", jump_table},
    {"barrier_reduce", "handwritten", barrier_reduce},
    {"selections", "handwritten", selections},
};

}  // namespace

const Field kTensor{"tensor", kCases};

}  // namespace softgpu::conformance
