#include "sim/pipelines/experiments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/pipelines/fleet.h"
#include "sim/pipelines/goodput.h"

namespace fairlead::sim {
namespace {

using Rows = std::vector<PipelineRow>;

std::uint64_t mixed(std::uint64_t hash, double value) {
  return (hash ^ static_cast<std::uint64_t>(std::llround(value * 1e6))) * 1099511628211u;
}

HopCosts hop_of(bool paper, const PipelineOptions& options) {
  return paper ? paper_hop(from_seconds(options.hop_ms / 1000)) : HopCosts{};
}

// ---- goodput

struct Planned {
  const char* name;
  const char* planner;
  bool paper_hop, recut;
};
constexpr Planned kPlanned[] = {{"esg", "esg", false, false},
                                {"infless", "infless", false, false},
                                {"cv, paper's hop", "cv", true, false},
                                {"cv", "cv", false, false},
                                {"need, paper's hop", "need", true, false},
                                {"exact, paper's hop", "exact", true, false},
                                {"need", "need", false, false},
                                {"exact", "exact", false, false},
                                {"replicas", "replicas", false, false},
                                {"replicas, re-sliced", "replicas", false, true}};

std::vector<Application> measured(const std::string& variant, bool random, std::uint64_t chains) {
  std::vector<Application> all;
  if (!random) {
    // The paper leaves out what runs on no slice as a whole: application 3, large.
    for (Application& one : applications(variant)) {
      if (!one.least.empty()) all.push_back(std::move(one));
    }
    return all;
  }
  for (std::uint64_t seed = 1; seed <= chains; ++seed) all.push_back(random_chain(variant, seed));
  return all;
}

Result<PipelineRow> goodput_row(const Planned& one, const std::string& workload, const std::string& partition,
                                const std::vector<Application>& all, const std::vector<double>& base,
                                const PipelineOptions& options) {
  PipelineRow row{.experiment = "goodput", .contestant = one.name, .workload = workload, .numbers = {}};
  double sum = 0, of_base = 0, of_bound = 0, late = 0, compute = 0, compared = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = goodput(all[i], {.partition = partition,
                                        .planner = one.planner,
                                        .hop = hop_of(one.paper_hop, options),
                                        .recut = one.recut,
                                        .steps = 1'000'000});
    if (!found) return fail(found.error());
    const double part = 1 / static_cast<double>(all.size());
    sum += found->rate_per_s * part;
    of_bound += found->bound_per_s > 0 ? found->rate_per_s / found->bound_per_s * part : 0;
    late += found->late_part * part;
    compute += found->compute_part * part;
    row.state_hash = mixed(row.state_hash, found->rate_per_s);
    if (base[i] <= 0) continue;
    of_base += std::log(std::max(1e-3, found->rate_per_s / base[i]));
    ++compared;
  }
  row.numbers = {{"per_second", sum},
                 {"of_esg", compared > 0 ? std::exp(of_base / compared) : 0},
                 {"of_bound", of_bound},
                 {"late_part", late},
                 {"compute_part", compute}};
  return row;
}

Result<Rows> goodputs(const PipelineOptions& options) {
  Rows rows;
  for (const std::string& variant : options.variants) {
    for (const std::string& partition : options.partitions) {
      for (const bool random : {false, true}) {
        const auto all = measured(variant, random, options.chains);
        if (all.empty())
          return fail(Errc::kInvalidArgument, "variant is \"{}\", it must be small, medium or large", variant);
        std::vector<double> base;
        for (const Application& one : all) {
          const auto found = goodput(one, {.partition = partition, .planner = "esg"});
          if (!found) return fail(found.error());
          base.push_back(found->rate_per_s);
        }
        const std::string workload = variant + " " + partition + (random ? " random" : "");
        for (const Planned& one : kPlanned) {
          auto row = goodput_row(one, workload, partition, all, base, options);
          if (!row) return fail(row.error());
          rows.push_back(std::move(*row));
        }
      }
    }
  }
  return rows;
}

Result<Rows> counterexample(const PipelineOptions& options) {
  Dag dag;
  dag.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {1}}};
  const int ms[3][3] = {{80, 44, 26}, {120, 66, 39}, {80, 52, 38}};
  const int memory[3] = {16, 9, 16};
  for (std::size_t i = 0; i < 3; ++i) {
    Component one;
    one.name = one.task = std::string(1, static_cast<char>('a' + i));
    one.inputs = {{.name = "x", .sources = {{i == 0 ? std::nullopt : std::optional(i - 1), 0}}}};
    one.outputs = {{.name = "y", .type = ElementType::kF32, .shape = {1}}};
    one.weights = one.peak = gib(memory[i]);
    const char* const slices[3] = {"1g", "2g", "4g"};
    for (std::size_t type = 0; type < 3; ++type) {
      one.times.push_back(
          {.slice = slices[type], .mean = std::chrono::milliseconds(ms[i][type]), .deviation = {}, .seen = 0});
    }
    dag.components.push_back(std::move(one));
  }
  dag.outputs = {{.name = "y", .from = {2, 0}}};
  const PipelineModel model(dag, paper_types(), paper_hop(from_seconds(options.hop_ms / 1000)));
  Rows rows;
  for (const auto* name : {"cv", "need", "exact"}) {
    const auto plan = (*planner_named(name))->one(model, {.free = {1, 1, 0, 1}});
    if (!plan) continue;
    rows.push_back({.experiment = "counterexample",
                    .contestant = name,
                    .workload = "4g + 2g + 1g",
                    .numbers = {{"per_second", plan->rate_per_s},
                                {"latency_ms", to_ms(plan->latency)},
                                {"compute", plan->compute}},
                    .state_hash = mixed(0, plan->rate_per_s)});
  }
  return rows;
}

