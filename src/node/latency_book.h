// How long requests of each function waited, how long instances took to start and memory to come back: histograms for /metrics, each bucket
// with the last request in it as an exemplar, so that a bar of a chart leads to a request (`fairlead why`) or to its trace.
//
// A function costs nothing until it is called, then about 1 KiB for a histogram with an exemplar in each bucket.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edge/request_service.h"
#include "model/trace_context.h"

namespace fairlead {

inline constexpr double kLatencyBucketsSeconds[] = {0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                    0.5,    1,     2.5,   5,    10,   60};

class LatencyBook {
 public:
  enum class What { kQueue, kColdStart, kSwap, kFirstByte };
  static constexpr std::size_t kKinds = 4;

  // A request that is over. `trace`: of one that is traced; null: its exemplar is its id.
  void add(const RequestTrace& request, const TraceContext* trace);
  void forget(std::string_view flow);  // its name, "hello" or of a version "hello:3"

  // Prometheus' text format; exemplars are OpenMetrics' alone.
  std::string metrics(bool with_exemplars) const;

 private:
  struct Exemplar {
    std::string label;  // trace_id="...", or request_id="..."
    double seconds = 0;
    std::int64_t at_ms = 0;
  };
  struct Histogram {
    std::vector<std::uint64_t> counts;  // empty: none
    std::vector<Exemplar> exemplars;
    Duration sum{0};
  };
  using Histograms = std::array<Histogram, kKinds>;

  static void count(Histogram& histogram, Duration time, const RequestTrace& request, const TraceContext* trace);
  static void write(std::string& out, std::string_view name, std::string_view function, const Histogram& histogram,
                    bool with_exemplars);

  std::map<std::string, Histograms, std::less<>> functions_;
};

}  // namespace fairlead
