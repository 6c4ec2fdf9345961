// Sends requests that are over to an OpenTelemetry collector: OTLP over HTTP, in JSON, a batch each second or when it is full.
//
//   core thread ──push──> those that wait (bounded) ──a thread of its own──> JSON ──> collector
//
// The core thread copies a request into a queue, and that is all it does. Spans are written and answers are awaited on the
// exporter's thread; names are looked up beside it (net/host_resolver.h). What is kept and what is dropped: export_policy.h.
//
// Threads: push() and counters() from any; the others from one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/host_resolver.h"
#include "net/http_channel.h"
#include "node/traces/otlp_json.h"

namespace fairlead {

struct SpanExporterOptions {
  net::Endpoint endpoint;
  std::string target = "/v1/traces";
  ResourceAttributes resource;
  Duration period = std::chrono::seconds(1);
  Duration patience = std::chrono::seconds(10);  // for an answer
  Duration last_patience =
      std::chrono::seconds(1);  // for all that waits when the node stops; what is left then is lost
  net::HostResolver::LookUp look_up = net::look_up_host;
};

// "http://HOST:PORT", "https://HOST:PORT" or "unix:/PATH"; the first two with a path, without which it is /v1/traces. kInvalidArgument names
// the text and what is wrong.
struct Collector {
  net::Endpoint endpoint;
  std::string target;
};
Result<Collector> parse_collector(const std::string& url);

class SpanExporter {
 public:
  struct Counters {  // requests; the last one spans
    std::uint64_t exported = 0, dropped_full = 0, dropped_by_collector = 0;
    std::uint64_t rejected_spans = 0;  // of batches that the collector took
  };

  // kInvalidArgument: the system's authorities cannot be read, for https. Starts the thread.
  static Result<std::unique_ptr<SpanExporter>> create(SpanExporterOptions options);
  ~SpanExporter();  // after last_patience at most

  void push(TracedRequest request);
  Counters counters() const;

 private:
  class Sender;
  explicit SpanExporter(std::unique_ptr<Sender> sender);
  const std::unique_ptr<Sender> sender_;
};

}  // namespace fairlead
