#include "sim/recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "decide/queueing/window.h"
#include "sim/company.h"

namespace fairlead::sim {
namespace {

constexpr double kMostNoise = 0.5;
constexpr Duration kLeastWarm = std::chrono::microseconds(1);

// The greater of the two in the middle; 0 of none.
template <typename T>
T median(std::vector<T> values) {
  if (values.empty()) return T(0);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Spread {
 public:
  void add(Duration value) { values_.push_back(value); }
  std::size_t count() const { return values_.size(); }
  const std::vector<Duration>& values() const { return values_; }
  Duration mean() const {
    const auto sum = std::accumulate(values_.begin(), values_.end(), Duration(0));
    return values_.empty() ? sum : sum / static_cast<Duration::rep>(values_.size());
  }

 private:
  std::vector<Duration> values_;
};

struct Measured {
  Spread warm, cold;  // work, by how it began
  Spread starts;
  Duration run{0}, gpu_time{0};
};

bool is_played(const InvocationRecord& record) {
  return !record.outcome || (*record.outcome != OutcomeKind::kCancelled && *record.outcome != OutcomeKind::kRemoved &&
                             *record.outcome != OutcomeKind::kShutdown && *record.outcome != OutcomeKind::kExpired);
}

// The functions by name, in order of their first arrival; those that `node` does not know begin empty.
class Names {
 public:
  explicit Names(const Scenario& node) : node_(node) {}

  std::size_t index(std::string_view name) {
    const auto [found, is_new] = indices_.try_emplace(std::string(name), functions.size());
    if (!is_new) return found->second;
    functions.push_back({.name = std::string(name), .memory = Bytes(0)});
    for (const FunctionModel& known : node_.functions) {
      if (known.name == name) functions.back() = known;
    }
    return found->second;
  }

  std::vector<FunctionModel> functions;

 private:
  const Scenario& node_;
  std::unordered_map<std::string, std::size_t> indices_;
};

// When it was on the GPU. A host-warm one waits for its memory first, which costs others nothing.
Instant begin_of(const InvocationRecord& record) {
  const Instant delivered = record.arrived() + record.queue + record.starting;
  const bool waited = record.start == StartKind::kHostWarm && record.gpu_time > Duration(0);
  return waited ? delivered + record.run - std::min(record.run, record.gpu_time) : delivered;
}

std::vector<TimedRun> runs_of(const std::vector<InvocationRecord>& records, const std::vector<std::size_t>& functions) {
  std::vector<TimedRun> runs;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const InvocationRecord& record = records[i];
    const Instant begin = begin_of(record), end = record.arrived() + record.queue + record.starting + record.run;
    const bool is_typical = record.start && record.start != StartKind::kCold && record.outcome == OutcomeKind::kSuccess;
    runs.push_back({functions[i], record.gpu.value(), begin, record.start ? end : begin, is_typical, {}});
  }
  return runs;
}

std::vector<Measured> measure(const std::vector<InvocationRecord>& records, const std::vector<TimedRun>& runs,
                              std::vector<Duration>& works, const Scenario& scenario) {
  std::vector<Measured> measured(scenario.functions.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const InvocationRecord& record = records[i];
    works.push_back(work_of(runs[i], scenario.device.slowdown));
    if (!record.start) continue;
    Measured& function = measured[runs[i].function];
    const bool is_cold = record.start == StartKind::kCold;
    if (is_cold && record.instance_start > Duration(0)) function.starts.add(record.instance_start);
    if (record.outcome != OutcomeKind::kSuccess) continue;
    (is_cold ? function.cold : function.warm).add(works.back());
    if (record.start == StartKind::kHostWarm) continue;  // most of its time it waited for its memory
    function.run += record.run;
    function.gpu_time += record.gpu_time;
  }
  return measured;
}

Duration warm_of(const Measured& measured) {
  const Spread& seen = measured.warm.count() > 0 ? measured.warm : measured.cold;
  return seen.count() == 0 ? Duration(0) : std::max(kLeastWarm, seen.mean());
}

// A first run is longer than others where something is made at first use. Medians, because some starts and first runs also
// waited for device memory, which the simulator lets them do again.
Duration cold_start_of(const Measured& measured) {
  const bool knows_both = measured.warm.count() > 0 && measured.cold.count() > 0;
  const Duration longer = knows_both ? median(measured.cold.values()) - median(measured.warm.values()) : Duration(0);
  return median(measured.starts.values()) + std::max(Duration(0), longer);
}

// Of starts, as runs have their own times in the trace. A standard deviation by the median of the deviations: a few starts
// that waited for memory change nothing.
double noise_of(const std::vector<Measured>& measured) {
  constexpr double kDeviationOfNormal = 1.4826;  // standard deviation over median absolute deviation
  std::vector<double> deviations;
  for (const Measured& function : measured) {
    const Duration typical = median(function.starts.values());
    if (function.starts.count() < 2) continue;
    for (const Duration start : function.starts.values()) {
      deviations.push_back(std::abs(to_seconds(start) / to_seconds(typical) - 1));
    }
  }
  return std::min(kMostNoise, kDeviationOfNormal * median(std::move(deviations)));
}

// What was never seen is taken from the functions of which it was.
void set_models(const std::vector<Measured>& measured, Recording& recording) {
  Spread warm, cold_start;
  for (const Measured& function : measured) {
    if (warm_of(function) > Duration(0)) warm.add(warm_of(function));
    if (function.starts.count() > 0) cold_start.add(cold_start_of(function));
  }
  for (std::size_t i = 0; i < measured.size(); ++i) {
    FunctionModel& function = recording.scenario.functions[i];
    function.warm = warm_of(measured[i]);
    if (function.warm == Duration(0)) {
      function.warm = std::max(kLeastWarm, warm.mean());
      recording.notes.push_back(fmt::format("no run of {} succeeded: it is taken to run {:.3f} s, as others do",
                                            function.name, to_seconds(function.warm)));
    }
    function.cold_start = cold_start_of(measured[i]);
    if (measured[i].starts.count() == 0) {
      function.cold_start = cold_start.mean();
      recording.notes.push_back(fmt::format("no cold start of {} was seen: it is taken to last {:.3f} s, as others do",
                                            function.name, to_seconds(function.cold_start)));
    }
    const double run = to_seconds(measured[i].run);
    if (run > 0) function.gpu_share = std::clamp(to_seconds(measured[i].gpu_time) / run, 0.0, 1.0);
  }
}

template <typename Line>
void add_functions(const std::vector<FunctionModel>& functions, Line line) {
  for (const FunctionModel& function : functions) {
    line("\n[[function]]");
    line(fmt::format("name = \"{}\"", function.name));
    line(fmt::format("warm_s = {:.6f}", to_seconds(function.warm)));
    line(fmt::format("cold_start_s = {:.6f}", to_seconds(function.cold_start)));
    line(fmt::format("memory_mib = {}", (function.memory.count() + (1 << 20) - 1) >> 20));
    line(fmt::format("gpu_share = {:.4f}", function.gpu_share));
    if (function.weight != 1) line(fmt::format("weight = {}", function.weight));
    if (!function.tenant.empty()) line(fmt::format("tenant = \"{}\"", function.tenant));
    if (function.objective) line(fmt::format("objective_s = {}", to_seconds(*function.objective)));
  }
}

}  // namespace

Result<Recording> make_recording(const std::vector<InvocationRecord>& records, Scenario node) {
  Recording recording;
  std::vector<InvocationRecord> played;
  std::copy_if(records.begin(), records.end(), std::back_inserter(played), is_played);
  recording.left_out = records.size() - played.size();
  if (played.empty()) {
    return fail(Errc::kNotFound, "the history has no invocations to play; {} were cancelled or deleted",
                recording.left_out);
  }
  std::stable_sort(played.begin(), played.end(),
                   [](const InvocationRecord& a, const InvocationRecord& b) { return a.at_us < b.at_us; });

  Names names(node);
  std::vector<std::size_t> functions;
  for (const InvocationRecord& record : played) functions.push_back(names.index(record.function()));
  recording.scenario = std::move(node);
  recording.scenario.functions = std::move(names.functions);
  recording.scenario.device.start_slowdown = 1;  // what starts and runs cost each other is in the times measured

  std::vector<TimedRun> runs = runs_of(played, functions);
  find_company(runs);
  recording.scenario.device.slowdown = learn_slowdown(runs);
  std::vector<Duration> works;
  const std::vector<Measured> measured = measure(played, runs, works, recording.scenario);
  set_models(measured, recording);
  recording.scenario.noise = noise_of(measured);

  const Instant first = played.front().arrived();
  for (std::size_t i = 0; i < played.size(); ++i) {
    recording.arrivals.push_back({Instant(played[i].arrived() - first), functions[i]});
    if (runs[i].is_typical) recording.arrivals.back().service = works[i];
  }
  recording.scenario.duration = (recording.arrivals.back().at - Instant{}) + std::chrono::seconds(1);
  return recording;
}

std::string trace_csv(const Recording& recording) {
  std::string text = "at_s,function,service_s\n";
  for (const Arrival& arrival : recording.arrivals) {
    text += fmt::format("{:.6f},{},", to_seconds(arrival.at - Instant{}),
                        recording.scenario.functions[arrival.function].name);
    text += arrival.service ? fmt::format("{:.6f}\n", to_seconds(*arrival.service)) : "\n";
  }
  return text;
}

std::string scenario_toml(const Scenario& scenario, const std::string& trace) {
  std::string text;
  const auto line = [&text](const std::string& added) { text += added + '\n'; };
  const DeviceModel& device = scenario.device;
  const CoreOptions& core = scenario.core;
  const PolicyOptions& policy = scenario.policy_options;
  line(fmt::format("name = \"{}\"", scenario.name));
  line(fmt::format("devices = {}\nnoise = {:.4f}", scenario.devices, scenario.noise));
  line(fmt::format("\n[workload]\ntrace = \"{}\"", trace));
  line(fmt::format("\n[policy]\nname = \"{}\"\nover_run_s = {}\nttl_factor = {}\nby_tenant = {}", scenario.policy,
                   to_seconds(policy.get(kOverRun)), policy.ttl_factor, policy.by_tenant));
  for (const auto& [name, value] : policy.parameters) {
    if (name == kOverRun.name) continue;
    const auto* time = std::get_if<Duration>(&value);
    line(fmt::format("{} = {}", name, time != nullptr ? to_seconds(*time) : std::get<double>(value)));
  }
  line(
      fmt::format("\n[pool]\ninstances = {}\nslots = {}\nstarts = {}\nno_cold_duplicates = {}\nqueue_limit = {}\n"
                  "queue_limit_per_function = {}",
                  core.instances_per_gpu, core.slots_per_gpu, core.starts_per_gpu, core.no_cold_duplicates,
                  core.queue_limit, core.queue_limit_per_flow));
  line(fmt::format("\n[memory]\npolicy = \"{}\"\neviction = \"{}\"", memory_policy_name(core.memory_policy),
                   eviction_name(core.eviction)));
  line(
      fmt::format("\n[device]\nmemory_gib = {:.6f}\nlink_gb_per_s = {:.3f}\nregion_mib = {}\nstart_slowdown = "
                  "{:.3f}\nslowdown = [{:.3f}]",
                  static_cast<double>(device.memory.count()) / (1 << 30), device.link_bytes_per_second / 1e9,
                  device.region.count() >> 20, device.start_slowdown, fmt::join(device.slowdown, ", ")));
  for (const auto& [name, share] : scenario.tenants) {
    line(fmt::format("\n[[tenant]]\nname = \"{}\"\nweight = {}", name, share.weight));
    if (share.max_concurrency) line(fmt::format("max_in_flight = {}", *share.max_concurrency));
  }
  add_functions(scenario.functions, line);
  return text;
}

}  // namespace fairlead::sim
