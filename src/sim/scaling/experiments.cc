#include "sim/scaling/experiments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/scaling/packing_runs.h"
#include "sim/shares/share_sets.h"

namespace fairlead::sim {
namespace {

using Rows = std::vector<ScalingRow>;

struct Contestant {
  const char* name;
  PackerOptions packer;
};

std::vector<Contestant> packers(const ScalingOptions& options) {
  const PackerOptions base = {
      .most_free_rectangles = options.threshold, .most_moves = 0, .move_price = options.move_price};
  std::vector<Contestant> all = {{"rectangles", base}, {"rebuilt", base}, {"exact", base}, {"exact, moves", base}};
  all[0].packer.rule = PackingRule::kRectangles;
  all[1].packer.rule = PackingRule::kRebuilt;
  all[3].packer.most_moves = 2;
  return all;
}

Result<Rows> orders(const ScalingOptions& options) {
  Rows rows;
  for (const Contestant& one : packers(options)) {
    if (one.packer.most_moves > 0) continue;  // nobody leaves, and there is one device
    const Orders found = papers_orders(one.packer, options.reserve_percent);
    rows.push_back({.experiment = "orders",
                    .contestant = one.name,
                    .workload = "paper's eight",
                    .numbers = {{"orders", found.orders}, {"all_placed", found.all_placed}}});
  }
  return rows;
}

constexpr double kAreaInUse = 11;  // devices of area that the instances of a churn ask for in the mean

// As many instances as make some eleven devices of area, whatever the mix.
double instances_of(const std::string& mix) {
  Rng rng(1);
  constexpr int kSamples = 10'000;
  double area = 0;
  for (int i = 0; i < kSamples; ++i) {
    const PacedShare share = random_share(mix, rng);
    area += share.width_percent * share.request_percent / 1e4;
  }
  return std::round(kAreaInUse * kSamples / area);
}

Result<Rows> churns(const ScalingOptions& options) {
  Rows rows;
  for (const std::string& mix : options.mixes) {
    const auto known = share_mixes();
    if (std::find(known.begin(), known.end(), mix) == known.end()) {
      return fail(Errc::kInvalidArgument, "mix is \"{}\", it must be one of {}", mix, fmt::join(known, ", "));
    }
    double of_paper = 0;
    for (const Contestant& one : packers(options)) {
      ScalingRow row{.experiment = "churn", .contestant = one.name, .workload = mix};
      double devices = 0, least = 0, moves = 0;
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        const Churn found = churn({.packer = one.packer,
                                   .mix = mix,
                                   .live = instances_of(mix),
                                   .events = options.events,
                                   .idle_part = options.idle_part,
                                   .room = {.reserve_percent = options.reserve_percent},
                                   .seed = seed});
        const auto seeds = static_cast<double>(options.seeds);
        devices += found.devices / seeds;
        least += found.least_devices / seeds;
        moves += found.moves_per_event / seeds;
        row.state_hash = row.state_hash * 31 + found.state_hash;
      }
      if (rows.empty() || rows.back().workload != mix) of_paper = devices;
      row.numbers = {{"devices", devices},
                     {"of_rectangles", devices / of_paper},
                     {"of_bound", devices / least},
                     {"moves_per_event", moves}};
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

struct Experiment {
  std::string_view name;
  Result<Rows> (*run)(const ScalingOptions&);
};
constexpr Experiment kExperiments[] = {{"orders", orders}, {"churn", churns}};

}  // namespace

std::vector<std::string_view> scaling_experiments() {
  std::vector<std::string_view> names;
  for (const Experiment& one : kExperiments) names.push_back(one.name);
  return names;
}

Result<std::vector<ScalingRow>> run_scaling(std::string_view experiment, const ScalingOptions& options) {
  for (const Experiment& one : kExperiments) {
    if (one.name == experiment) return one.run(options);
  }
  return fail(Errc::kInvalidArgument, "experiment is \"{}\", it must be one of {}", experiment,
              fmt::join(scaling_experiments(), ", "));
}

}  // namespace fairlead::sim
