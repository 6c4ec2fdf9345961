#include "shim/memory/residency_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace fairlead::shim::memory {
namespace {

using enum RegionAction;
using enum RegionEvent;

// Applies the events and returns the actions.
std::vector<RegionAction> actions(RegionState* state, const std::vector<RegionEvent>& events) {
  std::vector<RegionAction> all;
  for (const RegionEvent event : events) {
    const RegionStep next = step(*state, event);
    *state = next.state;
    all.push_back(next.action);
  }
  return all;
}

TEST(ResidencyState, GoesOutAndComesBack) {
  RegionState state;
  EXPECT_EQ(actions(&state, {kLeave, kCopied, kUnmapped}), (std::vector{kCopyOut, kUnmap, kNone}));
  EXPECT_EQ(state.residency, Residency::kAway);
  EXPECT_FALSE(state.mapped);
  EXPECT_EQ(actions(&state, {kReturn, kMapped, kCopied}), (std::vector{kMap, kCopyIn, kGiveStaging}));
  EXPECT_EQ(state.residency, Residency::kResident);
  EXPECT_TRUE(state.mapped);
}

TEST(ResidencyState, ACopyThatFailsLeavesItWhereItIsWhole) {
  RegionState state;
  EXPECT_EQ(actions(&state, {kLeave, kFailed}), (std::vector{kCopyOut, kGiveStaging}));
  EXPECT_EQ(state.residency, Residency::kResident);
  EXPECT_EQ(actions(&state, {kLeave, kCopied, kFailed}), (std::vector{kCopyOut, kUnmap, kGiveStaging}));
  EXPECT_EQ(state.residency, Residency::kResident);
  actions(&state, {kLeave, kCopied, kUnmapped});
  EXPECT_EQ(actions(&state, {kReturn, kFailed}), (std::vector{kMap, kNone}));
  EXPECT_EQ(state.residency, Residency::kAway);
  EXPECT_EQ(actions(&state, {kReturn, kMapped, kFailed, kUnmapped}), (std::vector{kMap, kCopyIn, kUnmap, kNone}));
  EXPECT_EQ(state.residency, Residency::kAway);
}

TEST(ResidencyState, WhatIsFixedDoesNotLeave) {
  RegionState state = {.fixed = true};
  EXPECT_EQ(actions(&state, {kLeave}), (std::vector{kRefuse}));
}

TEST(ResidencyState, WhatWasNeverOnTheDeviceReturnsWithoutACopy) {
  RegionState state = {.residency = Residency::kAway, .empty = true, .mapped = false};
  EXPECT_EQ(actions(&state, {kReturn, kMapped}), (std::vector{kMap, kNone}));
  EXPECT_EQ(state.residency, Residency::kResident);
  EXPECT_FALSE(state.empty);
}

TEST(ResidencyState, FreedOnTheWayItGoesWhenTheStepIsDone) {
  RegionState state;
  EXPECT_EQ(actions(&state, {kLeave, kFreed, kFreed, kCopied, kUnmapped}),
            (std::vector{kCopyOut, kNone, kRefuse, kUnmap, kDispose}));
  EXPECT_EQ(state.residency, Residency::kGone);
  state = {};
  EXPECT_EQ(actions(&state, {kLeave, kFreed, kFailed}), (std::vector{kCopyOut, kNone, kDispose}));
  state = {};
  EXPECT_EQ(actions(&state, {kFreed, kLeave}), (std::vector{kDispose, kRefuse}));
}

// Whatever happens in whatever order, contents are whole somewhere, and what is gone stays gone.
RC_GTEST_PROP(ResidencyStateProperty, ContentsAreAlwaysWholeSomewhere, ()) {
  RegionState state;
  bool on_device = true, on_host = false;
  RegionAction wanted = kNone;
  for (int i = 0; i < 40 && state.residency != Residency::kGone; ++i) {
    const auto event = static_cast<RegionEvent>(*rc::gen::inRange(0, 7));
    // What has happened can only be what was asked for.
    if (event == kCopied && wanted != kCopyOut && wanted != kCopyIn) continue;
    if (event == kMapped && wanted != kMap) continue;
    if (event == kUnmapped && wanted != kUnmap) continue;
    if (event == kCopied) (wanted == kCopyOut ? on_host : on_device) = true;
    if (event == kUnmapped) on_device = false;
    const RegionStep next = step(state, event);
    if (next.action == kRefuse) {
      RC_ASSERT(next.state.residency == state.residency);
      continue;
    }
    state = next.state;
    if (event != kFreed) wanted = next.action;
    if (next.action == kGiveStaging) on_host = false;
    RC_ASSERT(on_device || on_host);
    if (state.residency == Residency::kResident) RC_ASSERT(on_device && state.mapped);
    if (state.residency == Residency::kAway) RC_ASSERT(on_host && !state.mapped);
  }
}

}  // namespace
}  // namespace fairlead::shim::memory
