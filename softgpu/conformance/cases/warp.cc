// Operations between the lanes of a warp, and divergence.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/inputs.h"
#include "softgpu/conformance/test.h"

namespace softgpu::conformance {
namespace {

constexpr int kLanes = 32;

void shuffles(Test& test) {
  const auto in = integers(kLanes, 1, -1000, 1000);
  const auto out = test.zeros<int>(9 * kLanes);
  test.launch("shuffles", {1, kLanes}, test.upload(in), out);
  std::vector<int> want;
  const auto each = [&](const std::function<int(int)>& value) {
    for (int lane = 0; lane < kLanes; ++lane) want.push_back(value(lane));
  };
  each([&](int lane) { return in[lane * 7 % 32]; });
  each([&](int lane) { return in[lane / 8 * 8 + 5]; });
  each([&](int lane) { return in[lane >= 3 ? lane - 3 : lane]; });
  each([&](int lane) { return in[lane % 4 >= 2 ? lane - 2 : lane]; });
  each([&](int lane) { return in[lane + 9 < 32 ? lane + 9 : lane]; });
  each([&](int lane) { return in[lane % 16 + 1 < 16 ? lane + 1 : lane]; });
  each([&](int lane) { return in[lane ^ 21]; });
  each([&](int lane) { return in[lane ^ 6]; });
  each([&](int lane) { return static_cast<int>(in[31 - lane] * 1.5); });
  test.equal("shuffled", test.download(out), want);
}

void partial_shuffles(Test& test) {
  const auto in = integers(kLanes, 2, -1000, 1000);
  const auto out = test.zeros<int>(kLanes);
  test.launch("partial_shuffles", {1, kLanes}, test.upload(in), out);
  std::vector<int> want(kLanes);
  for (int lane = 0; lane < 16; ++lane) want[lane] = in[lane ^ 1];
  for (int lane = 1; lane < 14; lane += 2) want[lane] = in[lane ^ 1] + in[(lane + 2) ^ 1];
  want[15] = 2 * in[14];  // beyond the segment: its own value
  for (int lane = 16; lane < 32; ++lane) want[lane] = in[lane] - in[20];
  const int from_30 = want[30];
  for (int lane = 18; lane < 32; lane += 3) want[lane] ^= from_30;
  test.equal("values", test.download(out), want);
}

void votes(Test& test) {
  const int warps = 4, threshold = 40;
  auto in = integers(warps * kLanes, 3, 0, 99);
  for (int lane = 0; lane < kLanes; ++lane) in[lane] %= 80;
  const auto out = test.zeros<unsigned>(6 * in.size());
  test.launch("votes", {warps, kLanes}, threshold, test.upload(in), out);
  std::vector<unsigned> want;
  for (int i = 0; i < warps * kLanes; ++i) {
    const int* warp = &in[i / kLanes * kLanes];
    const int lane = i % kLanes;
    const auto ballot = [&](const std::function<bool(int)>& predicate) {
      unsigned bits = 0;
      for (int other = 0; other < kLanes; ++other) bits |= static_cast<unsigned>(predicate(other)) << other;
      return bits;
    };
    const unsigned middle = 0x007fffe0u;
    const unsigned equal = ballot([&](int other) { return warp[other] == threshold; });
    const unsigned small = ballot([&](int other) { return warp[other] < 90; });
    const unsigned odd = ballot([&](int other) { return (warp[other] & 1) != 0; }) & middle;
    want.insert(want.end(), {ballot([&](int other) { return warp[other] > threshold; }),
                             static_cast<unsigned>(equal != 0) | static_cast<unsigned>(small == ~0u) << 1,
                             (middle >> lane & 1) != 0 ? odd | 1u << 31 : 0u,
                             ballot([&](int other) { return (warp[other] & 7) == (warp[lane] & 7); }), ~0u,
                             ballot([&](int other) { return other / 5 == lane / 5; })});
  }
  test.equal("votes", test.download(out), want);
}

void redux(Test& test) {
  const auto in = integers(kLanes, 4, -100000, 100000);
  const auto out = test.zeros<int>(7 * kLanes);
  test.launch("redux", {1, kLanes}, test.upload(in), out);
  int sum = 0, least = in[0], all = -1, any = 0, odd = 0, even_greatest = in[0];
  unsigned greatest = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int value = in[lane];
    sum += value, all &= value | 0x40, any |= value, odd ^= value;
    least = std::min(least, value);
    greatest = std::max(greatest, static_cast<unsigned>(value));
    if (lane % 2 == 0) even_greatest = std::max(even_greatest, value);
  }
  std::vector<int> want;
  for (int lane = 0; lane < kLanes; ++lane) {
    want.insert(want.end(), {sum, least, static_cast<int>(greatest), all, any, odd, lane % 2 == 0 ? even_greatest : 0});
  }
  test.equal("reduced", test.download(out), want);
}

void divergent_loop(Test& test) {
  const auto trips = integers(128, 5, 0, 60);
  const auto out = test.zeros<int>(128);
  test.launch("divergent_loop", {2, 64}, test.upload(trips), out);
  std::vector<int> rounds(128), want(128);
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < trips[thread]; ++i) {
      rounds[thread] += i % 3 == 0 ? 2 : 1;
      if (i % 5 == 4) continue;
      want[thread] += i;
      if (want[thread] > 500) break;
    }
  }
  for (int thread = 0; thread < 128; ++thread) {
    const auto warp = rounds.begin() + thread / kLanes * kLanes;
    want[thread] += rounds[thread] * 1000 +
                    static_cast<int>(std::count_if(warp, warp + kLanes, [](int count) { return count > 20; }));
  }
  test.equal("results", test.download(out), want);
}

