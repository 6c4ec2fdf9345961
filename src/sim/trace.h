// Traces of real systems as workloads. Public formats and a plain one; each gives functions, with the run times the trace
// knows, and arrivals.
//
//   csv          at_s,function[,service_s]                      a heading line is optional; any order
//   azure-2019   a folder: invocations_per_function_md*.csv (counts per minute), function_durations_percentiles*.csv
//   azure-2021   app,func,end_timestamp,duration                seconds
//   azure-llm    TIMESTAMP,ContextTokens,GeneratedTokens        one function; 1 ms per 10 context, 20 ms per generated token
//   servegen     a folder of clients' chunk-*-trace.csv (time, rate, cv, distribution and its parameters): one function each
//   gentd26      lora_request_trace.csv of Alibaba's 2026 generation trace: one function per model version
//
// What a format does not say (cold start, memory, run times where there are none) is taken from the function of the same
// name among the known ones, else from the first of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/arrivals.h"
#include "sim/function_model.h"

namespace fairlead::sim {

// 16 bytes: a day of ten million invocations is 160 MB.
struct TraceEvent {
  std::uint64_t at_us = 0;
  std::uint32_t function = 0;
  float service_s = -1;  // below 0: as the function takes
};

struct Trace {
  std::vector<FunctionModel> functions;
  std::vector<TraceEvent> events;  // by time
};

std::vector<std::string> trace_formats();

// kInvalidArgument names the file, the line, the field and what was expected; kNotFound a missing file. `seed` places
// invocations within what a format counts together.
Result<Trace> read_trace(const std::string& path, const std::string& format, const std::vector<FunctionModel>& known,
                         std::uint64_t seed);

class TraceSource final : public ArrivalSource {
 public:
  explicit TraceSource(std::shared_ptr<const Trace> trace) : trace_(std::move(trace)) {}
  std::optional<Arrival> next() override;

 private:
  const std::shared_ptr<const Trace> trace_;  // shared by the runs of all seeds and variants
  std::size_t next_ = 0;
};

}  // namespace fairlead::sim
