#include "decide/residency/kernel_pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using Kernel = KernelPieces::Kernel;
using Range = KernelPieces::Range;
using Piece = KernelPieces::Piece;

constexpr Duration kPlace = 2ms;

// A device on which blocks of a kernel take so long, a wave at a time.
struct Device {
  std::vector<Kernel> kernels;
  std::vector<double> us_per_wave;

  Duration time_of(const Piece& piece) const {
    double us = 0;
    for (const Range& range : piece.ranges) {
      const auto wave = static_cast<double>(kernels[range.kernel].wave);
      us += us_per_wave[range.kernel] * std::ceil(static_cast<double>(range.count) / wave);
    }
    return from_seconds(us / 1e6);
  }
  std::vector<Piece> call(KernelPieces& pieces, Duration left = kPlace) const {
    std::vector<Piece> all;
    for (pieces.begin_call(); !pieces.is_over();) {
      all.push_back(pieces.next(left));
      pieces.measured(all.back(), time_of(all.back()));
    }
    return all;
  }
  Duration longest(const std::vector<Piece>& pieces) const {
    Duration most{0};
    for (const Piece& piece : pieces) most = std::max(most, time_of(piece));
    return most;
  }
};

// Every block of every kernel once for each iteration, in their order.
void expect_all(const std::vector<Piece>& pieces, const std::vector<Kernel>& kernels, std::uint32_t iterations) {
  std::size_t kernel = 0;
  std::uint64_t block = 0;
  std::uint32_t iteration = 0;
  for (const Piece& piece : pieces) {
    EXPECT_FALSE(piece.ranges.empty());
    for (const Range& range : piece.ranges) {
      ASSERT_EQ(range.kernel, kernel);
      ASSERT_EQ(range.first, block);
      ASSERT_GT(range.count, 0U);
      block += range.count;
      if (block < kernels[kernel].blocks) continue;
      ASSERT_EQ(block, kernels[kernel].blocks);
      block = 0, kernel = (kernel + 1) % kernels.size();
      iteration += kernel == 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(iteration, iterations);
}

TEST(KernelPieces, OfAKernelOf50MsFitAFrame) {
  const Device device{{{.blocks = 100'000, .wave = 100, .can_be_cut = true}}, {50}};  // 1,000 waves
  KernelPieces pieces(device.kernels, 1);
  EXPECT_EQ(pieces.estimate(), std::nullopt);
  const auto first = device.call(pieces);
  expect_all(first, device.kernels, 1);
  EXPECT_EQ(first.front().ranges, (std::vector<Range>{{0, 0, 100}})) << "not known: a wave";
  EXPECT_EQ(first.front().estimate, 0ms);
  EXPECT_LE(device.longest(first), 550us);
  EXPECT_EQ(pieces.estimate(), 50ms);
  const auto second = device.call(pieces);
  expect_all(second, device.kernels, 1);
  EXPECT_EQ(second.size(), 100U);
  EXPECT_EQ(second[1].estimate, 500us);
}

TEST(KernelPieces, AreShortWhereThePlaceIsNearlyOver) {
  const Device device{{{.blocks = 100'000, .wave = 100, .can_be_cut = true}}, {50}};
  KernelPieces pieces(device.kernels, 1);
  device.call(pieces);
  pieces.begin_call();
  EXPECT_EQ(pieces.next(300us).estimate, 300us);
  EXPECT_EQ(pieces.next(0us).estimate, 100us);
  EXPECT_EQ(pieces.next(-5ms).estimate, 100us);
  EXPECT_EQ(pieces.next(5ms).estimate, 500us);
}

TEST(KernelPieces, AreOfWholeWaves) {
  const Device device{{{.blocks = 1050, .wave = 100, .can_be_cut = true}}, {700}};
  KernelPieces pieces(device.kernels, 1);
  device.call(pieces);
  const auto all = device.call(pieces);
  expect_all(all, device.kernels, 1);
  ASSERT_EQ(all.size(), 11U);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(all[i].ranges[0].count, 100U) << "a wave takes as long as a part of it";
  const Device few{{{.blocks = 1020, .wave = 100, .can_be_cut = true}}, {700}};
  KernelPieces rest(few.kernels, 1);
  EXPECT_EQ(few.call(rest).back().ranges[0].count, 120U) << "a small rest goes with what is before it";
}

TEST(KernelPieces, AKernelOfOneWaveIsNeverCut) {
  const Device device{{{.blocks = 100, .wave = 100, .can_be_cut = true}}, {50'000}};
  KernelPieces pieces(device.kernels, 2);
  device.call(pieces);
  const auto all = device.call(pieces);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].ranges, (std::vector<Range>{{0, 0, 100}}));
}

TEST(KernelPieces, WhatCannotBeCutIsOnePiece) {
  const Device device{{{.blocks = 100'000, .wave = 100, .can_be_cut = false}}, {50}};
  KernelPieces pieces(device.kernels, 1);
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(device.call(pieces).size(), 1U);
    EXPECT_EQ(pieces.estimate(), 50ms);
  }
}

TEST(KernelPieces, ShortKernelsGoTogetherOnceTheyAreKnown) {
  const Device device{{{.blocks = 10, .wave = 100}, {.blocks = 20, .wave = 100}}, {40, 60}};
  KernelPieces pieces(device.kernels, 50);
  const auto first = device.call(pieces);
  expect_all(first, device.kernels, 50);
  EXPECT_EQ(first[0].ranges.size(), 1U) << "one that is not known is alone, to be measured";
  EXPECT_EQ(first[1].ranges.size(), 1U);
  const auto second = device.call(pieces);
  expect_all(second, device.kernels, 50);
  EXPECT_EQ(second.size(), 10U) << "5 ms in pieces of 0.5";
  EXPECT_EQ(pieces.estimate(), 5ms);
}

TEST(KernelPieces, WhatTakesLongerIsBelievedAtOnceWhatTakesLessBySteps) {
  const Device slow{{{.blocks = 100'000, .wave = 100, .can_be_cut = true}}, {100}};
  Device quick = slow;
  quick.us_per_wave = {50};
  KernelPieces pieces(slow.kernels, 1);
  quick.call(pieces);
  pieces.begin_call();
  const Piece piece = pieces.next(kPlace);
  EXPECT_EQ(piece.ranges[0].count, 1000U);
  pieces.measured(piece, slow.time_of(piece));
  const Piece next = pieces.next(kPlace);
  EXPECT_EQ(next.ranges[0].count, 500U);
  pieces.measured(next, quick.time_of(next));
  EXPECT_EQ(pieces.next(kPlace).ranges[0].count, 500U) << "571, in whole waves";
}

TEST(KernelPieces, AWholeCallThatTookLongerIsBelievedToo) {
  const Device device{{{.blocks = 1000, .wave = 100, .can_be_cut = true}, {.blocks = 1, .wave = 100}}, {50, 100}};
  KernelPieces pieces(device.kernels, 1);
  pieces.measured_whole(50ms);
  EXPECT_EQ(pieces.estimate(), std::nullopt) << "whose time that was is not known";
  device.call(pieces);
  EXPECT_EQ(pieces.estimate(), 600us);
  pieces.measured_whole(500us);
  EXPECT_EQ(pieces.estimate(), 600us);
  pieces.measured_whole(60ms);
  EXPECT_EQ(pieces.estimate(), 60ms);
  EXPECT_EQ(device.call(pieces).front().ranges[0].count, 100U);
}

TEST(KernelPieces, HostileSizes) {
  const std::uint64_t all = std::uint64_t{2147483647} * 65535 * 65535;
  KernelPieces pieces({{.blocks = all, .wave = 0, .can_be_cut = true}}, 4'294'967'295);
  pieces.begin_call();
  const Piece first = pieces.next(kPlace);
  EXPECT_EQ(first.ranges[0].count, 1U);
  pieces.measured(first, 0ns);  // the clock of events is coarse
  const Piece second = pieces.next(kPlace);
  EXPECT_GT(second.ranges[0].count, 1U);
  EXPECT_LE(second.ranges[0].count, 2147483647U);
  pieces.measured(second, 100h);
  EXPECT_EQ(pieces.next(kPlace).ranges[0].count, 1U);
  EXPECT_FALSE(pieces.is_over());
  EXPECT_TRUE(KernelPieces({}, 5).is_over());
  KernelPieces wide({{.blocks = 10, .wave = 4'000'000'000, .can_be_cut = true}}, 1);
  wide.begin_call();
  EXPECT_EQ(wide.next(kPlace).ranges, (std::vector<Range>{{0, 0, 10}}));
}

}  // namespace
}  // namespace fairlead
