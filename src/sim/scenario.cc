#include "sim/scenario.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "sim/preset.h"

namespace fairlead::sim {
namespace {

constexpr double kMostPowerOfWarm = 20;

// A random order of 0 .. count - 1.
std::vector<std::size_t> permutation(std::size_t count, Rng& rng) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

// Near normal, from sums alone (the same on every machine).
double bell(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

// Scales the rates so that the functions offer `load` seconds of warm service per second.
void scale_to_load(std::vector<Stream>& streams, const Scenario& scenario) {
  double offered = 0;
  for (const Stream& stream : streams) offered += stream.rate * to_seconds(scenario.functions[stream.function].warm);
  const double wanted = scenario.workload.load * static_cast<double>(scenario.devices);
  for (Stream& stream : streams) stream.rate *= offered > 0 ? wanted / offered : 0;
}

// Rates 1 / rank^exponent, ranks in a random order (MQFQ-Sticky section 6: Zipf 1.5, exponential gaps).
std::vector<Stream> zipf_streams(const Scenario& scenario, Rng& rng) {
  std::vector<Stream> streams;
  const auto ranks = permutation(scenario.functions.size(), rng);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double rate = std::pow(static_cast<double>(ranks[i] + 1), -scenario.workload.exponent);
    streams.push_back({.function = i, .rate = rate, .cv = scenario.workload.cv});
  }
  return streams;
}

// Seconds that an invocation takes in the mean where function i is called shares[i] / warm^power times as often as others.
double mean_service(const Scenario& scenario, const std::vector<double>& shares, double power) {
  double calls = 0, seconds = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double warm = to_seconds(scenario.functions[i].warm), rate = shares[i] * std::pow(warm, -power);
    calls += rate;
    seconds += rate * warm;
  }
  return seconds / calls;
}

// The power at which the functions have the mean service that load and calls per second ask for: the higher, the more the
// short functions are called.
double power_of_warm(const Scenario& scenario, const std::vector<double>& shares) {
  if (scenario.workload.calls_per_s <= 0) return 1;
  const double wanted = scenario.workload.load / scenario.workload.calls_per_s;
  double low = -kMostPowerOfWarm, high = kMostPowerOfWarm;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (mean_service(scenario, shares, middle) > wanted ? low : high) = middle;
  }
  return high;
}

// As the paper's Azure samples look (its Table 3; trace 4: 19 functions, 2.69 invocations a second at a utilisation of
// 0.771): log-normal shares of the load over about three powers of ten, gaps from regular to bursty. A function's rate is
// its share over its run time, so short ones are called most: 3.8 a second at that load, unless calls_per_s says otherwise.
std::vector<Stream> azure_streams(const Scenario& scenario, Rng& rng) {
  constexpr double kSigma = 1.5;
  std::vector<Stream> streams;
  std::vector<double> shares;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    shares.push_back(std::exp(kSigma * bell(rng)));
    streams.push_back({.function = i, .cv = 1 + 3 * rng.uniform()});
  }
  const double power = power_of_warm(scenario, shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double warm = to_seconds(scenario.functions[i].warm);
    streams[i].rate = shares[i] / (power == 1 ? warm : std::pow(warm, power));
  }
  return streams;
}

// Four copies of one function: two from the start, two from a third of the run on; of each pair one sends twice as often.
std::vector<Stream> four_copies(const Scenario& scenario) {
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    const Duration begin = i % 4 < 2 ? Duration(0) : scenario.duration / 3;
    streams.push_back({.function = i, .rate = i % 2 == 0 ? 2.0 : 1.0, .cv = scenario.workload.cv, .begin = begin});
  }
  return streams;
}

// The functions of the tenant "flood" offer the load; every other function sends one in 20 s.
std::vector<Stream> flood_and_light(const Scenario& scenario) {
  std::vector<Stream> flood, light;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    auto& streams = scenario.functions[i].tenant == "flood" ? flood : light;
    streams.push_back({.function = i, .rate = scenario.functions[i].tenant == "flood" ? 1.0 : 0.05});
  }
  scale_to_load(flood, scenario);
  flood.insert(flood.end(), light.begin(), light.end());
  return flood;
}

