#include "node/traces/tracer.h"

#include <fmt/format.h>
#include <sodium.h>

#include <utility>

#include "node/traces/export_policy.h"

namespace fairlead {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

std::string told(TraceContext context, std::uint64_t parent) {
  context.span = parent;
  context.is_sampled = true;
  return to_amzn_trace(context);
}

}  // namespace

Tracer::Tracer(double ratio) : Tracer(ratio, random_seed()) {}

Status Tracer::start(SpanExporterOptions options) {
  auto exporter = SpanExporter::create(std::move(options));
  if (!exporter) return fail(exporter.error());
  exporter_ = *std::move(exporter);
  return {};
}

std::optional<SpanIds> Tracer::choose(const std::string& trace_id) {
  const auto caller = parse_amzn_trace(trace_id);
  SpanIds ids;
  if (caller) {
    ids.caller = *caller;
  } else {
    ids.caller.trace_high = rng_.next();
    ids.caller.trace_low = rng_.next() | 1;  // never all zero
  }
  if (!ids.caller.is_sampled.value_or(is_sampled(ids.caller.trace_low, ratio_))) return std::nullopt;
  ids.root = rng_.next() | 1;
  ids.work = rng_.next() | 1;
  return ids;
}

std::optional<SpanIds> Tracer::begin(std::string& trace_id) {
  const auto ids = choose(trace_id);
  if (ids) trace_id = told(ids->caller, ids->work);
  return ids;
}

std::optional<SpanIds> Tracer::begin_forward(std::string& trace_id) {
  auto ids = choose(trace_id);
  if (!ids) return std::nullopt;
  ids->work = ids->root;
  trace_id = told(ids->caller, ids->root);
  return ids;
}

void Tracer::over(TracedRequest request) {
  if (exporter_) exporter_->push(std::move(request));
}

SpanExporter::Counters Tracer::counters() const {
  return exporter_ ? exporter_->counters() : SpanExporter::Counters();
}

std::string tracer_metrics(const Tracer* tracer) {
  const SpanExporter::Counters counters = tracer != nullptr ? tracer->counters() : SpanExporter::Counters();
  return fmt::format(
      "# HELP fairlead_traced_requests_total Traced requests by what became of their spans (--otlp): exported; dropped "
      "because too many waited, or because the collector did not take them.\n"
      "# TYPE fairlead_traced_requests_total counter\n"
      "fairlead_traced_requests_total{{result=\"exported\"}} {}\n"
      "fairlead_traced_requests_total{{result=\"dropped_full\"}} {}\n"
      "fairlead_traced_requests_total{{result=\"dropped_by_collector\"}} {}\n"
      "# HELP fairlead_trace_spans_rejected_total Spans that the collector rejected of those it took.\n"
      "# TYPE fairlead_trace_spans_rejected_total counter\n"
      "fairlead_trace_spans_rejected_total {}\n",
      counters.exported, counters.dropped_full, counters.dropped_by_collector, counters.rejected_spans);
}

}  // namespace fairlead
