// The books that residency keeps as its records change, against their sums, under random events in any order.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "residency/residency.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFlows = 4, kGpus = 2, kInstances = 12;

class RandomDemand final : public ResidencyContext {
 public:
  explicit RandomDemand(Rng& rng) : rng_(rng) {}
  FlowDemand demand_of(FlowId) const override { return {static_cast<Claim>(rng_.below(3)), rng_.below(4)}; }
  InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const override {
    return idle[rng_.below(idle.size())];
  }

 private:
  Rng& rng_;
};

class Driver {
 public:
  explicit Driver(std::uint64_t seed) : rng_(seed) {
    for (std::uint64_t i = 1; i <= kGpus; ++i) residency_.add_gpu(GpuId(i), gib(8));
    for (std::uint64_t i = 1; i <= kFlows; ++i) residency_.add_function(FlowId(i), gib(2));
  }

  void step() {
    now_ += Duration(rng_.below(3'000'000'000));
    event(InstanceId(1 + rng_.below(kInstances)));
    residency_.check_books();
    ResidencyDecisions decisions;
    residency_.settle(now_, decisions);
    decided_ += decisions.size();
    for (const ResidencyDecision& decision : decisions) {
      if (const auto* stop = std::get_if<StopIdle>(&decision)) stopping_[stop->instance.value()] = true;
      if (const auto* stop = std::get_if<GiveWay>(&decision)) stopping_[stop->instance.value()] = true;
    }
    residency_.check_books();
  }
  std::size_t decided() const { return decided_; }

 private:
  Bytes up_to(std::int64_t most) {
    return gib(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most))));
  }

  void event(InstanceId id) {
    const bool is_there = there_[id.value()];
    switch (rng_.below(12)) {
      case 0:
        if (!is_there) residency_.add(now_, id, FlowId(1 + rng_.below(kFlows)), GpuId(1 + rng_.below(kGpus)), gib(2));
        there_[id.value()] = true;
        break;
      case 1:
        if (is_there && residency_.use(id) != nullptr && !stopping_[id.value()]) residency_.run(now_, id, gib(3));
        break;
      case 2: residency_.rest(now_, id); break;
      case 3: residency_.report(id, {.held = gib(4), .resident = up_to(5), .away = up_to(3), .fixed = up_to(2)}); break;
      case 4:
      case 5:
        residency_.moved(now_, id, rng_.below(2) == 0 ? MoveDirection::kIn : MoveDirection::kOut,
                         static_cast<MoveOutcome>(rng_.below(6)));
        break;
      case 6: residency_.needs_room(now_, id, rng_.below(3), up_to(6)); break;
      case 7: residency_.wants_memory(id); break;
      case 8: residency_.expire(now_); break;
      case 10: residency_.ready(id); break;
      case 9: residency_.device_used(GpuId(1 + rng_.below(kGpus)), up_to(8)); break;
      default:
        if (rng_.below(2) == 0) {
          residency_.stopping(now_, id);
          stopping_[id.value()] = true;
        } else {
          residency_.gone(id);
          there_[id.value()] = stopping_[id.value()] = false;
        }
    }
  }

  Rng rng_;
  RandomDemand demand_{rng_};
  Residency residency_{{}, std::make_unique<LruSwap>(), demand_};
  Instant now_{};
  bool there_[kInstances + 1] = {};
  bool stopping_[kInstances + 1] = {};
  std::size_t decided_ = 0;
};

TEST(ResidencyProperties, BooksAreTheSumsOfTheRecords) {
  std::size_t decided = 0;
  EXPECT_TRUE(rc::check("what is kept is what a walk over the records gives", [&](std::uint64_t seed) {
    Driver driver(seed);
    for (int i = 0; i < 400; ++i) driver.step();
    decided += driver.decided();
  }));
  EXPECT_GT(decided, 1000u);
}

}  // namespace
}  // namespace fairlead
