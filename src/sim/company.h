// How much do invocations slow each other down, and how long would each have run alone? Learnt from when they ran.
//
// Idea. A run is known by the time it spent in company: so long alone on its device, so long as one of two, of three. If
// each of k advances at 1 / slowdown(k) (gpu_model.h), a run's work is the sum of those times over their slowdowns, and
// what a function has to do does not depend on who else runs. So the slowdowns are those under which the work of each
// function varies least, relative to its mean.
//
// Example: runs of f took 20 ms alone, and 30 ms of which 20 were beside another. Were the slowdown 1, the second had
// 30 ms of work; at 2 it had 10 + 20 / 2 = 20 ms, as the first: the slowdown is 2.
//
// Time: given. Determinism: the same runs give the same numbers, on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

inline constexpr std::size_t kMostCompany = 8;  // more at a time count as so many

struct TimedRun {
  std::size_t function = 0;
  std::uint64_t gpu = 1;
  Instant begin, end;
  bool is_typical =
      true;  // false: company for others, but not like other runs of its function (the first after a start)
  std::array<Duration, kMostCompany> in_company{};  // found by find_company: [k - 1] as one of k
};

// Fills in TimedRun::in_company. Any order.
void find_company(std::vector<TimedRun>& runs);

// slowdown[k - 1] of each of k, from 1.0 up, never falling; where runs say nothing of k the device is taken to be shared
// out. As many as the greatest company seen. REQUIRES: find_company().
std::vector<double> learn_slowdown(const std::vector<TimedRun>& runs);

// Alone on the device.
Duration work_of(const TimedRun& run, const std::vector<double>& slowdown);

}  // namespace fairlead::sim
