#include "sim/scaling/size_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"

namespace fairlead::sim {
namespace {

constexpr int kParts = 400;
constexpr int kMostInstances = 64;
constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<InstanceSize> usable_sizes(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms) {
  std::vector<InstanceSize> kept;
  for (const InstanceSize& one : sizes) {
    if (why_unusable(one, terms).empty()) kept.push_back(one);
  }
  return kept;
}

// What a request costs at the least, where area counts `weight` and memory the rest.
double least_cost_per_request(const FunctionShape& shape, double weight) {
  const FunctionTerms terms = terms_of(shape);
  double least = kNever;
  for (const InstanceSize& one : usable_sizes(fine_grid(shape.model), terms)) {
    least = std::min(least, (weight * one.area() + (1 - weight) * terms.memory_part()) / one.rate_per_s);
  }
  return least;
}

double fluid_bound(const std::vector<double>& rates) {
  double best = 0;
  for (int percent = 0; percent <= 100; percent += 5) {
    double sum = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      sum += rates[i] * least_cost_per_request(function_shapes()[i], percent / 100.0);
    }
    best = std::max(best, sum);
  }
  return best;
}

// Rates at which a function's work fills some part of a device.
double rate_for(const FunctionShape& shape, double devices) {
  return devices / least_cost_per_request(shape, 1);
}

}  // namespace

SizeChoice choose_sizes(std::string_view choice, const FunctionShape& shape, double rate_per_s) {
  const FunctionTerms terms = terms_of(shape);
  if (choice == "printed") return printed_choice(coarse_grid(shape.model), rate_per_s, terms);
  if (choice == "filtered") return filtered_choice(coarse_grid(shape.model), rate_per_s, terms);
  FL_CHECK(choice == "cheapest", "choice of sizes is {}", choice);
  return cheapest_choice(fine_grid(shape.model), rate_per_s, terms);
}

double exact_devices(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms, double rate_per_s) {
  const std::vector<InstanceSize> usable = usable_sizes(sizes, terms);
  std::vector<double> area(kParts + 1, kNever);  // least, of n instances that answer as many parts of the rate
  area[0] = 0;
  double best = kNever;
  for (int n = 1; n <= kMostInstances && n * terms.memory_part() < best; ++n) {
    std::vector<double> next(kParts + 1, kNever);
    for (const InstanceSize& one : usable) {
      const int covers = static_cast<int>(std::ceil(one.rate_per_s / rate_per_s * kParts - 1e-9));
      for (int part = 0; part <= kParts; ++part) {
        double& cell = next[static_cast<std::size_t>(part)];
        cell = std::min(cell, area[static_cast<std::size_t>(std::max(0, part - covers))] + one.area());
      }
    }
    area = std::move(next);
    best = std::min(best, std::max(area[kParts], n * terms.memory_part()));
  }
  return best;
}

StaticCosts static_costs(std::string_view choice, const FunctionShape& shape) {
  constexpr int kRates = 20;
  StaticCosts costs;
  for (int i = 0; i < kRates; ++i) {
    const double rate = rate_for(shape, 0.2 * std::pow(20.0, i / (kRates - 1.0)));
    const double devices = choose_sizes(choice, shape, rate).devices;
    costs.of_exact += devices / exact_devices(fine_grid(shape.model), terms_of(shape), rate) / kRates;
    costs.of_printed += devices / choose_sizes("printed", shape, rate).devices / kRates;
  }
  return costs;
}

ClusterDevices cluster_devices(std::string_view choice, PackingRule packing, int rounds, std::uint64_t seed) {
  Rng rng(seed);
  ClusterDevices found;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> rates;
    std::vector<PackedInstance> all;
    for (const FunctionShape& shape : function_shapes()) {
      rates.push_back(rate_for(shape, 0.5 + 4.5 * rng.uniform()));
      for (const SizedCount& one : choose_sizes(choice, shape, rates.back()).sizes) {
        for (int i = 0; i < one.instances; ++i) {
          PackedInstance made;
          made.id = InstanceId(all.size() + 1);
          made.share.width_percent = one.size.width_percent;
          made.share.request_percent = one.size.quota_percent;
          made.share.memory = shape.memory;
          all.push_back(made);
        }
      }
    }
    // The largest first, for every packer: all are known at once here.
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.share.width_percent * a.share.request_percent > b.share.width_percent * b.share.request_percent;
    });
    Packer packer({.rule = packing, .most_moves = 0});
    for (const PackedInstance& one : all) {
      if (packer.devices().size() == packer.devices_in_use()) {
        packer.add_device(GpuId(packer.devices().size() + 1), {.memory = kDeviceMemory, .reserve_percent = 0});
      }
      packer.place(one);
    }
    found.devices += static_cast<double>(packer.devices_in_use()) / rounds;
    found.bound += fluid_bound(rates) / rounds;
  }
  return found;
}

}  // namespace fairlead::sim
