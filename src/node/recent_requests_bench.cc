// What `fairlead why` costs the core thread: of a request that waited while all that is kept ran, and of one that waited
// while a few did.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "node/recent_requests.h"

namespace fairlead {
namespace {

Instant at(std::size_t seconds) {
  return Instant(std::chrono::seconds(seconds));
}

// Eight tenants of 50 functions, with as many requests as are kept; the argument: so many of them ran while it waited.
void why_a_request_waited(benchmark::State& state) {
  RecentRequests requests;
  const auto ahead = static_cast<std::size_t>(state.range(0));
  for (std::size_t i = 1; i < RecentRequests::kMost; ++i) {
    requests.add({.request_id = fmt::format("request-{}", i),
                  .function = fmt::format("function-with-a-name-{}", i % 50),
                  .tenant = fmt::format("tenant-{}", i % 8)},
                 {.arrived = at(i), .chosen = at(i), .delivered = at(i), .over = at(i)});
  }
  requests.add({.request_id = "it", .function = "f", .tenant = "tenant-0"},
               {.arrived = at(RecentRequests::kMost - 1 - ahead),
                .chosen = at(RecentRequests::kMost + 1),
                .delivered = at(RecentRequests::kMost + 1),
                .over = at(RecentRequests::kMost + 1)});
  for (auto _ : state) benchmark::DoNotOptimize(requests.trace("it"));
}
BENCHMARK(why_a_request_waited)->Arg(100)->Arg(RecentRequests::kMost - 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fairlead
