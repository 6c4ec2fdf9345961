// The books that residency keeps as its records change, against their sums, under random events in any order.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "decide/residency/residency.h"

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
    residency_.check_books();
    for (std::uint64_t i = 1; i <= kInstances; ++i) {
      if (const RecordState* state = residency_.state(InstanceId(i))) visited_.insert(state->text());
    }
  }
  std::size_t decided() const { return decided_; }
  const std::set<std::string>& visited() const { return visited_; }

 private:
  Bytes up_to(std::int64_t most) {
    return gib(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most))));
  }

  void event(InstanceId id) {
    const RecordState* state = residency_.state(id);
    switch (rng_.below(14)) {
      case 0:
        if (state == nullptr) {
          residency_.add(now_, id, FlowId(1 + rng_.below(kFlows)), GpuId(1 + rng_.below(kGpus)), gib(2));
        }
        break;
      case 1:
        if (state != nullptr && state->idle()) residency_.run(now_, id, gib(3));
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
      case 9: residency_.device_used(GpuId(1 + rng_.below(kGpus)), up_to(8)); break;
      case 10: residency_.ready(id); break;
      case 11: residency_.started(now_, id); break;
      case 12:
        residency_.called(FlowId(1 + rng_.below(kFlows)),
                          {.mean = Duration(1 + rng_.below(20'000'000'000)), .last = now_});
        break;
      default:  // seldom, so that they live to be in many states
        const std::uint64_t end = rng_.below(8);
        if (end == 0) residency_.stopping(now_, id);
        if (end == 1) residency_.gone(id);
    }
  }

  Rng rng_;
  RandomDemand demand_{rng_};
  Residency residency_{{}, std::make_unique<LruSwap>(), demand_};
  Instant now_{};
  std::size_t decided_ = 0;
  std::set<std::string> visited_;  // states of records
};

TEST(ResidencyProperties, BooksAreTheSumsOfTheRecords) {
  std::size_t decided = 0;
  std::set<std::string> visited;
  EXPECT_TRUE(rc::check("what is kept is what a walk over the records gives", [&](std::uint64_t seed) {
    Driver driver(seed);
    for (int i = 0; i < 400; ++i) driver.step();
    decided += driver.decided();
    visited.insert(driver.visited().begin(), driver.visited().end());
  }));
  EXPECT_GT(decided, 1000u);
  EXPECT_GT(visited.size(), 60u) << "of the 198 that a record can be in";
}

}  // namespace
}  // namespace fairlead