Result<Rows> anytime(const PipelineOptions&) {
  Rows rows;
  constexpr std::uint64_t kLong = 2'000'000'000;
  for (const auto* planner : {"exact", "replicas"}) {
    for (const std::uint64_t steps : {std::uint64_t{100'000}, std::uint64_t{1'000'000}, std::uint64_t{4'000'000}}) {
      double worst = 1, mean = 0, of_bound = 0, count = 0;
      std::uint64_t hash = 0;
      for (std::uint64_t seed = 1; count < 10; ++seed) {
        const Application one = random_chain("large", seed);
        if (one.dag.components.size() != 5) continue;
        const GoodputOptions with{.partition = "p1", .gpus = 16, .planner = planner, .steps = steps};
        GoodputOptions longer = with;
        longer.steps = kLong;
        longer.planner = "exact";
        const auto quick = goodput(one, with), exact = goodput(one, longer);
        if (!quick || !exact) return fail(quick ? exact.error() : quick.error());
        const double part = exact->rate_per_s > 0 ? quick->rate_per_s / exact->rate_per_s : 1;
        worst = std::min(worst, part);
        mean += part;
        of_bound += quick->rate_per_s / quick->bound_per_s;
        hash = mixed(hash, quick->rate_per_s);
        ++count;
      }
      rows.push_back({.experiment = "anytime",
                      .contestant = planner,
                      .workload = fmt::format("{} steps, 5 components, 48 slices", steps),
                      .numbers = {{"of_exact", mean / count}, {"worst", worst}, {"of_bound", of_bound / count}},
                      .state_hash = hash});
    }
  }
  return rows;
}

// ---- fleets

struct System {
  const char* name;
  const char* planner;
  bool paper_hop;
  QueueOrder order;
  bool warm_starts;
  EvictionRule eviction;
  bool keeps_one_idle, migrates;
  double plan_objective;
};
using enum QueueOrder;
constexpr System kSystems[] = {
    {"paper, as printed", "cv", true, kDeadline, false, EvictionRule::kLru, false, true, 1},
    {"paper, late last", "cv", true, kLateLast, false, EvictionRule::kLru, false, true, 1},
    {"esg, as printed", "esg", false, kDeadline, false, EvictionRule::kLru, false, false, 1},
    {"infless, as printed", "infless", false, kDeadline, false, EvictionRule::kLru, false, false, 1},
    {"esg, late last, warm", "esg", false, kLateLast, true, EvictionRule::kCost, true, false, 1},
    {"cv, late last, warm, 1 ms", "cv", false, kLateLast, true, EvictionRule::kCost, true, true, 0.95},
    {"ours, cold starts", "need", false, kLateLast, false, EvictionRule::kCost, true, true, 0.95},
    {"ours, paper's hop", "need", true, kLateLast, true, EvictionRule::kCost, true, true, 0.95},
    {"ours, LRU", "need", false, kLateLast, true, EvictionRule::kLru, true, true, 0.95},
    {"ours, all of the gaps", "need", false, kLateLast, true, EvictionRule::kCost, false, true, 0.95},
    {"ours, as printed order", "need", false, kDeadline, true, EvictionRule::kCost, false, true, 0.95},
    {"ours", "need", false, kLateLast, true, EvictionRule::kCost, true, true, 0.95}};

FleetOptions fleet_options(const System& system, const PipelineOptions& options, std::uint64_t seed) {
  FleetOptions made;
  made.planner = system.planner;
  made.hop = hop_of(system.paper_hop, options);
  made.order = system.order;
  made.warm_starts = system.warm_starts;
  made.eviction = system.eviction;
  made.keeps_one_idle = system.keeps_one_idle;
  made.migrates = system.migrates;
  made.plan_objective = system.plan_objective;
  made.burstiness = options.burstiness;
  made.length = options.length;
  made.seed = seed;
  return made;
}

// The mean over seeds of what a run counts.
Result<PipelineRow> fleet_row(PipelineRow row, FleetOptions run, std::uint64_t seeds) {
  row.numbers = {{"hit_rate", 0},
                 {"answered_per_s", 0},
                 {"in_time_per_s", 0},
                 {"p50_ms", 0},
                 {"p95_ms", 0},
                 {"p95_of_objective", 0},
                 {"queue_ms", 0},
                 {"transfer_ms", 0},
                 {"execution_ms", 0},
                 {"mig_s", 0},
                 {"gpu_s", 0},
                 {"starts_per_minute", 0},
                 {"evictions_per_minute", 0},
                 {"migrations_per_minute", 0}};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    run.seed = seed;
    const auto found = run_fleet(run);
    if (!found) return fail(found.error());
    const double values[] = {found->hit_rate,  found->answered_per_s, found->in_time_per_s,
                             found->p50_ms,    found->p95_ms,         found->p95_of_objective,
                             found->queue_ms,  found->transfer_ms,    found->execution_ms,
                             found->mig_s,     found->gpu_s,          found->starts,
                             found->evictions, found->migrations};
    for (std::size_t i = 0; i < row.numbers.size(); ++i)
      row.numbers[i].second += values[i] / static_cast<double>(seeds);
    row.state_hash = row.state_hash * 31 + found->state_hash;
  }
  return row;
}

Result<Rows> bursts(const PipelineOptions& options) {
  Rows rows;
  for (const std::string& variant : options.variants) {
    const auto all = applications(variant);
    if (all.empty())
      return fail(Errc::kInvalidArgument, "variant is \"{}\", it must be small, medium or large", variant);
    for (const double load : {0.1, 0.35, 0.6, 0.85}) {
      for (const System& system : kSystems) {
        FleetOptions run = fleet_options(system, options, 1);
        run.load = load;
        for (const std::size_t which : {0, 1, 2, 0, 1, 2}) run.functions.push_back(all[which]);
        auto row = fleet_row({.experiment = "bursts",
                              .contestant = system.name,
                              .workload = fmt::format("{} {:.0f} %", variant, 100 * load),
                              .numbers = {}},
                             run, options.seeds);
        if (!row) return fail(row.error());
        rows.push_back(std::move(*row));
      }
    }
  }
  return rows;
}

Result<Rows> workloads(const PipelineOptions& options) {
  Rows rows;
  const std::pair<const char*, const char*> kKinds[] = {{"light", "small"}, {"medium", "medium"}, {"heavy", "large"}};
  for (const auto& [kind, variant] : kKinds) {
    for (const std::string& partition : options.partitions) {
      for (const System& system : kSystems) {
        const std::string_view name = system.name;
        if (name.find("as printed") == std::string_view::npos && name != "esg, late last, warm" && name != "ours")
          continue;
        FleetOptions run = fleet_options(system, options, 1);
        run.gpus = 16;
        run.partition = partition;
        run.load = 0.6;
        for (Application& one : applications(variant)) {
          if (!one.least.empty()) run.functions.push_back(std::move(one));
        }
        auto row = fleet_row({.experiment = "workloads",
                              .contestant = system.name,
                              .workload = fmt::format("{} {}", kind, partition),
                              .numbers = {}},
                             run, options.seeds);
        if (!row) return fail(row.error());
        rows.push_back(std::move(*row));
      }
    }
  }
  return rows;
}

struct Experiment {
  std::string_view name;
  Result<Rows> (*run)(const PipelineOptions&);
};
constexpr Experiment kExperiments[] = {{"counterexample", counterexample},
                                       {"goodput", goodputs},
                                       {"anytime", anytime},
                                       {"bursts", bursts},
                                       {"workloads", workloads}};

}  // namespace

std::vector<std::string_view> pipeline_experiments() {
  std::vector<std::string_view> names;
  for (const Experiment& one : kExperiments) names.push_back(one.name);
  return names;
}

Result<std::vector<PipelineRow>> run_pipelines(std::string_view experiment, const PipelineOptions& options) {
  for (const Experiment& one : kExperiments) {
    if (one.name == experiment) return one.run(options);
  }
  return fail(Errc::kInvalidArgument, "experiment is \"{}\", it must be one of {}", experiment,
              fmt::join(pipeline_experiments(), ", "));
}

}  // namespace fairlead::sim
