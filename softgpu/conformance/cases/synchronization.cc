// Barriers, fences, locks, and blocks that wait for each other.
#include <algorithm>
#include <numeric>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

void grid_sync(Test& test) {
  const int blocks = 6, size = 64, n = blocks * size, rounds = 7;
  auto values = words(n, 1), next = values;
  const auto from = test.upload(values), to = test.zeros<unsigned>(n);
  Shape shape{blocks, size};
  shape.cooperative = true;
  test.launch("grid_sync", shape, rounds, test.zeros<unsigned>(2), from, to);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < n; ++i) next[i] = values[(i + 1) % n] * 3u + values[(i + n / 2) % n];
    std::swap(values, next);
  }
  test.equal("values", test.download(rounds % 2 == 0 ? from : to), values);
}

void block_lock(Test& test) {
  const int blocks = 40, size = 64;
  const auto account = test.zeros<int>(1);
  test.launch("block_lock", {blocks, size}, test.zeros<unsigned>(1), account);
  int want = 0;
  for (int block = 0; block < blocks; ++block) want += block * size + size * (size - 1) / 2;
  test.equal("account", test.download(account), {want});
}

void producer_consumer(Test& test) {
  const unsigned pairs = 3, count = 10;
  const auto out = test.zeros<unsigned>(pairs * count * 64);
  test.launch("producer_consumer", {2 * pairs, 64}, static_cast<int>(count), test.zeros<unsigned>(pairs * 4),
              test.zeros<unsigned>(pairs * 4 * 64), out);
  std::vector<unsigned> want;
  for (unsigned at = 0; at < pairs * count * 64; ++at) {
    want.push_back((at / (count * 64) + 1) * 1000 + at / 64 % count * (at % 64));
  }
  test.equal("consumed", test.download(out), want);
}

void last_block_reduce(Test& test) {
  const int n = 9999, blocks = 8;
  const auto in = integers(n, 2, -1000000, 1000000);
  const auto total = test.zeros<long long>(1);
  test.launch("last_block_reduce", {blocks, 256}, n, test.upload(in), test.zeros<long long>(blocks),
              test.zeros<unsigned>(1), total);
  test.equal("total", test.download(total), {std::accumulate(in.begin(), in.end(), 0ll)});
}

void named_barriers(Test& test) {
  const int rounds = 9;
  const auto in = integers(rounds * 64, 3, -99, 99);
  const auto out = test.zeros<int>(in.size());
  test.launch("named_barriers", {1, 128}, rounds, test.upload(in), out);
  std::vector<int> want(in.size());
  for (int i = 0; i < rounds * 64; ++i) want[i] = 2 * in[i / 64 * 64 + 63 - i % 64];
  test.equal("handed over", test.download(out), want);
}

void barrier_reductions(Test& test) {
  const int blocks = 3, size = 96;
  auto in = integers(blocks * size, 4, 1, 98);
  in[size + 5] = 0;
  in[2 * size + 7] = 99;
  const auto out = test.zeros<int>(in.size());
  test.launch("barrier_reductions", {blocks, size}, test.upload(in), out);
  std::vector<int> want;
  for (int block = 0; block < blocks; ++block) {
    const auto first = in.begin() + block * size, last = first + size;
    const auto over_50 = std::count_if(first, last, [](int value) { return value > 50; });
    want.insert(want.end(), size, static_cast<int>(over_50) * 100 + (block != 1) * 10 + (block == 2));
  }
  test.equal("reduced", test.download(out), want);
}

void dynamic_shared(Test& test) {
  const int n = 128, blocks = 3;
  const auto in = uniform_double(n * blocks, 5);
  const auto out = test.zeros<double>(in.size());
  test.launch("dynamic_shared", {blocks, n, n * (8 + 4 + 2)}, n, test.upload(in), out);
  std::vector<int> order(n), back(n);
  for (int i = 0; i < n; ++i) order[i * 7 % n] = i;
  for (int i = 0; i < n; ++i) back[order[i]] = i;
  std::vector<double> want(in.size());
  for (int i = 0; i < n * blocks; ++i) want[i] = in[i / n * n + order[i % n]] + back[i % n];
  test.equal("values", test.download(out), want);
}

