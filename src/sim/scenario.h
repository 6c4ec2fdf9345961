// One experiment: devices, functions, a workload, a policy with its parameters, how long, which seeds. Read from a TOML
// file, from the command line's flags, or one of the built-in ones.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "decide/core/core.h"
#include "decide/queueing/policy.h"
#include "model/policy_options.h"
#include "sim/arrivals.h"
#include "sim/function_model.h"
#include "sim/trace.h"

namespace fairlead::sim {

struct DeviceModel {
  std::string name = "v100-16";
  Bytes memory = gib(16);
  double link_bytes_per_second = 12e9;             // each way, shared by what moves at one time
  Bytes region{0};                                 // memory leaves in whole regions of so much; 0: any amount
  std::vector<double> slowdown = {1.0, 1.3, 2.1};  // of each invocation at 1, 2, 3, ... in flight; then in proportion

  // Of what runs, for each instance that starts beside it; and of a start, for each run or start beside it.
  double start_slowdown = 1.1;

  // At `running` in flight; beyond the list the device is saturated and time is shared out.
  double slowdown_at(std::size_t running) const;
};

enum class WorkloadKind { kZipf, kAzureLike, kFourCopies, kFloodAndLight, kClosedLoop, kTrace, kOwn };

struct Workload {
  WorkloadKind kind = WorkloadKind::kZipf;
  double load = 0.6;               // offered: warm GPU seconds per second and device; kOwn: as the functions are called
  double exponent = 1.5;           // of Zipf
  double calls_per_s = 0;          // kAzureLike: of one device, at that load; 0: as the run times give
  double cv = 1.0;                 // of gaps, where the kind leaves it open
  std::size_t clients = 1;         // closed loop: per function
  Duration think{0};               // closed loop: mean pause
  std::vector<LoadPoint> changes;  // of the load over time
  std::string trace_path;
  std::string trace_format = "csv";
  std::shared_ptr<const Trace> trace;  // read by load_trace(); shared by all variants
};

struct Scenario {
  std::string name = "zipf";
  std::vector<FunctionModel> functions;
  std::map<std::string, TenantShare> tenants;  // of policies with tenants; those not named have weight 1
  Workload workload;
  DeviceModel device;
  std::size_t devices = 1;

  CoreOptions core;
  bool dynamic_slots = false;  // D follows the load, up to core.slots_per_gpu (sharing/dynamic_slots.h)
  std::string policy = std::string(policy_names().front());
  PolicyOptions policy_options;

  Duration duration = std::chrono::seconds(1800);  // arrivals end here; what was accepted is served to the end
  std::vector<std::uint64_t> seeds = {1};
  bool faults = false;  // random ones, checked after every event (faults.h)
  double noise = 0.1;   // standard deviation of run and start times, relative
};

// The names of the built-in ones, and one of them, with the node's settings (preset.h). "a" to "f" are those that policies are compared on: Zipf at 1.1 and 0.8
// of one device, Azure-like at 1.0, 0.8 and 0.7, Zipf at 0.6 with one slot, with pools of 8, 12 and 32 instances.
std::vector<std::string> built_in_scenarios();
bool is_built_in(const std::string& name);
Result<Scenario> built_in_scenario(const std::string& name);

// Reads a scenario file over `scenario`. kNotFound: there is no such file, or it is a folder. kInvalidArgument names the key, its value and the bound, and unknown keys.
Result<Scenario> read_scenario(const std::string& path, Scenario scenario);
// The same of what such a file says; `origin` is what errors call it, and a trace is named from where that lies.
Result<Scenario> parse_scenario(std::string_view text, const std::string& origin, Scenario scenario);
Status validate(const Scenario& scenario);

// Where the scenario names a trace: reads it, and takes its functions and its length. No effect otherwise. What the trace
// does not say of a function is taken from the scenario's function of that name, else from its first.
Status load_trace(Scenario& scenario);

// The arrivals of one run. REQUIRES: load_trace() was called.
std::unique_ptr<ArrivalSource> make_arrivals(const Scenario& scenario, std::uint64_t seed);

}  // namespace fairlead::sim
