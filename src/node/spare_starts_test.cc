// What a scaler asks for, and what of it starts: what is needed at once, spares one at a time and within bounds.
#include "node/spare_starts.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::HasSubstr;

ScalingDecision asks(int needed, int firsts, int spares, int returns = 0) {
  ScalingDecision made{.steps = {}, .needed = needed, .saw = "", .rejected = {}};
  made.steps.insert(made.steps.end(), static_cast<std::size_t>(firsts), {ScalingVerb::kStart, {}, {}});
  made.steps.insert(made.steps.end(), static_cast<std::size_t>(spares), {ScalingVerb::kStartParked, {}, {}});
  made.steps.insert(made.steps.end(), static_cast<std::size_t>(returns), {ScalingVerb::kReturn, InstanceId(1), {}});
  return made;
}

ScalerView has(std::size_t ready, std::size_t starting = 0) {
  ScalerView view;
  view.instances.resize(ready, {.stage = InstanceStage::kReady});
  view.instances.resize(ready + starting, {.stage = InstanceStage::kStarting});
  return view;
}

InstanceView on(std::uint64_t gpu, bool entitled) {
  InstanceView view{};
  view.gpu = GpuId(gpu);
  view.entitled = entitled;
  return view;
}

SpareRoom room() {
  return {.parked = 0, .serving = 2, .pool = 32, .device_memory = gib(16), .with_room = {GpuId(1), GpuId(2)}};
}

TEST(AllowedStarts, WhatIsNeededStartsAtOnceAndSparesWait) {
  EXPECT_EQ(allowed_starts(asks(5, 0, 9), has(2), {}, room()).allowed, 3u);
  EXPECT_EQ(allowed_starts(asks(0, 1, 4), has(0), {}, room()).allowed, 1u) << "the first";
  EXPECT_FALSE(allowed_starts(asks(5, 0, 9), has(2), {}, room()).spare_on);
}

TEST(AllowedStarts, ASpareGoesWhereTheFunctionHasFewestAndParkedOnesAreLentSeats) {
  const auto made = allowed_starts(asks(2, 0, 3), has(3), {on(1, true), on(1, true), on(2, false)}, room());
  EXPECT_EQ(made.spare_on, GpuId(2));
  EXPECT_EQ(made.allowed, 2u) << "the parked one takes one of them";
}

TEST(AllowedStarts, NoSpareBesideAStartAReturnOrAQueue) {
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), has(2, 1), {}, room()).allowed, 0u);
  EXPECT_EQ(allowed_starts(asks(2, 0, 3, 1), has(3), {}, room()).allowed, 0u);
  ScalerView view = has(3);
  view.waiting = 1;
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), view, {}, room()).allowed, 0u);
  SpareRoom soon = room();
  soon.is_due = false;
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), has(3), {}, soon).allowed, 0u);
}

TEST(AllowedStarts, SparesAreBoundedByContextsAndByThePool) {
  SpareRoom full = room();
  full.parked = 10;  // a tenth of 16 GiB holds five contexts of 300 MiB, on each of two
  EXPECT_THAT(allowed_starts(asks(2, 0, 3), has(3), {}, full).refused,
              HasSubstr("10 parked instances are the most on 2 GPUs"));
  full.parked = 9;
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), has(3), {}, full).allowed, 1u);
  full.pool = 8;
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), has(3), {}, full).allowed, 0u) << "a quarter of it";
  full = room();
  full.with_room.clear();
  EXPECT_EQ(allowed_starts(asks(2, 0, 3), has(3), {}, full).allowed, 0u);
}

}  // namespace
}  // namespace fairlead
