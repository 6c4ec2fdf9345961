#include "node/latency_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace fairlead {
namespace {

struct Family {
  std::string_view name, help;
};
constexpr Family kFamilies[LatencyBook::kKinds] = {
    {"fairlead_queue_time_seconds", "From the arrival of a call to the choice of an instance for it."},
    {"fairlead_cold_start_seconds", "How long instances took to start that calls waited for."},
    {"fairlead_swap_seconds", "How long device memory of a call's instance took to come back to the device."},
    {"fairlead_first_byte_seconds", "From the arrival of a call to the first byte of its streamed answer."}};

std::string exemplar_label(const RequestTrace& request, const TraceContext* trace) {
  if (trace == nullptr) return "request_id=\"" + request.request_id + "\"";
  return "trace_id=\"" + to_hex(trace->trace_high) + to_hex(trace->trace_low) + "\"";
}

}  // namespace

void LatencyBook::count(Histogram& histogram, Duration time, const RequestTrace& request, const TraceContext* trace) {
  const double seconds = to_seconds(time);
  const std::size_t bucket = static_cast<std::size_t>(
      std::lower_bound(std::begin(kLatencyBucketsSeconds), std::end(kLatencyBucketsSeconds), seconds) -
      std::begin(kLatencyBucketsSeconds));
  histogram.counts.resize(std::size(kLatencyBucketsSeconds) + 1);
  histogram.exemplars.resize(histogram.counts.size());
  ++histogram.counts[bucket];
  histogram.sum += time;
  histogram.exemplars[bucket] = {
      .label = exemplar_label(request, trace), .seconds = seconds, .at_ms = request.accepted_ms};
}

void LatencyBook::add(const RequestTrace& request, const TraceContext* trace) {
  Histograms& of =
      functions_[request.version == 0 ? request.function : fmt::format("{}:{}", request.function, request.version)];
  const auto add = [&](What what, Duration time) { count(of[static_cast<std::size_t>(what)], time, request, trace); };
  add(What::kQueue, request.queue);
  if (request.instance_start > Duration(0)) add(What::kColdStart, request.instance_start);
  if (request.memory > Duration(0)) add(What::kSwap, request.memory);
  if (request.first_byte) add(What::kFirstByte, *request.first_byte);
}

void LatencyBook::forget(std::string_view flow) {
  const auto at = functions_.find(flow);
  if (at != functions_.end()) functions_.erase(at);
}

void LatencyBook::write(std::string& out, std::string_view name, std::string_view function, const Histogram& histogram,
                        bool with_exemplars) {
  auto at = std::back_inserter(out);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    total += histogram.counts[i];
    fmt::format_to(at, "{}_bucket{{function=\"{}\",le=\"", name, function);
    i < std::size(kLatencyBucketsSeconds) ? fmt::format_to(at, "{}", kLatencyBucketsSeconds[i])
                                          : fmt::format_to(at, "+Inf");
    fmt::format_to(at, "\"}} {}", total);
    const Exemplar& exemplar = histogram.exemplars[i];
    if (with_exemplars && !exemplar.label.empty()) {
      fmt::format_to(at, " # {{{}}} {} {:.3f}", exemplar.label, exemplar.seconds,
                     static_cast<double>(exemplar.at_ms) / 1000);
    }
    out += '\n';
  }
  fmt::format_to(at, "{0}_sum{{function=\"{1}\"}} {2}\n{0}_count{{function=\"{1}\"}} {3}\n", name, function,
                 to_seconds(histogram.sum), total);
}

std::string LatencyBook::metrics(bool with_exemplars) const {
  std::string out;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const auto& [name, help] = kFamilies[kind];
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
    for (const auto& [function, histograms] : functions_) {
      if (!histograms[kind].counts.empty()) write(out, name, function, histograms[kind], with_exemplars);
    }
  }
  return out;
}

}  // namespace fairlead