void large_dynamic_shared(Test& test) {
  const int n = 512, bytes = 60 * 1024;  // more than the 48 KiB that need no permission
  const CUfunction function = test.function("dynamic_shared");
  int limit = test.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (limit < bytes) return test.skip("the device has less shared memory per block");
  if (!test.ok()) return;
  const auto in = test.upload(uniform_double(n, 6)), out = test.zeros<double>(n);
  int count = n;
  CUdeviceptr in_address = in.address, out_address = out.address;
  void* parameters[] = {&count, &in_address, &out_address};
  const auto launch = [&] {
    return driver().cuLaunchKernel(function, 1, 1, 1, n, 1, 1, bytes, nullptr, parameters, nullptr);
  };
  test.expect_code("launch beyond 48 KiB", launch(), CUDA_ERROR_INVALID_VALUE);
  const auto allow = [&](int size) {
    return driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size);
  };
  test.expect_code("more than the device has", allow(limit + 1), CUDA_ERROR_INVALID_VALUE);
  test.expect_code("permission", allow(bytes), CUDA_SUCCESS);
  test.expect_code("launch with permission", launch(), CUDA_SUCCESS);
}

void message_passing(Test& test) {
  const int rounds = 20;
  const auto errors = test.zeros<unsigned>(1), flags = test.zeros<unsigned>(2);
  test.launch("message_passing", {4, 32}, rounds, flags, test.zeros<unsigned>(8), errors);
  test.equal("errors", test.download(errors), {0u});
  test.equal("flags", test.download(flags), {20u, 60u});
}

void atomics(Test& test) {
  const int blocks = 5, size = 96, n = blocks * size;
  const auto in = words(n, 7);
  std::vector<unsigned> start(16 + n);
  start[1] = start[3] = ~0u;
  std::vector<unsigned long long> wide_start{0, 0, ~0ull};
  const auto device = test.upload(start);
  const auto wide = test.upload(wide_start);
  test.launch("atomics", {blocks, size}, test.upload(in), device, wide);
  for (const unsigned value : in) {
    start[0] += value;
    start[1] = std::min(start[1], value);
    start[2] = std::max(start[2], value);
    start[3] &= value | 0xffff;
    start[4] |= value & 0xff00ff;
    start[5] ^= value;
    start[6] = start[6] >= 99 ? 0 : start[6] + 1;
    start[7] = start[7] == 0 || start[7] > 49 ? 49 : start[7] - 1;
    wide_start[0] += static_cast<unsigned long long>(value) << 20;
    wide_start[1] = std::max(wide_start[1], static_cast<unsigned long long>(value) << 13);
    wide_start[2] &= static_cast<unsigned long long>(value) << 32 | value;
  }
  test.equal("words", test.download(device), start);
  test.equal("wide words", test.download(wide), wide_start);
}

constexpr Case kCases[] = {
    {"grid_sync", "synchronization", grid_sync},
    {"block_lock", "synchronization", block_lock},
    {"producer_consumer", "synchronization", producer_consumer},
    {"last_block_reduce", "synchronization", last_block_reduce},
    {"named_barriers", "synchronization", named_barriers},
    {"barrier_reductions", "synchronization", barrier_reductions},
    {"dynamic_shared", "synchronization", dynamic_shared},
    {"large_dynamic_shared", "synchronization", large_dynamic_shared},
    {"message_passing", "synchronization", message_passing},
    {"atomics", "synchronization", atomics},
};

}  // namespace

const Field kSynchronization{"synchronization", kCases};

}  // namespace softgpu::conformance