// As each function says of itself.
std::vector<Stream> own_streams(const Scenario& scenario) {
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) {
    const Calls& calls = scenario.functions[i].calls;
    streams.push_back({.function = i,
                       .rate = calls.per_second,
                       .cv = calls.cv,
                       .begin = calls.begin,
                       .together = calls.together,
                       .most = calls.most});
  }
  return streams;
}

Scenario standard() {
  Scenario scenario;
  scenario.functions = copies_of_table1(24);
  scenario.core.queue_limit = 10'000'000;
  scenario.core.queue_limit_per_flow = 10'000'000;
  scenario.core.start_deadline = std::chrono::hours(24);
  apply(Preset::kNode, scenario);
  return scenario;
}

Scenario zipf(std::string name, double load, std::size_t pool, std::size_t slots) {
  Scenario scenario = standard();
  scenario.name = std::move(name);
  scenario.workload.load = load;
  scenario.core.instances_per_gpu = pool;
  scenario.core.slots_per_gpu = slots;
  return scenario;
}

Scenario azure(std::string name, double load, std::size_t pool, std::size_t slots) {
  Scenario scenario = zipf(std::move(name), load, pool, slots);
  scenario.functions = copies_of_table1(19);
  scenario.workload.kind = WorkloadKind::kAzureLike;
  return scenario;
}

Scenario fairness() {
  Scenario scenario = zipf("four-copies", 1.5, 32, 1);
  scenario.functions.assign(4, table1()[3]);
  for (std::size_t i = 0; i < 4; ++i) scenario.functions[i].name = "copy-" + std::to_string(i + 1);
  scenario.workload.kind = WorkloadKind::kFourCopies;
  scenario.duration = std::chrono::seconds(900);
  return scenario;
}

Scenario tenants() {
  Scenario scenario = zipf("flood", 1.2, 32, 2);
  scenario.workload.kind = WorkloadKind::kFloodAndLight;
  for (std::size_t i = 0; i < scenario.functions.size(); ++i) scenario.functions[i].tenant = i < 20 ? "flood" : "light";
  return scenario;
}

Scenario closed() {
  Scenario scenario = zipf("closed", 1.0, 32, 2);
  scenario.workload.kind = WorkloadKind::kClosedLoop;
  scenario.workload.think = std::chrono::seconds(5);
  return scenario;
}

Scenario ramp() {
  Scenario scenario = zipf("ramp", 0.4, 32, 2);
  using std::chrono::seconds;
  scenario.workload.changes = {
      {seconds(0), 0.5}, {seconds(600), 0.5}, {seconds(900), 3}, {seconds(1000), 3}, {seconds(1100), 0.5}};
  return scenario;
}

std::vector<Scenario> all_built_in() {
  return {zipf("zipf", 0.6, 32, 2),
          zipf("a", 1.1, 12, 2),
          zipf("b", 0.8, 8, 2),
          azure("c", 1.0, 12, 2),
          azure("d", 0.8, 8, 2),
          azure("e", 0.7, 32, 1),
          zipf("f", 0.6, 12, 1),
          fairness(),
          tenants(),
          closed(),
          ramp()};
}

}  // namespace

std::vector<std::string> built_in_scenarios() {
  std::vector<std::string> names;
  for (const Scenario& scenario : all_built_in()) names.push_back(scenario.name);
  return names;
}

