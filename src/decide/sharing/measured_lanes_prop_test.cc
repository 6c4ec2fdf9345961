// The lanes of random tasks on random devices: within their bounds whatever happens, more where more fits beside each other, and
// a repetition gives the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "decide/sharing/measured_lanes.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// Ends in any order, failures, tasks that go, times that go anywhere.
RC_GTEST_PROP(MeasuredLanes, StayWithinTheirBounds, ()) {
  const auto least = *rc::gen::inRange<std::size_t>(1, 5);
  const auto most = *rc::gen::inRange<std::size_t>(least, 13);
  MeasuredLanes lanes({.least = least, .most = most});
  std::vector<InvocationId> running;
  Instant now(1s);
  std::uint64_t next = 1;
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 10), rc::gen::inRange(0, 100'000'000)));
  for (const auto& [what, amount] : steps) {
    now += Duration(amount);
    if (what < 4) {
      running.emplace_back(next++);
      lanes.begin(now, running.back(), FlowId(1 + amount % 3));
    } else if (what == 9) {
      lanes.forget(FlowId(1 + amount % 3));
    } else if (!running.empty()) {
      const auto one = running.begin() + amount % std::ssize(running);
      what < 8 ? lanes.end(now, *one) : lanes.abandon(now, *one);
      running.erase(one);
    }
    RC_ASSERT(lanes.lanes() >= least && lanes.lanes() <= most);
    RC_ASSERT(lanes.running() == running.size());
  }
}

// Poisson arrivals for three tasks of different lengths whose kernels vary, on a device that runs so many at once. Returns the
// lanes in the second half of the time, for most calls: now and then one more is tried.
std::size_t lanes_on(double at_once, double load, double noise, std::uint64_t seed) {
  struct Running {
    InvocationId call;
    double left;
  };
  MeasuredLanes lanes({});
  Rng rng(seed);
  std::vector<Running> running;
  std::vector<std::size_t> seen;
  const double kAlone[] = {20e6, 40e6, 80e6};
  double now = 0, due = 0;
  std::size_t waiting = 0;
  std::uint64_t next = 1;
  const auto at = [](double ns) { return Instant(Duration(static_cast<Duration::rep>(ns))); };
  for (int ends = 0; ends < 4000;) {
    const double slowdown = std::max(1.0, static_cast<double>(running.size()) / at_once);
    const auto first =
        std::min_element(running.begin(), running.end(), [](auto& a, auto& b) { return a.left < b.left; });
    const double end = first == running.end() ? INFINITY : now + first->left * slowdown;
    const double until = std::min(end, due);
    for (Running& one : running) one.left -= (until - now) / slowdown;
    now = until;
    if (end <= due) {
      lanes.end(at(now), first->call);
      running.erase(first);
      if (++ends > 2000) seen.push_back(lanes.lanes());
    } else {
      ++waiting;
      due = now + rng.exponential(140e6 / 3 / at_once / load);
    }
    for (; waiting > 0 && running.size() < lanes.lanes(); --waiting) {
      const std::uint64_t task = 1 + rng.below(3);
      running.push_back({InvocationId(next), kAlone[task - 1] * (1 + noise * (2 * rng.uniform() - 1))});
      lanes.begin(at(now), InvocationId(next++), FlowId(task));
    }
  }
  std::nth_element(seen.begin(), seen.begin() + 1000, seen.end());
  return seen[1000];
}

// All that run for nothing are open, and none that the device cannot use. The one between pays or not by what it adds.
RC_GTEST_PROP(MeasuredLanes, FollowWhatRunsAtOnce, ()) {
  const double at_once = 1 + *rc::gen::inRange(0, 50) / 10.0;
  const double noise = *rc::gen::inRange(0, 11) / 100.0;
  const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
  const std::size_t lanes = lanes_on(at_once, 1.5, noise, seed);
  const auto whole = static_cast<std::size_t>(std::floor(at_once + 1e-9));
  RC_ASSERT(lanes >= std::max<std::size_t>(2, whole));
  RC_ASSERT(lanes <= std::max<std::size_t>(2, static_cast<std::size_t>(std::ceil(at_once))));
  RC_ASSERT(lanes == lanes_on(at_once, 1.5, noise, seed));
}

// Twice the device, never fewer lanes.
RC_GTEST_PROP(MeasuredLanes, GrowWithTheDevice, ()) {
  const double at_once = 1 + *rc::gen::inRange(0, 25) / 10.0;
  const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
  RC_ASSERT(lanes_on(at_once, 1.2, 0.05, seed) <= lanes_on(2 * at_once, 1.2, 0.05, seed));
}

}  // namespace
}  // namespace fairlead