int interpret(const unsigned char* program, int steps, unsigned start) {
  unsigned a = start, b = 1;  // wraps as the device does
  for (int step = 0; step < steps; ++step) {
    const int sa = static_cast<int>(a), sb = static_cast<int>(b);
    switch (program[step] & 15) {
      case 0: a += b; break;
      case 1: a -= b; break;
      case 2: a *= 3; break;
      case 3: b = a ^ 0x55; break;
      case 4: a = static_cast<unsigned>(sa >> 1); break;
      case 5: b += 7; break;
      case 6: a = -a; break;
      case 7: a ^= b << 2; break;
      case 8: b = a & 0xff; break;
      case 9: a = sa > sb ? a - 11 : b; break;
      case 10: b *= b; break;
      case 11: a |= 1; break;
      default: a += 2;
    }
  }
  return static_cast<int>(a ^ b);
}

void interpreter(Test& test) {
  const int threads = 96, steps = 40;
  const auto random = words(threads * steps, 6, 256);
  const std::vector<unsigned char> programs(random.begin(), random.end());
  const auto out = test.zeros<int>(threads);
  test.launch("interpreter", {3, 32}, steps, test.upload(programs), out);
  std::vector<int> want(threads);
  for (int i = 0; i < threads; ++i) want[i] = interpret(&programs[i * steps], steps, static_cast<unsigned>(i));
  test.equal("results", test.download(out), want);
}

void lane_lock(Test& test) {
  const auto lock = test.zeros<int>(1), counter = test.zeros<int>(1), order = test.zeros<int>(kLanes);
  test.launch("lane_lock", {1, kLanes}, lock, counter, order);
  auto got = test.download(order);
  std::sort(got.begin(), got.end());  // any order, each lane once
  std::vector<int> want(kLanes);
  std::iota(want.begin(), want.end(), 0);
  test.equal("lanes", got, want);
  test.equal("counter", test.download(counter), {kLanes});
}

void lane_pipe(Test& test) {
  const int count = 50;
  const auto out = test.zeros<int>(count);
  test.launch("lane_pipe", {1, kLanes}, count, test.zeros<int>(1), out);
  std::vector<int> want(count);
  for (int i = 0; i < count; ++i) want[i] = (i + 1) * (i + 1);
  test.equal("passed", test.download(out), want);
}

void early_exit(Test& test) {
  const auto in = integers(kLanes, 7, 0, 9);
  const auto out = test.zeros<int>(kLanes);
  test.launch("early_exit", {1, kLanes}, test.upload(in), out);
  unsigned odd = 0;
  for (int lane = 0; lane < kLanes; ++lane) odd |= lane % 4 == 3 ? 0 : static_cast<unsigned>(in[lane] & 1) << lane;
  std::vector<int> want(kLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane % 4 == 3) continue;
    want[lane] = std::popcount(odd & ((1u << lane) - 1)) + 100 + 1000 * std::popcount(odd);
  }
  test.equal("counts", test.download(out), want);
}

void register_transpose(Test& test) {
  const auto in = integers(kLanes * 8, 8, 0, 9999);
  const auto out = test.zeros<int>(in.size());
  test.launch("register_transpose", {1, kLanes}, test.upload(in), out);
  std::vector<int> want(in.size());
  for (int i = 0; i < kLanes * 8; ++i) {
    const int group = i / 64 * 64;  // eight lanes exchange an 8 x 8 block
    want[i] = in[group + i % 8 * 8 + i / 8 % 8];
  }
  test.equal("transposed", test.download(out), want);
}

constexpr Case kCases[] = {
    {"shuffles", "warp", shuffles},
    {"partial_shuffles", "warp", partial_shuffles},
    {"votes", "warp", votes},
    {"redux", "ampere_warp", redux, Bits::kSame, 80},
    {"divergent_loop", "warp", divergent_loop},
    {"interpreter", "warp", interpreter},
    {"lane_lock", "warp", lane_lock},
    {"lane_pipe", "warp", lane_pipe},
    {"early_exit", "warp", early_exit},
    {"register_transpose", "warp", register_transpose},
};

}  // namespace

const Field kWarp{"warp", kCases};

}  // namespace softgpu::conformance
