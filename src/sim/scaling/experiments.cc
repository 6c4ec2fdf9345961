#include "sim/scaling/experiments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "decide/scaling/load_predictor.h"
#include "sim/scaling/bursts.h"
#include "sim/scaling/packing_runs.h"
#include "sim/scaling/profiler_runs.h"
#include "sim/scaling/size_runs.h"
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

Result<Rows> static_sizes(const ScalingOptions&) {
  Rows rows;
  for (const char* choice : {"printed", "filtered", "cheapest"}) {
    for (const FunctionShape& shape : function_shapes()) {
      const StaticCosts costs = static_costs(choice, shape);
      rows.push_back({.experiment = "static",
                      .contestant = choice,
                      .workload = shape.name,
                      .numbers = {{"of_exact", costs.of_exact}, {"of_printed", costs.of_printed}}});
    }
  }
  return rows;
}

Result<Rows> clusters(const ScalingOptions& options) {
  Rows rows;
  for (const char* choice : {"printed", "filtered", "cheapest"}) {
    for (const PackingRule packing : {PackingRule::kRectangles, PackingRule::kExact}) {
      constexpr int kRounds = 10;
      const ClusterDevices found = cluster_devices(choice, packing, kRounds * static_cast<int>(options.seeds), 1);
      rows.push_back(
          {.experiment = "cluster",
           .contestant = fmt::format("{}, {}", choice, packing_rule_name(packing)),
           .workload = "six functions",
           .numbers = {{"devices", found.devices}, {"bound", found.bound}, {"of_bound", found.devices / found.bound}}});
    }
  }
  return rows;
}

struct BurstContestant {
  const char* name;
  const char* scaler;
  PackingRule packing;
  Duration least_period{0};
  bool borrows = true;
  double headroom = 1;
  double reserve_percent = 0;
  const char* predictor = "";  // else the options'
};
constexpr BurstContestant kBurstContestants[] = {
    {"algorithm1, rectangles", "algorithm1", PackingRule::kRectangles},
    {"algorithm1, 30 % more", "algorithm1", PackingRule::kRectangles, Duration(0), true, 1.3},
    {"has, rectangles", "has", PackingRule::kRectangles},
    {"fleet each second", "fleet", PackingRule::kExact, std::chrono::seconds(1)},
    {"fleet, nothing borrowed", "fleet", PackingRule::kExact, Duration(0), false},
    {"fleet, rectangles", "fleet", PackingRule::kRectangles},
    {"fleet, exact", "fleet", PackingRule::kExact},
    {"fleet, exact, 3 % kept back", "fleet", PackingRule::kExact, Duration(0), true, 1, 3},
    {"fleet, exact, Holt", "fleet", PackingRule::kExact, Duration(0), true, 1, 0, "holt"},
};

// ResNet, RNNT and BERT at rates that fill some two devices, and at twice these.
Result<Rows> burst_runs(const ScalingOptions& options) {
  if (const auto known = make_load_predictor(options.predictor); !known) return fail(known.error());
  Rows rows;
  constexpr std::pair<double, const char*> kSizes[] = {{0.1, "tenth"}, {1, "one"}, {2, "twice"}};
  for (const auto& [size, workload] : kSizes) {
    for (const BurstContestant& one : kBurstContestants) {
      ScalingRow row{.experiment = "bursts", .contestant = one.name, .workload = workload};
      std::vector<std::pair<std::string, double>> sums = {{"resnet_missed_percent", 0}, {"rnnt_missed_percent", 0},
                                                          {"bert_missed_percent", 0},   {"area_of_bound", 0},
                                                          {"devices_of_bound", 0},      {"parked", 0},
                                                          {"cold_per_minute", 0},       {"returns_per_minute", 0}};
      for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
        const auto& shapes = function_shapes();
        const BurstResult found =
            run_bursts({.scaler = one.scaler,
                        .predictor = one.predictor[0] == 0 ? options.predictor : one.predictor,
                        .headroom = one.headroom,
                        .packing = one.packing,
                        .functions = {{shapes[0], 200 * size}, {shapes[1], 20 * size}, {shapes[3], 40 * size}},
                        .reserve_percent = std::max(options.reserve_percent, one.reserve_percent),
                        .borrows = one.borrows,
                        .least_period = one.least_period,
                        .length = options.length,
                        .seed = seed});
        const double values[] = {found.missed_percent[0],      found.missed_percent[1], found.missed_percent[2],
                                 found.area_of_bound,          found.devices_of_bound,  found.parked,
                                 found.cold_starts_per_minute, found.returns_per_minute};
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second += values[i] / static_cast<double>(options.seeds);
        row.state_hash = row.state_hash * 31 + found.state_hash;
      }
      row.numbers = std::move(sums);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// The paper's figure 12: ResNet, whose load rises and falls within minutes. A row for each seed.
Result<Rows> ramp_runs(const ScalingOptions& options) {
  if (const auto known = make_load_predictor(options.predictor); !known) return fail(known.error());
  Rows rows;
  for (const BurstContestant& one : kBurstContestants) {
    if (one.predictor[0] != 0 || one.reserve_percent > 0) continue;
    for (std::uint64_t seed = 1; seed <= options.seeds; ++seed) {
      const BurstResult found = run_bursts({.scaler = one.scaler,
                                            .predictor = options.predictor,
                                            .headroom = one.headroom,
                                            .packing = one.packing,
                                            .shape = LoadShape::kRamps,
                                            .functions = {{function_shapes()[0], 100}},
                                            .borrows = one.borrows,
                                            .least_period = one.least_period,
                                            .length = options.length,
                                            .seed = seed});
      rows.push_back({.experiment = "ramp",
                      .contestant = one.name,
                      .workload = "resnet",
                      .numbers = {{"seed", static_cast<double>(seed)},
                                  {"missed_percent", found.missed_percent[0]},
                                  {"area_of_bound", found.area_of_bound},
                                  {"devices_of_bound", found.devices_of_bound},
                                  {"cold_per_minute", found.cold_starts_per_minute}},
                      .state_hash = found.state_hash});
    }
  }
  return rows;
}

Result<Rows> profilers(const ScalingOptions& options) {
  Rows rows;
  constexpr int kRuns = 100;
  for (const FunctionShape& shape : function_shapes()) {
    for (const bool fitted : {false, true}) {
      const ProfilerResult found = fitted ? fitted_profiles(shape, options.trial_error, kRuns, 1)
                                          : grid_profiles(shape, options.trial_error, kRuns, 1);
      rows.push_back({.experiment = "profiler",
                      .contestant = fitted ? "fitted" : "grid",
                      .workload = shape.name,
                      .numbers = {{"trials", found.trials},
                                  {"error_percent", found.error_percent},
                                  {"within_5_percent", found.within_percent}}});
    }
  }
  return rows;
}

struct Experiment {
  std::string_view name;
  Result<Rows> (*run)(const ScalingOptions&);
};
constexpr Experiment kExperiments[] = {{"orders", orders},     {"churn", churns},      {"static", static_sizes},
                                       {"cluster", clusters},  {"bursts", burst_runs}, {"ramp", ramp_runs},
                                       {"profiler", profilers}};

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
