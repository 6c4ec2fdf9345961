#include "cli/run_table.h"

#include <fmt/format.h>

#include "cli/table.h"

namespace fairlead::cli {
namespace {

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

double utilisation(const sim::Outcomes& outcome) {
  return 100 * outcome.total.busy_seconds / (outcome.total.seconds * static_cast<double>(outcome.scenario.devices));
}

nlohmann::ordered_json json_of(const sim::FunctionResult& function) {
  return {{"name", function.name},
          {"arrived", function.arrived},
          {"answered", function.answered},
          {"failed", function.failed},
          {"refused", function.refused},
          {"cold", function.cold},
          {"host_warm", function.host_warm},
          {"device_warm", function.device_warm},
          {"mean_s", function.latency.mean_seconds()},
          {"p50_s", to_seconds(function.latency.percentile(0.5))},
          {"p99_s", to_seconds(function.latency.percentile(0.99))},
          {"greatest_wait_s", to_seconds(function.greatest_wait)},
          {"gpu_s", function.service_seconds}};
}

}  // namespace

std::string run_table(const std::vector<sim::Outcomes>& outcomes) {
  using Align = Table::Align;
  Table table({{"VARIANT"},
               {"CALLS", Align::kRight},
               {"MEAN s", Align::kRight},
               {"P50 s", Align::kRight},
               {"P99 s", Align::kRight},
               {"GAP s", Align::kRight},
               {"COLD %", Align::kRight},
               {"HOST-WARM %", Align::kRight},
               {"UTIL %", Align::kRight},
               {"HASH", Align::kRight}});
  for (const sim::Outcomes& outcome : outcomes) {
    const sim::RunResult& total = outcome.total;
    table.add_row({outcome.label, std::to_string(total.arrived()), fmt::format("{:.3f}", total.latency.mean_seconds()),
                   fmt::format("{:.3f}", to_seconds(total.latency.percentile(0.5))),
                   fmt::format("{:.3f}", to_seconds(total.latency.percentile(0.99))),
                   fmt::format("{:.1f}", total.worst_gap),
                   fmt::format("{:.1f}", percent(total.cold(), total.arrived())),
                   fmt::format("{:.1f}", percent(total.host_warm(), total.arrived())),
                   fmt::format("{:.0f}", utilisation(outcome)), fmt::format("{:016x}", total.state_hash)});
  }
  return table.text();
}

nlohmann::ordered_json run_json(const sim::Outcomes& outcome) {
  const sim::RunResult& total = outcome.total;
  nlohmann::ordered_json json = {{"variant", outcome.label},
                                 {"scenario", outcome.scenario.name},
                                 {"policy", outcome.scenario.policy},
                                 {"seeds", outcome.scenario.seeds},
                                 {"arrived", total.arrived()},
                                 {"mean_s", total.latency.mean_seconds()},
                                 {"p50_s", to_seconds(total.latency.percentile(0.5))},
                                 {"p90_s", to_seconds(total.latency.percentile(0.9))},
                                 {"p99_s", to_seconds(total.latency.percentile(0.99))},
                                 {"worst_gap_s", total.worst_gap},
                                 {"mean_gap_s", total.mean_gap},
                                 {"cold", total.cold()},
                                 {"host_warm", total.host_warm()},
                                 {"device_warm", total.device_warm()},
                                 {"evictions", total.evictions},
                                 {"swap_ins", total.swap_ins},
                                 {"swap_outs", total.swap_outs},
                                 {"swap_outs_in_vain", total.swap_outs_in_vain},
                                 {"prefetches_in_time", total.prefetches_in_time},
                                 {"prefetches_late", total.prefetches_late},
                                 {"utilisation", utilisation(outcome) / 100},
                                 {"variance_between_functions", total.variance_between_functions()},
                                 {"state_hash", fmt::format("{:016x}", total.state_hash)}};
  if (outcome.scenario.faults) {
    for (std::size_t i = 0; i < sim::Faults::kKinds; ++i) {
      json["faults"][std::string(sim::fault_name(static_cast<sim::Fault>(i)))] = total.faults[i];
    }
    json["events_found_after_restart"] = total.restarts_survived;
  }
  for (const sim::FunctionResult& function : total.functions) json["functions"].push_back(json_of(function));
  return json;
}

void add_seeds(const sim::Outcomes& outcome, nlohmann::ordered_json& run) {
  run["by_seed"] = nlohmann::ordered_json::array();
  for (const sim::RunResult& seed : outcome.runs) {
    nlohmann::ordered_json means = nlohmann::ordered_json::array(), deviations = means;
    double gpu_seconds = 0;
    for (const sim::FunctionResult& function : seed.functions) {
      means.push_back(function.latency.mean_seconds());
      deviations.push_back(function.latency.deviation_seconds());
      gpu_seconds += function.service_seconds;
    }
    run["by_seed"].push_back({{"seed", seed.seed},
                              {"arrived", seed.arrived()},
                              {"mean_s", seed.latency.mean_seconds()},
                              {"p99_s", to_seconds(seed.latency.percentile(0.99))},
                              {"mean_gap_s", seed.mean_gap},
                              {"worst_gap_s", seed.worst_gap},
                              {"cold", seed.cold()},
                              {"gpu_s", gpu_seconds},
                              {"variance_between_functions", seed.variance_between_functions()},
                              {"function_mean_s", means},
                              {"function_deviation_s", deviations}});
  }
}

void add_samples(const sim::Outcomes& outcome, nlohmann::ordered_json& run) {
  const sim::RunResult& first = outcome.runs.front();
  run["samples"] = nlohmann::ordered_json::array();
  for (const sim::Sample& sample : first.samples) {
    run["samples"].push_back({{"at_s", sample.at}, {"queued", sample.queued}, {"served_s", sample.served}});
  }
  run["gaps"] = nlohmann::ordered_json::array();
  for (const auto& [end, gap] : first.gaps) run["gaps"].push_back({end, gap});
}

}  // namespace fairlead::cli
