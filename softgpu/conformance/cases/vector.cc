// Maps, reductions, prefix sums and histograms.
#include <algorithm>
#include <numeric>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void vector_add(Test& test) {
  const int n = 10007;
  const auto a = uniform(n, 1), b = uniform(n, 2);
  const auto c = test.zeros<float>(n);
  test.launch("vector_add", {40, 256}, n, test.upload(a), test.upload(b), c);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) want[i] = a[i] + b[i];
  test.equal("c", test.download(c), want);
}

void saxpy(Test& test) {
  const int n = 8192;
  const auto x = uniform(n, 3), y = uniform(n, 4);
  const auto out = test.upload(y);
  test.launch("saxpy", {5, 128}, n, 2.5f, test.upload(x), out);
  std::vector<float> want(n);
  for (int i = 0; i < n; ++i) want[i] = std::fma(2.5f, x[i], y[i]);
  test.equal("y", test.download(out), want);
}

void reduce_shuffle(Test& test) {
  const int n = 30011, blocks = 12;
  const auto in = uniform(n, 5);
  const auto partial = test.zeros<float>(blocks);
  test.launch("reduce_shuffle", {blocks, 256}, n, test.upload(in), partial);
  const auto sums = test.download(partial);
  const double want = std::accumulate(in.begin(), in.end(), 0.0);
  test.near("sum", std::vector<double>{std::accumulate(sums.begin(), sums.end(), 0.0)}, std::vector<double>{want},
            1e-4);
}

void reduce_shared(Test& test) {
  const int n = 20000;
  const auto in = integers(n, 6, -1000000000, 1000000000);
  const auto total = test.zeros<long long>(1);
  test.launch("reduce_shared", {79, 256}, n, test.upload(in), total);
  test.equal("total", test.download(total), {std::accumulate(in.begin(), in.end(), 0ll)});
}

void reduce_atomic(Test& test) {
  const int n = 5000;
  const auto in = uniform(n, 7);
  const auto sum = test.zeros<float>(1);
  const auto least = test.upload(std::vector<int>{1 << 30}), greatest = test.upload(std::vector<int>{-(1 << 30)});
  test.launch("reduce_atomic", {20, 256}, n, test.upload(in), sum, least, greatest);
  test.near("sum", test.download(sum), {static_cast<float>(std::accumulate(in.begin(), in.end(), 0.0))}, 1e-4);
  const auto [low, high] = std::minmax_element(in.begin(), in.end());
  test.equal("minimum", test.download(least), {static_cast<int>(*low * 1000000.0f)});
  test.equal("maximum", test.download(greatest), {static_cast<int>(*high * 1000000.0f)});
}

void dot_double(Test& test) {
  const int n = 10000;
  const auto a = uniform_double(n, 8), b = uniform_double(n, 9);
  const auto sum = test.zeros<double>(1);
  test.launch("dot_double", {8, 128}, n, test.upload(a), test.upload(b), sum);
  test.near("dot", test.download(sum), {std::inner_product(a.begin(), a.end(), b.begin(), 0.0)}, 1e-12);
}

void scan_block(Test& test) {
  const int blocks = 6, size = 1024;
  const auto in = words(blocks * size, 10, 1000);
  const auto out = test.zeros<unsigned>(blocks * size);
  test.launch("scan_block", {blocks, size}, test.upload(in), out);
  std::vector<unsigned> want(in.size());
  for (int block = 0; block < blocks; ++block) {
    std::partial_sum(in.begin() + block * size, in.begin() + (block + 1) * size, want.begin() + block * size);
  }
  test.equal("scan", test.download(out), want);
}

void scan_lookback(Test& test) {
  const int tiles = 60, size = 256;
  const auto in = words(tiles * size, 11, 1000);
  const auto out = test.zeros<unsigned>(tiles * size);
  test.launch("scan_lookback", {tiles, size}, test.upload(in), out, test.zeros<unsigned>(1),
              test.zeros<unsigned>(tiles));
  std::vector<unsigned> want(in.size());
  std::partial_sum(in.begin(), in.end(), want.begin());
  test.equal("scan", test.download(out), want);
}

void histogram_shared(Test& test) {
  const int n = 40000;
  const auto in = words(n, 12);
  const auto bins = test.zeros<unsigned>(256);
  test.launch("histogram_shared", {10, 256}, n, test.upload(in), bins);
  std::vector<unsigned> want(256);
  for (const unsigned word : in) ++want[word & 255];
  test.equal("bins", test.download(bins), want);
}

void histogram_global(Test& test) {
  const int n = 20000;
  const auto in = words(n, 13);
  const auto bins = test.zeros<unsigned>(1024);
  test.launch("histogram_global", {79, 256}, n, test.upload(in), bins);
  std::vector<unsigned> want(1024);
  for (const unsigned word : in) ++want[word >> 22];
  test.equal("bins", test.download(bins), want);
}

void compact(Test& test) {
  const int n = 12345, threshold = 300;
  const auto in = integers(n, 14, -1000, 1000);
  const auto out = test.zeros<int>(n);
  const auto count = test.zeros<unsigned>(1);
  test.launch("compact", {49, 256}, n, threshold, test.upload(in), out, count);
  std::vector<int> want, got = test.download(out);
  std::copy_if(in.begin(), in.end(), std::back_inserter(want), [](int value) { return value > threshold; });
  test.equal("count", test.download(count), {static_cast<unsigned>(want.size())});
  got.resize(want.size());
  std::sort(got.begin(), got.end());  // warps arrive in any order
  std::sort(want.begin(), want.end());
  test.equal("kept", got, want);
}

constexpr Case kCases[] = {
    {"vector_add", "vector", vector_add},
    {"saxpy", "vector", saxpy},
    {"reduce_shuffle", "vector", reduce_shuffle},
    {"reduce_shared", "vector", reduce_shared},
    {"reduce_atomic", "vector", reduce_atomic, Bits::kFree},
    {"dot_double", "vector", dot_double, Bits::kFree},
    {"scan_block", "vector", scan_block},
    {"scan_lookback", "vector", scan_lookback},
    {"histogram_shared", "vector", histogram_shared},
    {"histogram_global", "vector", histogram_global},
    {"compact", "vector", compact},
};

}  // namespace

const Field kVector{"vector", kCases};

}  // namespace softgpu::conformance
