// A closed-loop HTTP/1.1 load generator on keep-alive connections: one thread, epoll, no library, so that what it costs
// beside a server on two cores is small and known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::bench {

struct LoadOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::vector<std::string> paths;  // requested in turn, POST
  std::string body = "{}";
  std::vector<std::string> headers;  // "Name: value"
  std::string tls_ca;                // speak TLS, trusting this file; "": in the clear
  std::size_t connections = 1;
  std::size_t warm_up = 1000;  // answers before measuring
  std::size_t requests = 10'000;
};

struct LoadResult {
  std::vector<Duration> latencies;  // one per measured request, unordered
  Duration elapsed{0};              // first measured request to last answer
  std::uint64_t failures = 0;       // answers that were not 2xx, or carried X-Amz-Function-Error
};

// kIo when the server cannot be reached or closes a connection.
Result<LoadResult> run_load(const LoadOptions& options);

// p in [0, 1]; reorders `values`.
Duration percentile(std::vector<Duration>& values, double p);

}  // namespace fairlead::bench
