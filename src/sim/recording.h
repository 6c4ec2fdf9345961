// A node's history as a trace and a scenario that `fairlead sim` runs as they are: the same arrivals, the functions as they
// were measured, the node's own settings.
//
// What is learnt, and from what:
//   run time of an invocation   its time from delivery to answer, without what company cost it (company.h), of a host-warm
//                               one its GPU time; for a cold one the function's mean stands
//   cold start of a function    the time its instances took to start, and by how much a first run is longer than others:
//                               medians
//   share charged as GPU time   GPU time over run time
//   slowdown of the device      from the runs (company.h)
//   noise                       relative deviation of starts from their function's median; runs have their own times
//
// Time: given. Determinism: the same history gives the same files, byte for byte.
#pragma once

#include <string>
#include <vector>

#include "decide/core/invocation_record.h"
#include "sim/scenario.h"

namespace fairlead::sim {

struct Recording {
  // In order of arrival, from 0; service where it is known.
  std::vector<Arrival> arrivals;
  // The functions of these arrivals, as measured; the settings are the node's.
  Scenario scenario;
  std::size_t left_out = 0;        // never ran, and did not fail to: cancelled, or its function was deleted
  std::vector<std::string> notes;  // what could not be measured, and what stands for it
};

// `node`: its settings and devices, and of each function what it knows without measuring (memory, weight, tenant,
// objective). kNotFound when nothing is left to play.
Result<Recording> make_recording(const std::vector<InvocationRecord>& records, Scenario node);

// "at_s,function,service_s" and a line for each arrival, in seconds: the format csv of trace.h.
std::string trace_csv(const Recording& recording);

// Read back by read_scenario(): equal settings. `trace`: the name of the trace, from where the scenario will be.
std::string scenario_toml(const Scenario& scenario, const std::string& trace);

}  // namespace fairlead::sim