bool is_built_in(const std::string& name) {
  const std::vector<std::string> names = built_in_scenarios();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Scenario> built_in_scenario(const std::string& name) {
  std::string known;
  for (Scenario& scenario : all_built_in()) {
    if (scenario.name == name) return std::move(scenario);
    known += (known.empty() ? "" : ", ") + scenario.name;
  }
  return fail(Errc::kNotFound, "scenario \"{}\" is neither a file nor built in; built in are {}", name, known);
}

Status validate(const Scenario& scenario) {
  if (scenario.functions.empty()) return fail(Errc::kInvalidArgument, "functions is empty, at least one is needed");
  if (scenario.devices < 1 || scenario.devices > 1024) {
    return fail(Errc::kInvalidArgument, "devices is {}, it must be 1 to 1024", scenario.devices);
  }
  if (scenario.duration <= Duration(0)) {
    return fail(Errc::kInvalidArgument, "duration is {} s, it must be above 0", to_seconds(scenario.duration));
  }
  if (!(scenario.noise >= 0 && scenario.noise < 1)) {
    return fail(Errc::kInvalidArgument, "noise is {}, it must be 0 or more and below 1", scenario.noise);
  }
  if (!(scenario.workload.load > 0 && scenario.workload.load < 1000)) {
    return fail(Errc::kInvalidArgument, "load is {}, it must be above 0 and below 1000", scenario.workload.load);
  }
  for (const FunctionModel& function : scenario.functions) {
    if (function.warm <= Duration(0) || function.cold_start < Duration(0) || function.weight <= 0) {
      return fail(Errc::kInvalidArgument,
                  "function {}: warm {} s and weight {} must be above 0, cold start {} s 0 or more", function.name,
                  to_seconds(function.warm), function.weight, to_seconds(function.cold_start));
    }
  }
  if (const double calls = scenario.workload.calls_per_s; calls > 0) {
    const auto [least, most] =
        std::minmax_element(scenario.functions.begin(), scenario.functions.end(),
                            [](const FunctionModel& a, const FunctionModel& b) { return a.warm < b.warm; });
    const double from = scenario.workload.load / to_seconds(most->warm),
                 to = scenario.workload.load / to_seconds(least->warm);
    if (!(calls > from && calls < to)) {
      return fail(
          Errc::kInvalidArgument,
          "workload.calls_per_s is {}, with these functions at a load of {} it must be above {:.3f} and below {:.3f}",
          calls, scenario.workload.load, from, to);
    }
  }
  const bool is_called = std::any_of(scenario.functions.begin(), scenario.functions.end(),
                                     [](const FunctionModel& function) { return function.calls.per_second > 0; });
  if (scenario.workload.kind == WorkloadKind::kOwn && !is_called) {
    return fail(
        Errc::kInvalidArgument,
        "workload.kind is \"own\" and no function is called; give at least one [[function]] a rate_per_s above 0");
  }
  for (const double factor : scenario.device.slowdown) {
    if (!(factor >= 1)) return fail(Errc::kInvalidArgument, "slowdown {} of the device must be 1 or more", factor);
  }
  if (auto policy = make_policy(scenario.policy, scenario.policy_options); !policy) return fail(policy.error());
  return validate(scenario.core);
}

Status load_trace(Scenario& scenario) {
  if (scenario.workload.kind != WorkloadKind::kTrace || scenario.workload.trace) return {};
  auto trace = read_trace(scenario.workload.trace_path, scenario.workload.trace_format, scenario.functions,
                          scenario.seeds.front());
  if (!trace) return fail(trace.error());
  scenario.functions = trace->functions;
  scenario.duration = Duration(std::chrono::microseconds(trace->events.back().at_us)) + std::chrono::seconds(1);
  scenario.workload.trace = std::make_shared<const Trace>(*std::move(trace));
  return {};
}

std::unique_ptr<ArrivalSource> make_arrivals(const Scenario& scenario, std::uint64_t seed) {
  const Workload& workload = scenario.workload;
  Rng rng(seed);
  std::vector<Stream> streams;
  switch (workload.kind) {
    case WorkloadKind::kZipf: streams = zipf_streams(scenario, rng); break;
    case WorkloadKind::kAzureLike: streams = azure_streams(scenario, rng); break;
    case WorkloadKind::kFourCopies: streams = four_copies(scenario); break;
    case WorkloadKind::kFloodAndLight: streams = flood_and_light(scenario); break;
    case WorkloadKind::kClosedLoop:
      return std::make_unique<ClosedLoop>(scenario.functions.size(), workload.clients, workload.think, seed);
    case WorkloadKind::kTrace: return std::make_unique<TraceSource>(workload.trace);
    case WorkloadKind::kOwn: return std::make_unique<OpenLoop>(own_streams(scenario), workload.changes, rng.next());
  }
  if (workload.kind != WorkloadKind::kFloodAndLight) scale_to_load(streams, scenario);
  return std::make_unique<OpenLoop>(std::move(streams), workload.changes, rng.next());
}

}  // namespace fairlead::sim
