#include "decide/sharing/dynamic_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 200ms;

// Periods with one and the same sample, in which every slot is in use. Returns the slots after the last.
class Controller {
 public:
  explicit Controller(std::size_t max) : slots_(max) {}

  std::size_t hold(double utilisation, Duration duration) {
    for (const Instant end = now_ + duration; now_ < end;) step(utilisation);
    return slots_.slots();
  }
  void step(double utilisation) {
    now_ += kPeriod;
    sample_.utilisation = utilisation;
    if (all_in_use_) sample_.slots_in_use = slots_.slots();
    slots_.update(now_, sample_);
  }

  DynamicSlots slots_;
  Instant now_ = Instant(100s);
  DynamicSlots::Sample sample_{.waiting = true};
  bool all_in_use_ = true;
};

TEST(DynamicSlots, GrowOneAtATimeWhileUtilisationLeavesHeadroom) {
  Controller c(4);  // up to 0.65
  EXPECT_EQ(c.hold(0.5, 200ms), 2u);
  EXPECT_EQ(c.hold(0.5, 800ms), 2u) << "not before the step can be seen";
  EXPECT_EQ(c.hold(0.5, 200ms), 3u);
  EXPECT_EQ(c.hold(0.5, 10s), 4u) << "and no further";
}

TEST(DynamicSlots, StayWithinTheBand) {
  Controller c(4);
  c.all_in_use_ = false;
  c.hold(0.8, 5s);  // nothing in use: the average settles
  c.all_in_use_ = true;
  EXPECT_EQ(c.hold(0.8, 60s), 1u) << "no headroom";
  EXPECT_EQ(c.hold(0.6, 2s), 2u);
  EXPECT_EQ(c.hold(0.8, 60s), 2u) << "neither headroom nor saturation";
  EXPECT_EQ(c.hold(1.0, 5s), 1u);
}

TEST(DynamicSlots, GrowOnlyWhatBinds) {
  Controller idle(4);
  idle.sample_.waiting = false;
  EXPECT_EQ(idle.hold(0.1, 60s), 1u);
  Controller spare(4);
  spare.hold(0.1, 200ms);
  spare.all_in_use_ = false;
  spare.sample_.slots_in_use = 1;
  EXPECT_EQ(spare.hold(0.1, 60s), 2u);
}

TEST(DynamicSlots, MemoryIsTheSecondInput) {
  Controller c(8);
  c.sample_.memory_total = gib(16);
  c.sample_.memory_running = gib(9);  // of one: two do not fit
  EXPECT_EQ(c.hold(0.1, 10s), 1u);
  c.sample_.memory_running = gib(8);
  EXPECT_EQ(c.hold(0.1, 200ms), 2u);
  c.sample_.memory_running = gib(17);
  EXPECT_EQ(c.hold(0.1, 1s), 1u) << "what runs has outgrown the device";
}

TEST(DynamicSlots, AFailedStepIsTriedEverMoreRarely) {
  Controller c(8);
  std::vector<Duration> steps;
  std::size_t before = 1;
  const Instant start = c.now_;
  while (c.now_ < start + 600s) {
    c.step(c.slots_.slots() == 1 ? 0.6 : 1.0);
    if (c.slots_.slots() > before) steps.push_back(c.now_ - start);
    before = c.slots_.slots();
  }
  ASSERT_GE(steps.size(), 4u);
  for (std::size_t i = 2; i < steps.size(); ++i) {
    EXPECT_GE(steps[i] - steps[i - 1], steps[i - 1] - steps[i - 2] - 1s) << i;
  }
  EXPECT_LE(steps.size(), 13u) << "5 + 10 + 20 + 40 s, then every 80 s";
}

// Closed loop: `width` of the GPU per invocation, always more waiting than slots. Returns D once per period.
std::vector<std::size_t> closed_loop(std::size_t max, double width, Duration duration) {
  Controller c(max);
  std::vector<std::size_t> slots;
  for (const Instant end = c.now_ + duration; c.now_ < end;) {
    c.step(std::min(1.0, width * static_cast<double>(c.slots_.slots())));
    slots.push_back(c.slots_.slots());
  }
  return slots;
}

// Invocations of any width: D comes to rest at the largest that the threshold allows or one below, within 20 s, and
// spends at least 90 % of the minutes after it there.
TEST(DynamicSlots, ConvergeAndDoNotOscillate) {
  constexpr std::size_t kMax = 8;
  for (double width = 0.05; width <= 1.0; width += 0.05) {
    const std::vector<std::size_t> slots = closed_loop(kMax, width, 320s);
    const std::vector<std::size_t> settled(slots.begin() + 20s / kPeriod, slots.end());
    const std::size_t rest = [&] {
      std::vector<std::size_t> sorted = settled;
      std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
      return sorted[sorted.size() / 2];
    }();
    const auto fits = static_cast<std::size_t>(DynamicSlots::kThreshold / width + 1e-9);
    const std::size_t most = std::clamp<std::size_t>(fits, 1, kMax);
    EXPECT_LE(rest, most) << "width " << width;
    EXPECT_GE(rest + 1, most) << "width " << width;
    const auto at_rest = static_cast<std::size_t>(std::count(settled.begin(), settled.end(), rest));
    EXPECT_GE(at_rest * 10, settled.size() * 9) << "width " << width;
  }
}

TEST(DynamicSlots, FollowALoadThatChanges) {
  Controller c(8);
  c.hold(0.2, 20s);
  EXPECT_EQ(c.slots_.slots(), 8u);
  EXPECT_EQ(c.hold(1.0, 30s), 1u);
  EXPECT_EQ(c.hold(0.2, 40s), 8u);
}

}  // namespace
}  // namespace fairlead
