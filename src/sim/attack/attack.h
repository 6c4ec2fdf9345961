// The adversary of the default policy: searches a family of workloads for those that the node's scheduler serves worst
// beside FCFS and beside the MQFQ-Sticky paper's (comparison.h), in all measures at once.
//
// Threads: attack() uses several. Determinism: the same options give the same result on any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/attack/comparison.h"

namespace fairlead::sim {

struct AttackOptions {
  std::string family;
  std::size_t evaluations = 2000;
  std::uint64_t seed = 1;  // of the search; every workload runs with seed 1
  unsigned threads = 0;    // 0: as many as there are cores
};

// One workload that was tried.
struct Attack {
  std::string family;
  std::vector<double> powers;            // workload_family.h
  std::array<double, kRatios> ratios{};  // by Measure, then Rival
  std::size_t late_flows = 0;            // within their share, and waited beyond what they may

  double ratio(Measure measure, Rival rival) const;
  double worst_ratio(Measure measure) const;
  // How far beyond the bounds (comparison.h): the greatest of mean and p99, each over its bound. 1: just within.
  double severity() const;
};

// All that were tried, in order. kNotFound names the families.
Result<std::vector<Attack>> attack(const AttackOptions& options, const std::function<void(double)>& progress);

// REQUIRES: not empty. The first of equals.
const Attack& worst_of(const std::vector<Attack>& tried, Measure measure, Rival rival);
// The most severe, at most `count`, first the worst.
std::vector<Attack> most_severe(std::vector<Attack> tried, std::size_t count);

// The workload as a scenario file that `fairlead sim` runs; a comment says how bad it was.
std::string attack_toml(const Attack& attack);

}  // namespace fairlead::sim
