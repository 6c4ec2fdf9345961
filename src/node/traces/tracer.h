// Which requests leave a trace, what their functions are told of it, and where it goes.
//
// Who called decides where he said so (the sampled flag of either header); else the trace's id does, against the ratio. A request of which
// nobody said a trace begins one. A function is told of its run as the parent, so that what it does lies under the run.
//
// Example, with a ratio of 0: a call with traceparent ...-01 is traced, one with ...-00 or without a header is not, and is given on as it
// came.
//
// Threads: the io_context's; the exporter has one of its own, from start() on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/rng.h"
#include "node/traces/span_exporter.h"
#include "node/traces/traced_request.h"

namespace fairlead {

class Tracer {
 public:
  explicit Tracer(double ratio);
  Tracer(double ratio, std::uint64_t seed) : ratio_(ratio), rng_(seed) {}  // the same ids again, for tests

  // Before it nothing is sent. As SpanExporter::create.
  Status start(SpanExporterOptions options);

  // A request comes, with what its edge knows (Invocation::trace_id). Empty: it is not traced. Otherwise `trace_id` becomes what the function
  // is to be told.
  std::optional<SpanIds> begin(std::string& trace_id);
  // The same of a call that is given to another node, which makes a span of its own under this one.
  std::optional<SpanIds> begin_forward(std::string& trace_id);

  void over(TracedRequest request);
  SpanExporter::Counters counters() const;

 private:
  std::optional<SpanIds> choose(const std::string& trace_id);

  const double ratio_;
  Rng rng_;
  std::unique_ptr<SpanExporter> exporter_;
};

// For /metrics, in Prometheus' text format. Null: no traces, all zero.
std::string tracer_metrics(const Tracer* tracer);

}  // namespace fairlead
