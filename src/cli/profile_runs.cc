#include "cli/profile_runs.h"

#include <unistd.h>

#include <chrono>
#include <istream>
#include <ostream>
#include <thread>

#include "cli/format.h"
#include "cli/table.h"
#include "model/function.h"

namespace fairlead::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);
constexpr int kGridTrials = 35;
constexpr int kPipelineCalls = 30;  // as the node makes them (PipelineTrials::kCalls)
constexpr int kMostWaits = 50;      // polls, for the disk

std::string rectangle(const Json& trial) {
  return fmt::format("{} % of the SMs x {} % of the time", trial.value("width_percent", 0),
                     trial.value("quota_percent", 0));
}

// Those since the last look.
void tell_trials(Cli& cli, const Json& experiment, std::size_t& told) {
  const Json trials = experiment.value("trials", Json::array());
  for (; told < trials.size(); ++told) {
    cli.err() << fmt::format("{:2}. {}: {:.1f} requests/s +- {:.1f} %  ({})\n", told + 1, rectangle(trials[told]),
                             trials[told].value("rate_per_s", 0.0), 100 * trials[told].value("error", 0.0),
                             trials[told].value("why", ""));
  }
}

std::string beside_text(const Json& profile) {
  const std::string alone = profile.value("alone", "");
  if (!alone.empty()) return "not tried beside a copy of itself: " + alone + "\n";
  const Json beside = profile.value("beside", Json());
  if (beside.is_null()) return "";
  return fmt::format("beside a copy of itself, each {}: {:.1f} requests/s, {:.2f} times as slow as alone +- {:.1f} %\n",
                     rectangle(beside), beside.value("rate_per_s", 0.0), beside.value("slowdown", 1.0),
                     100 * beside.value("slowdown_error", 0.0));
}

}  // namespace

std::string native_path(const std::string& function, const std::string& suffix) {
  return "/fairlead/v1/functions/" + net::percent_encode(function) + suffix;
}

std::string tags_path(const std::string& function) {
  return "/2017-03-31/tags/" + net::percent_encode(function_arn(function));
}

