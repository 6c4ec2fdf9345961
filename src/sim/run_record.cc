#include "sim/run_record.h"

#include <algorithm>

namespace fairlead::sim {
namespace {

constexpr int kSamples = 240;           // over the time in which invocations arrive
constexpr std::size_t kTimeline = 600;  // invocations

std::vector<double> weights_of(const Scenario& scenario) {
  std::vector<double> weights;
  for (const FunctionModel& function : scenario.functions) weights.push_back(function.weight);
  return weights;
}

void count_start(FunctionResult& result, StartKind start) {
  switch (start) {
    case StartKind::kCold: ++result.cold; break;
    case StartKind::kHostWarm: ++result.host_warm; break;
    case StartKind::kDeviceWarm: ++result.device_warm; break;
  }
}

}  // namespace

RunRecord::RunRecord(const Scenario& scenario, std::uint64_t seed)
    : scenario_(scenario), gaps_(weights_of(scenario)), last_delivered_(scenario.functions.size()) {
  result_.seed = seed;
  for (const FunctionModel& function : scenario.functions) result_.functions.push_back({.name = function.name});
}

void RunRecord::arrived(Instant now, std::size_t function) {
  ++result_.functions[function].arrived;
  gaps_.queued(now, function);
  ++queued_;
}

void RunRecord::refused(Instant now, std::size_t function) {
  ++result_.functions[function].refused;
  gaps_.unqueued(now, function);
  --queued_;
}

void RunRecord::delivered(Instant now, const OpenInvocation& invocation) {
  --queued_;
  gaps_.unqueued(now, invocation.function);
  gaps_.started(now, invocation.function);
  // It has been the head of its queue since the one before it went, or since it came.
  Instant& head_since = last_delivered_[invocation.function];
  head_since = std::max(head_since, invocation.arrived);
  FunctionResult& result = result_.functions[invocation.function];
  result.greatest_wait = std::max(result.greatest_wait, now - head_since);
  head_since = now;
}

void RunRecord::completed(Instant now, const OpenInvocation& invocation, const Complete& complete) {
  FunctionResult& result = result_.functions[invocation.function];
  forgotten(now, invocation);
  if (complete.outcome != OutcomeKind::kSuccess) {
    ++result.failed;
    return;
  }
  ++result.answered;
  count_start(result, complete.start);
  const Duration latency = now - invocation.arrived;
  const std::size_t bucket = Histogram::bucket_of(latency);
  result.latency.add(latency, bucket);
  result_.latency.add(latency, bucket);
  result.service_seconds += to_seconds(complete.service);
  if (result_.timeline.size() < kTimeline) {
    result_.timeline.push_back({invocation.gpu.value(), invocation.function,
                                to_seconds(invocation.delivered - Instant{}), to_seconds(now - Instant{}),
                                complete.start == StartKind::kCold});
  }
}

void RunRecord::forgotten(Instant now, const OpenInvocation& invocation) {
  if (invocation.gpu) {
    gaps_.ended(now, invocation.function);
  } else {
    gaps_.unqueued(now, invocation.function);
    --queued_;
  }
}

void RunRecord::comes_again(std::size_t function) {
  --result_.functions[function].arrived;
  ++result_.restarts_survived;
}

RunResult RunRecord::take(Instant now, const CoreCounters& counters, double busy_seconds) {
  gaps_.advance(now);
  result_.seconds = to_seconds(now - Instant{});
  result_.busy_seconds = busy_seconds;
  result_.worst_gap = gaps_.worst();
  result_.mean_gap = gaps_.mean();
  result_.gap_windows = gaps_.windows();
  result_.gaps = gaps_.each();
  result_.evictions = counters.evictions;
  result_.swap_ins = counters.memory.swap_ins;
  result_.swap_outs = counters.memory.swap_outs;
  result_.prefetches_in_time = counters.memory.prefetches_in_time;
  result_.prefetches_late = counters.memory.prefetches_late;
  result_.swap_outs_in_vain = counters.memory.swap_outs_in_vain;
  result_.swapped_gib = static_cast<double>(counters.memory.bytes_in + counters.memory.bytes_out) / (1 << 30);
  return std::move(result_);
}

void RunRecord::sample(Instant now) {
  next_sample_ = now + scenario_.duration / kSamples;
  Sample sample{to_seconds(now - Instant{}), queued_, {}};
  sample.served.reserve(result_.functions.size());
  for (const FunctionResult& function : result_.functions)
    sample.served.push_back(static_cast<float>(function.service_seconds));
  result_.samples.push_back(std::move(sample));
}

}  // namespace fairlead::sim
