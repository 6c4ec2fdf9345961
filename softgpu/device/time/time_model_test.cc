#include "softgpu/device/time/time_model.h"

#include <gtest/gtest.h>

#include <cstring>

namespace softgpu {
namespace {

const Profile kV100 = *parse_profile(*load_profile_text("v100-16"));
const std::uint64_t kOverheadNs = kV100.launch_overhead_us * 1000;

TEST(TimeModel, KernelTakesTheLargerOfComputeAndMemory) {
  KernelWork work{.lane_instructions = 1'000'000'000};
  EXPECT_EQ(kernel_ns(kV100, work) - kOverheadNs, 127'655U);  // 10^9 / (80 x 64 x 1.53 GHz)
  work.global_bytes = 900'000'000;                            // 1 ms at 900 GB/s
  EXPECT_EQ(kernel_ns(kV100, work) - kOverheadNs, 1'000'000U);
}

TEST(TimeModel, HalfTheSmsTakeTwiceTheTime) {
  const KernelWork work{.lane_instructions = 1'000'000'000};
  EXPECT_EQ(kernel_ns(kV100, work, {40'000}) - kOverheadNs, 255'310U);
  EXPECT_EQ(kernel_ns(kV100, work, {0}), kForeverNs);
}

TEST(TimeModel, AKernelUsesNoMoreSmsThanItHasBlocks) {
  const KernelWork one_block{.lane_instructions = 1'000'000, .blocks = 1};
  EXPECT_EQ(kernel_ns(kV100, one_block), kernel_ns(kV100, one_block, {1000}));
  EXPECT_EQ(kernel_ns(kV100, one_block) - kOverheadNs, 10'212U);  // 10^6 / (64 x 1.53 GHz)
}

TEST(TimeModel, MemoryBandwidthIsSharedByThoseWhoCompute) {
  const KernelWork work{.global_bytes = 900'000'000};
  EXPECT_EQ(kernel_ns(kV100, work, {40'000, 2}) - kOverheadNs, 2'000'000U);
}

TEST(TimeModel, CopiesShareTheLink) {
  EXPECT_EQ(link_copy_ns(kV100, 12'000'000), 1'000'000U);
  EXPECT_EQ(link_copy_ns(kV100, 12'000'000, 3), 3'000'000U);
  EXPECT_EQ(device_copy_ns(kV100, 450'000'000), 1'000'000U);
}

TEST(TimeModel, MigrationCostsByFaultAndByByte) {
  EXPECT_EQ(migration_ns(kV100, 10, 12'000'000), 10 * 20'000U + 1'000'000U);
  EXPECT_EQ(migration_ns(kV100, 0, 0), 0U);
}

TEST(TimeModel, HugeCountsSaturateInsteadOfWrapping) {
  const KernelWork work{.lane_instructions = UINT64_MAX, .global_bytes = UINT64_MAX};
  EXPECT_GE(kernel_ns(kV100, work, {1}), UINT64_MAX / 1000);
}

ptx::KernelInfo synthetic_kernel() {
  ptx::KernelInfo info;
  info.name = "_Z14softgpu_chargeyy";
  info.parameters = {{0, 8}, {8, 8}, {16, 4}};
  return info;
}

TEST(SyntheticKernel, ItsFirstTwoParametersAreItsCounts) {
  const std::uint64_t counts[] = {7'000'000'000'000, 42, 0};
  const auto work = synthetic_work(synthetic_kernel(), std::as_bytes(std::span(counts)), 3);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->lane_instructions, 7'000'000'000'000U);
  EXPECT_EQ(work->global_bytes, 42U);
}

TEST(SyntheticKernel, TheyMayBeOfEachBlock) {
  const std::uint64_t counts[] = {1'000, 42, 0};
  ptx::KernelInfo kernel = synthetic_kernel();
  kernel.name = "softgpu_charge_blocks_of_a_step";
  const auto work = synthetic_work(kernel, std::as_bytes(std::span(counts)), 3);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->lane_instructions, 3'000U);
  EXPECT_EQ(work->global_bytes, 126U);
  const std::uint64_t huge[] = {UINT64_MAX, 1, 0};
  EXPECT_GE(synthetic_work(kernel, std::as_bytes(std::span(huge)), 1'000'000)->lane_instructions, UINT64_MAX / 2);
}

TEST(SyntheticKernel, OthersAreExecuted) {
  const std::uint64_t counts[] = {1, 2, 0};
  ptx::KernelInfo plain = synthetic_kernel();
  plain.name = "charge";
  EXPECT_FALSE(synthetic_work(plain, std::as_bytes(std::span(counts)), 3));
  ptx::KernelInfo narrow = synthetic_kernel();
  narrow.parameters = {{0, 4}, {4, 4}};
  EXPECT_FALSE(synthetic_work(narrow, std::as_bytes(std::span(counts)), 3));
  ptx::KernelInfo bare = synthetic_kernel();
  bare.parameters.resize(1);
  EXPECT_FALSE(synthetic_work(bare, std::as_bytes(std::span(counts)), 3));
}

}  // namespace
}  // namespace softgpu
