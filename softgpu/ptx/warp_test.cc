// Shuffles, votes, matches and reductions between lanes.
#include <gtest/gtest.h>

#include <functional>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::evaluate;
using u32 = std::uint32_t;

void expect_lanes(const std::string& body, const std::function<u32(u32)>& reference) {
  std::vector<u32> input(32);
  for (u32 i = 0; i < 32; ++i) input[i] = 100 + i;
  const auto results = evaluate<u32>("mov.u32 %r15, %laneid;\n" + body, input);
  for (u32 i = 0; i < 32; ++i) EXPECT_EQ(results[i], reference(i)) << body << " lane " << i;
}

TEST(Shuffle, MovesValuesBetweenLanes) {
  expect_lanes("shfl.sync.bfly.b32 %out, %in0, 5, 31, -1;", [](u32 i) { return 100 + (i ^ 5); });
  expect_lanes("shfl.sync.up.b32 %out, %in0, 3, 0, -1;", [](u32 i) { return 100 + (i >= 3 ? i - 3 : i); });
  expect_lanes("shfl.sync.down.b32 %out, %in0, 4, 31, -1;", [](u32 i) { return 100 + (i + 4 <= 31 ? i + 4 : i); });
  expect_lanes("shfl.sync.idx.b32 %out, %in0, 7, 31, -1;", [](u32) { return 107u; });
}

TEST(Shuffle, StaysInsideASegment) {
  // Width 8: the segment mask is 24.
  expect_lanes("shfl.sync.down.b32 %out|%p0, %in0, 3, 6151, -1; @!%p0 add.u32 %out, %out, 1000;",
               [](u32 i) { return i % 8 + 3 <= 7 ? 100 + i + 3 : 1100 + i; });
  expect_lanes("shfl.sync.idx.b32 %out, %in0, 2, 6175, -1;", [](u32 i) { return 100 + (i & 24) + 2; });
  expect_lanes("shfl.sync.up.b32 %out, %in0, 1, 6144, -1;", [](u32 i) { return 100 + (i % 8 == 0 ? i : i - 1); });
}

TEST(Shuffle, WaitsForLanesThatTookAnotherWay) {
  expect_lanes(
      "mov.u32 %r1, %in0; and.b32 %r0, %r15, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra EVEN;\n"
      "add.u32 %r1, %r1, 1000; add.u32 %r1, %r1, 1000;\nEVEN:\nshfl.sync.bfly.b32 %out, %r1, 1, 31, -1;",
      [](u32 i) { return 100 + (i ^ 1) + (i % 2 == 0 ? 2000 : 0); });
}

TEST(Shuffle, ActsWithinItsMembersWhenOthersAreElsewhere) {
  expect_lanes(
      "mov.u32 %out, 0; setp.lt.u32 %p0, %r15, 16; @!%p0 bra HIGH;\nshfl.sync.bfly.b32 %out, %in0, 8, 31, 0xffff; bra "
      "END;\n"
      "HIGH: shfl.sync.bfly.b32 %out, %in0, 1, 31, 0xffff0000;\nEND:",
      [](u32 i) { return 100 + (i < 16 ? i ^ 8 : i ^ 1); });
}

TEST(Vote, CountsMembersOnly) {
  expect_lanes("setp.lt.u32 %p0, %r15, 10; vote.sync.ballot.b32 %out, %p0, -1;", [](u32) { return 0x3ffu; });
  expect_lanes("setp.lt.u32 %p0, %r15, 10; vote.sync.ballot.b32 %out, !%p0, -1;", [](u32) { return ~0x3ffu; });
  expect_lanes(
      "setp.lt.u32 %p0, %r15, 10; vote.sync.all.pred %p1, %p0, -1; vote.sync.any.pred %p2, %p0, -1;\n"
      "vote.sync.uni.pred %p3, %p0, -1; selp.b32 %r0, 1, 0, %p1; selp.b32 %r1, 2, 0, %p2; selp.b32 %r2, 4, 0, %p3;\n"
      "or.b32 %out, %r0, %r1; or.b32 %out, %out, %r2;",
      [](u32) { return 2u; });
  expect_lanes(
      "mov.u32 %out, 7; setp.lt.u32 %p0, %r15, 4; @!%p0 bra END; vote.sync.all.pred %p1, %p0, 15; selp.b32 %out, 1, 0, "
      "%p1;\nEND:",
      [](u32 i) { return i < 4 ? 1u : 7u; });
}

TEST(Match, FindsEqualLanes) {
  expect_lanes("and.b32 %r0, %r15, 3; match.any.sync.b32 %out, %r0, -1;", [](u32 i) { return 0x11111111u << (i & 3); });
  expect_lanes(
      "mov.u64 %d0, 5; match.all.sync.b64 %out|%p0, %d0, -1; selp.b32 %r0, 1, 0, %p0; and.b32 %out, %out, %r0;",
      [](u32) { return 1u; });
  expect_lanes("match.all.sync.b32 %out|%p0, %r15, -1; selp.b32 %r0, 1, 0, %p0; or.b32 %out, %out, %r0;",
               [](u32) { return 0u; });
}

TEST(Redux, CombinesMembers) {
  expect_lanes("redux.sync.add.s32 %out, %r15, -1;", [](u32) { return 496u; });
  expect_lanes("redux.sync.max.u32 %out, %in0, -1;", [](u32) { return 131u; });
  expect_lanes("neg.s32 %r0, %r15; redux.sync.min.s32 %out, %r0, -1;", [](u32) { return static_cast<u32>(-31); });
  expect_lanes("redux.sync.xor.b32 %out, %in0, -1;", [](u32) { return 0u; });
}

TEST(LaneRegisters, HaveTheirMasks) {
  expect_lanes("mov.u32 %out, %lanemask_lt;", [](u32 i) { return (1u << i) - 1; });
  expect_lanes("mov.u32 %out, %lanemask_le;", [](u32 i) { return static_cast<u32>((2ull << i) - 1); });
  expect_lanes("mov.u32 %out, %lanemask_gt;", [](u32 i) { return ~static_cast<u32>((2ull << i) - 1); });
  expect_lanes("mov.u32 %out, %lanemask_ge;", [](u32 i) { return ~((1u << i) - 1); });
  expect_lanes("mov.u32 %out, %lanemask_eq;", [](u32 i) { return 1u << i; });
}

}  // namespace
}  // namespace softgpu::ptx