bool agrees_to_calls(Cli& cli, const std::string& function, Payloads payloads, Experiment experiment, bool yes) {
  const std::string how =
      experiment == Experiment::kPipeline
          ? fmt::format("{} times, one call after the other, on the slices that it has", kPipelineCalls)
          : fmt::format(
                "a few seconds for each of {}{} trials, and on a node with MPS up to two more, the last beside a "
                "copy of itself",
                experiment == Experiment::kGrid ? "" : "at most ", kGridTrials);
  cli.err() << fmt::format(
      "{} will be called again and again with {}, {}; its answers are thrown away, and what it does otherwise is done "
      "each time.\n",
      function, payloads == Payloads::kMadeUp ? "inputs that the node makes up" : "this payload", how);
  if (yes || ::isatty(STDIN_FILENO) == 0) return yes;
  cli.err() << "Go on? [y/N] " << std::flush;
  std::string answer;
  std::getline(cli.in(), answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<Json> run_experiment(Cli& cli, const ProfileRun& run) {
  const std::string path = native_path(run.function, "/profile");
  std::string query = fmt::format("?trial-seconds={}", run.trial_seconds);
  if (run.is_grid) query += "&grid=1";
  if (run.is_generated) query += "&generated=1";
  if (run.is_alone) query += "&alone=1";
  const auto started = cli.node().send({.method = "POST", .target = path + query, .headers = {}, .body = run.payload});
  if (!started) return fail(started.error());
  std::size_t told = 0;
  int waited = 0;
  while (true) {
    Result<Json> state = cli.node().call("GET", path);
    if (!state) return state;
    const Json experiment = state->value("experiment", Json());
    if (experiment.is_null()) return fail(Errc::kUnavailable, "the node was started again: the experiment is gone");
    tell_trials(cli, experiment, told);
    if (!experiment.value("running", false)) {
      if (const std::string failed = experiment.value("failed", ""); !failed.empty()) {
        return fail(Errc::kConflict, "the experiment on {} ended after {} trials and {} calls: {}", run.function, told,
                    experiment.value("calls", 0), failed);
      }
      const std::string trials = told > 0 ? fmt::format("{} trials, ", told) : "";
      cli.err() << fmt::format("{}{} calls; {}\n", trials, experiment.value("calls", 0), experiment.value("doing", ""));
      const Json profiles = state->value("profiles", Json::array());
      if (!profiles.empty()) return profiles.front();  // else it is on its way to the disk
      if (++waited > kMostWaits) return fail(Errc::kUnavailable, "the profile is not on disk; the node's log says why");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::string component_times_text(const Json& times) {
  if (!times.is_array() || times.empty()) return "";
  Table table({{"COMPONENT"},
               {"SLICE"},
               {"MS", Table::Align::kRight},
               {"+-", Table::Align::kRight},
               {"RUNS", Table::Align::kRight}});
  for (const Json& time : times) {
    const auto runs = time.value("runs", std::uint64_t{0});
    table.add_row({time.value("component", ""), time.value("slice", ""), fmt::format("{:.3f}", time.value("ms", 0.0)),
                   runs > 0 ? fmt::format("{:.3f}", time.value("deviation_ms", 0.0)) : "",
                   runs > 0 ? fmt::format("{}", runs) : "predicted"});
  }
  return table.text();
}

std::string profile_text(const Json& profile) {
  const std::string head =
      fmt::format("{} on {}, code {}, {}{}\n", profile.value("function", ""), profile.value("device", ""),
                  profile.value("code_sha256", ""), format_time(profile.value("measured_ms", std::int64_t{0})),
                  profile.value("imported", false) ? ", imported" : "");
  if (const std::string components = component_times_text(profile.value("components", Json())); !components.empty()) {
    const Json trials = profile.value("trials", Json::array());
    const Json trial = trials.empty() ? Json::object() : trials.front();
    return head +
           fmt::format("{} calls, one after the other: {:.1f} requests/s, p50 {:.2f} ms, p99 {:.2f} ms\n\n",
                       trial.value("requests", 0), trial.value("rate_per_s", 0.0), trial.value("p50_ms", 0.0),
                       trial.value("p99_ms", 0.0)) +
           components;
  }
  Table table({{"SMS", Table::Align::kRight},
               {"TIME", Table::Align::kRight},
               {"REQ/S", Table::Align::kRight},
               {"ERROR", Table::Align::kRight},
               {"P50 MS", Table::Align::kRight},
               {"P99 MS", Table::Align::kRight},
               {"GPU BUSY", Table::Align::kRight},
               {"MEMORY", Table::Align::kRight},
               {"CALLS", Table::Align::kRight}});
  for (const Json& trial : profile.value("trials", Json::array())) {
    table.add_row(
        {fmt::format("{} %", trial.value("width_percent", 0)), fmt::format("{} %", trial.value("quota_percent", 0)),
         fmt::format("{:.1f}", trial.value("rate_per_s", 0.0)),
         fmt::format("{:.1f} %", 100 * trial.value("error", 0.0)), fmt::format("{:.2f}", trial.value("p50_ms", 0.0)),
         fmt::format("{:.2f}", trial.value("p99_ms", 0.0)), format_percent(trial.value("utilisation", 0.0)),
         format_bytes(trial.value("memory_bytes", 0.0)), fmt::format("{}", trial.value("requests", 0))});
  }
  return head +
         fmt::format("execution: {:.2f} ms + {:.1f} ms x % / min(SMs, {:.0f} %)\nwhy no more: {}\n",
                     profile.value("fixed_ms", 0.0), profile.value("work_ms", 0.0),
                     profile.value("saturation_percent", 0.0), profile.value("ended", "")) +
         beside_text(profile) + "\n" + table.text();
}

}  // namespace fairlead::cli
