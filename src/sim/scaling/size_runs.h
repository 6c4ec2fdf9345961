// Choices of sizes side by side, without time: what a function costs, and what a cluster needs.
//
//   static    one function at 20 rates, from a fifth of a device to some four: what each choice costs over an exact optimum
//   cluster   random rates of all six shapes, placed on devices: devices in use over the fluid bound
//
// The exact optimum is a dynamic program over the number of instances and the rate in 1/400 parts, rounded in its favour. The fluid bound
// is the best of w x area + (1 - w) x memory over w, with parts of instances allowed: no choice of sizes and no packing is below it.
//
// Pure. Determinism: of the options.
#pragma once

#include <string_view>
#include <vector>

#include "decide/packing/packer.h"
#include "sim/shares/function_shapes.h"

namespace fairlead::sim {

// printed, filtered (both on the paper's grid), cheapest. REQUIRES: one of these.
SizeChoice choose_sizes(std::string_view choice, const FunctionShape& shape, double rate_per_s);

// Devices that an exact optimum over `sizes` costs, or less.
double exact_devices(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms, double rate_per_s);

struct StaticCosts {
  double of_exact = 0, of_printed = 0;  // means over the rates
};
StaticCosts static_costs(std::string_view choice, const FunctionShape& shape);

struct ClusterDevices {
  double devices = 0, bound = 0;  // means over the rounds
};
ClusterDevices cluster_devices(std::string_view choice, PackingRule packing, int rounds, std::uint64_t seed);

}  // namespace fairlead::sim
