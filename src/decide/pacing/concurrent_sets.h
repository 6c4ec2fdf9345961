// The least time in which a device can give every instance its quota: which instances run side by side, and how long.
//
// Idea. Tokens can be taken back and SMs are interchangeable, so no rectangle has to stay in one place: instances fit where a fractional
// schedule of concurrent sets does. A concurrent set holds instances whose widths add up to 100 % at most; x_S is the time that set S
// runs. The least time is the linear program
//
//   minimise  sum of x_S      so that  sum of x_S over the sets with i in them = quota of i, for every instance i
//
// There are too many sets to write down. The simplex method needs one at a time: the set whose members' prices (the dual values) add up
// to most, which is a knapsack over 100 % of the SMs (column generation, Gilmore and Gomory 1961). When no set's prices exceed 1, the
// prices prove that no schedule is shorter.
//
// Instances that are alike in width and quota are one row, and a set says how many of them it holds. That loses nothing: by turns each of
// them gets the same.
//
// Example (FaST-GShare section 5): four instances of 12 % of the SMs and 40 % of the time, two of 24 and 40, two of 50 and 60. Three rows.
// The two of 50 side by side for 60 % of the time, then the six others, 96 % wide, for 40 %: the least time is 100 %. Maximal rectangles
// find room for all eight in a third of their orders of arrival.
//
// Cost: an iteration is a knapsack (instances x 100 additions) and an update of a square matrix (rows squared); 12 instances take some
// tens of microseconds, 48 different ones somewhat less than a millisecond (admission_bench).
//
// Pure. Determinism: the same rows in the same order give the same schedule.
#pragma once

#include <cstddef>
#include <vector>

namespace fairlead {

// Instances that are alike.
struct QuotaRow {
  int width_percent = 100;  // of the SMs, 1-100
  int quota_percent = 0;    // of the time, 1-100
  int instances = 1;        // at least 1
  auto operator<=>(const QuotaRow&) const = default;
};

struct ConcurrentSet {
  std::vector<int> instances;  // of each row
  double percent = 0;          // of the time
};

struct LeastTime {
  double percent = 0;               // of the time; above 100: they do not fit
  std::vector<ConcurrentSet> sets;  // a schedule of that length
  std::vector<double> prices;       // of one instance of each row: the proof, where the search went on to its end
  int iterations = 0;
  bool is_least = false;  // false: the search ended early, at `enough` or at kMostIterations
};

// A bound for sets of instances that make the numbers degenerate; never met in any test. What was found is a schedule all the same.
inline constexpr int kMostIterations = 10'000;

// The search ends as soon as a schedule of `enough` per cent is found. Empty rows: 0.
LeastTime least_time(const std::vector<QuotaRow>& rows, double enough);

}  // namespace fairlead
