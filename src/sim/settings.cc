#include "sim/settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "decide/queueing/policy.h"
#include "sim/preset.h"

namespace fairlead::sim {
namespace {

using Apply = std::function<Status(Scenario&, const std::string& key, const std::string& value)>;

struct Setting {
  std::string key;
  std::string meaning;
  Apply apply;
};

template <typename Number>
Result<Number> number(const std::string& key, const std::string& value, double least, double most) {
  Number parsed{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (!whole || !(static_cast<double>(parsed) >= least && static_cast<double>(parsed) <= most)) {
    return fail(Errc::kInvalidArgument, "{} is \"{}\", it must be a number from {} to {}", key, value, least, most);
  }
  return parsed;
}

// Makes a setting of a number: where it goes is up to `store`.
template <typename Number, typename Store>
Apply numeric(double least, double most, Store store) {
  return [=](Scenario& scenario, const std::string& key, const std::string& value) -> Status {
    const auto parsed = number<Number>(key, value, least, most);
    if (!parsed) return fail(parsed.error());
    store(scenario, *parsed);
    return {};
  };
}

template <typename Store>
Apply seconds(double least, Store store) {
  return numeric<double>(least, 1e9, [=](Scenario& scenario, double s) { store(scenario, from_seconds(s)); });
}

template <typename Value, typename Store>
Apply one_of(std::vector<std::pair<std::string, Value>> names, Store store) {
  return [=](Scenario& scenario, const std::string& key, const std::string& value) -> Status {
    std::vector<std::string> known;
    for (const auto& [name, meaning] : names) {
      known.push_back(name);
      if (name != value) continue;
      store(scenario, meaning);
      return {};
    }
    return fail(Errc::kInvalidArgument, "{} is \"{}\", it must be one of {}", key, value, fmt::join(known, ", "));
  };
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

Status set_slowdown(Scenario& scenario, const std::string& key, const std::string& value) {
  std::vector<double> factors;
  for (const std::string& part : split(value, ',')) {
    const auto factor = number<double>(key, part, 1, 1000);
    if (!factor) return fail(factor.error());
    factors.push_back(*factor);
  }
  scenario.device.slowdown = std::move(factors);
  return {};
}

// "0:1,60:1,90:4": the factor at each second.
Status set_changes(Scenario& scenario, const std::string& key, const std::string& value) {
  std::vector<LoadPoint> changes;
  for (const std::string& part : split(value, ',')) {
    const auto pair = split(part, ':');
    if (pair.size() != 2) {
      return fail(Errc::kInvalidArgument, "{} has \"{}\", it must be SECOND:FACTOR", key, part);
    }
    const auto at = number<double>(key, pair[0], 0, 1e9), factor = number<double>(key, pair[1], 0, 1000);
    if (!at) return fail(at.error());
    if (!factor) return fail(factor.error());
    if (!changes.empty() && from_seconds(*at) < changes.back().at) {
      return fail(Errc::kInvalidArgument, "{} has {} s after {} s, times must not fall", key, *at,
                  to_seconds(changes.back().at));
    }
    changes.push_back({from_seconds(*at), *factor});
  }
  scenario.workload.changes = std::move(changes);
  return {};
}

Status set_preset(Scenario& scenario, const std::string&, const std::string& value) {
  const auto preset = preset_named(value);
  if (!preset) return fail(preset.error());
  apply(*preset, scenario);
  return {};
}

Status set_policy(Scenario& scenario, const std::string&, const std::string& value) {
  if (auto made = make_policy(value, scenario.policy_options); !made) return fail(made.error());
  scenario.policy = value;
  return {};
}

// The run, its functions and devices.
std::vector<Setting> run_settings() {
  return {
      {"duration_s", "seconds in which invocations arrive; what was accepted is served to the end",
       seconds(1e-3, [](Scenario& s, Duration v) { s.duration = v; })},
      {"noise", "deviation of run and start times, relative",
       numeric<double>(0, 0.9, [](Scenario& s, double v) { s.noise = v; })},
      {"faults", "crashes, hangs, lost messages, restarts at random, and invariants checked after every event",
       one_of<bool>({{"true", true}, {"false", false}}, [](Scenario& s, bool v) { s.faults = v; })},
      {"devices", "GPUs", numeric<std::size_t>(1, 1024, [](Scenario& s, std::size_t v) { s.devices = v; })},
      {"functions.cold_start_s", "of every function",
       seconds(0,
               [](Scenario& s, Duration v) {
                 for (FunctionModel& function : s.functions) function.cold_start = v;
               })},
      {"functions.memory_mib", "of every function",
       numeric<std::int64_t>(0, 1 << 20,
                             [](Scenario& s, std::int64_t v) {
                               for (FunctionModel& function : s.functions) function.memory = mib(v);
                             })},
      {"device.memory_gib", "memory of one GPU",
       numeric<double>(
           0.1, 1024,
           [](Scenario& s, double v) { s.device.memory = Bytes(static_cast<std::int64_t>(v * (1 << 30))); })},
      {"device.link_gb_per_s", "bandwidth between host and GPU, each way",
       numeric<double>(0.01, 1e4, [](Scenario& s, double v) { s.device.link_bytes_per_second = v * 1e9; })},
      {"device.region_mib",
       "memory leaves a GPU in whole regions of so much, as large allocations do; 0: as much as is asked",
       numeric<std::int64_t>(0, 1 << 20, [](Scenario& s, std::int64_t v) { s.device.region = mib(v); })},
      {"device.start_slowdown", "of what runs, for each instance that starts beside it, and of a start for each run",
       numeric<double>(1, 100, [](Scenario& s, double v) { s.device.start_slowdown = v; })},
      {"device.slowdown", "of each invocation at 1, 2, 3, ... in flight, for example 1,1.3,2.1", set_slowdown},
  };
}

std::vector<std::string_view> policies_with(const ParameterInfo& parameter) {
  std::vector<std::string_view> names;
  for (const Policy* policy : policies()) {
    const auto& theirs = policy->parameters;
    if (std::find(theirs.begin(), theirs.end(), &parameter) != theirs.end()) names.push_back(policy->name);
  }
  return names;
}

// What each policy's own file says that it looks at.
std::vector<Setting> policy_settings() {
  std::vector<Setting> settings;
  for (const ParameterInfo* parameter : policy_parameters()) {
    settings.push_back({fmt::format("policy.{}", parameter->name),
                        fmt::format("{} ({})", parameter->meaning, fmt::join(policies_with(*parameter), ", ")),
                        numeric<double>(parameter->least, parameter->most, [parameter](Scenario& s, double v) {
                          s.policy_options.set_number(*parameter, v);
                        })});
  }
  return settings;
}

// What decides: queueing, placement, residency.
std::vector<Setting> scheduler_settings() {
  return {
      {"preset", "all of these at once, as the node or the paper has them: node, paper", set_preset},
      {"policy", "which invocation is next", set_policy},
      {"policy.ttl_factor", "alpha: how long an empty flow stays active, in mean gaps between its invocations",
       numeric<double>(0, 1e6, [](Scenario& s, double v) { s.policy_options.ttl_factor = v; })},
      {"policy.ttl_s", "the same TTL for all flows, instead of policy.ttl_factor",
       seconds(0, [](Scenario& s, Duration v) { s.policy_options.fixed_ttl = v; })},
      {"policy.by_tenant", "fair between tenants first",
       one_of<bool>({{"true", true}, {"false", false}}, [](Scenario& s, bool v) { s.policy_options.by_tenant = v; })},
      {"pool.instances", "instances kept per GPU",
       numeric<std::size_t>(1, 100'000, [](Scenario& s, std::size_t v) { s.core.instances_per_gpu = v; })},
      {"pool.dynamic_slots", "D follows the load, from 1 up to pool.slots",
       one_of<bool>({{"true", true}, {"false", false}}, [](Scenario& s, bool v) { s.dynamic_slots = v; })},
      {"pool.slots", "D: invocations at the same time per GPU",
       numeric<std::size_t>(1, 1024, [](Scenario& s, std::size_t v) { s.core.slots_per_gpu = v; })},
      {"pool.queue_limit", "invocations queued on the node; more are refused",
       numeric<std::size_t>(1, 1e9, [](Scenario& s, std::size_t v) { s.core.queue_limit = v; })},
      {"pool.queue_limit_per_function", "and of one function",
       numeric<std::size_t>(1, 1e9, [](Scenario& s, std::size_t v) { s.core.queue_limit_per_flow = v; })},
      {"pool.starts", "instances that may start at a time per GPU without a slot; 0: a cold start holds its slot",
       numeric<std::size_t>(0, 1024, [](Scenario& s, std::size_t v) { s.core.starts_per_gpu = v; })},
      {"memory.policy", "none: instances are stopped when memory is short; prefetch, prefetch-swap: memory moves",
       one_of<MemoryPolicy>({{"none", MemoryPolicy::kNone},
                             {"prefetch", MemoryPolicy::kPrefetch},
                             {"prefetch-swap", MemoryPolicy::kPrefetchSwap}},
                            [](Scenario& s, MemoryPolicy v) { s.core.memory_policy = v; })},
      {"memory.eviction", "which idle instance, and whose memory, goes first",
       one_of<EvictionKind>({{"lru", EvictionKind::kLru},
                             {"inactive-first", EvictionKind::kInactiveFirst},
                             {"cost", EvictionKind::kCost}},
                            [](Scenario& s, EvictionKind v) { s.core.eviction = v; })},
      {"pool.no_cold_duplicates", "wait for a busy instance where that is sooner than a second start",
       one_of<bool>({{"true", true}, {"false", false}}, [](Scenario& s, bool v) { s.core.no_cold_duplicates = v; })},
  };
}

// What arrives.
std::vector<Setting> workload_settings() {
  return {
      {"workload.kind",
       "zipf, azure, four-copies, flood (tenants), closed, or own: each function says when it is called",
       one_of<WorkloadKind>({{"zipf", WorkloadKind::kZipf},
                             {"azure", WorkloadKind::kAzureLike},
                             {"four-copies", WorkloadKind::kFourCopies},
                             {"flood", WorkloadKind::kFloodAndLight},
                             {"closed", WorkloadKind::kClosedLoop},
                             {"own", WorkloadKind::kOwn}},
                            [](Scenario& s, WorkloadKind v) { s.workload.kind = v; })},
      {"workload.load", "offered: warm GPU seconds per second and GPU",
       numeric<double>(1e-6, 999, [](Scenario& s, double v) { s.workload.load = v; })},
      {"workload.exponent", "of Zipf's law",
       numeric<double>(0, 10, [](Scenario& s, double v) { s.workload.exponent = v; })},
      {"workload.calls_per_s", "azure: invocations per second and GPU at that load; 0: as the run times give",
       numeric<double>(0, 1e6, [](Scenario& s, double v) { s.workload.calls_per_s = v; })},
      {"workload.cv", "variation of the gaps between invocations: 0 regular, 1 exponential, above bursty",
       numeric<double>(0, 50, [](Scenario& s, double v) { s.workload.cv = v; })},
      {"workload.clients", "closed loop: clients per function",
       numeric<std::size_t>(1, 100'000, [](Scenario& s, std::size_t v) { s.workload.clients = v; })},
      {"workload.think_s", "closed loop: mean pause after an answer",
       seconds(0, [](Scenario& s, Duration v) { s.workload.think = v; })},
      {"workload.changes", "factor on the load over time, SECOND:FACTOR,... linear between", set_changes},
      {"workload.trace", "file to play instead of a generator",
       [](Scenario& s, const std::string&, const std::string& value) -> Status {
         s.workload.kind = WorkloadKind::kTrace;
         s.workload.trace_path = value;
         return {};
       }},
      {"workload.format", "of the trace",
       [](Scenario& s, const std::string&, const std::string& value) -> Status {
         s.workload.trace_format = value;
         return {};
       }},
  };
}

const std::vector<Setting>& all() {
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> joined = run_settings();
    for (const auto& part : {scheduler_settings(), policy_settings(), workload_settings()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return settings;
}

// What a setting is called now; the old names are read for one release.
const std::string& now_called(const std::string& key) {
  static const std::map<std::string, std::string> old_names = {{"pool.tokens", "pool.slots"},
                                                               {"pool.dynamic_tokens", "pool.dynamic_slots"}};
  const auto old = old_names.find(key);
  return old == old_names.end() ? key : old->second;
}

}  // namespace

std::vector<SettingHelp> settings() {
  std::vector<SettingHelp> help;
  for (const Setting& setting : all()) help.push_back({setting.key, setting.meaning});
  return help;
}

Status set(Scenario& scenario, const std::string& given_key, const std::string& value) {
  const std::string& key = now_called(given_key);
  std::vector<std::string> near;
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const Setting& setting : all()) {
    if (key == setting.key) return setting.apply(scenario, key, value);
    if (setting.key.find(last.substr(0, 4)) != std::string::npos) near.push_back(setting.key);
  }
  if (near.empty()) return fail(Errc::kInvalidArgument, "{} is no setting; `fairlead sim --settings` lists them", key);
  return fail(Errc::kInvalidArgument, "{} is no setting; near it are {}", key, fmt::join(near, ", "));
}

}  // namespace fairlead::sim
