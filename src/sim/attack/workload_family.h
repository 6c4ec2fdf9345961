// Families of workloads for the attack: one moderate base, and in each family some of its numbers scaled by a hundredth to
// a hundredfold. A workload of a family is a list of powers of ten, one for each number that the family scales.
//
// The base: the eight functions of the MQFQ-Sticky paper's Table 1 in three copies each, called at random at rates of
// Zipf's law, 0.8 of one device in all; half an hour; a pool of 12, two invocations at a time, 1.5 GiB a function.
//
// Threads: stateless. Determinism: pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/scenario.h"

namespace fairlead::sim {

inline constexpr double kLeastPower = -2, kMostPower = 2;

// "starts" (what a cold start takes), "run-times", "sizes" (memory), "bursts" (how many arrive at a time, and how gaps
// vary), "counts" (copies, calls and GPUs).
std::vector<std::string> workload_families();

// What the family scales, in the order of the powers: "cold_start_s of roberta". kNotFound names the families.
Result<std::vector<std::string>> scaled_by(const std::string& family);

// The workload as a scenario file (scenario.h), `head` as a comment before it. A run has 300 to 1,500 invocations, so its length
// depends on the rates. REQUIRES: as many powers as scaled_by() has numbers.
std::string workload_toml(const std::string& family, const std::vector<double>& powers, const std::string& head);

// The same, read.
Scenario workload_of(const std::string& family, const std::vector<double>& powers);

}  // namespace fairlead::sim
