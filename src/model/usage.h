// What a tenant's functions used of the GPUs, hour by hour.
//
// Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace fairlead {

struct UsageKey {
  std::string tenant;
  std::int64_t hour = 0;  // since 1970, in UTC
  std::string function;   // bare name, of all its versions

  auto operator<=>(const UsageKey&) const = default;
};

struct UsageCounts {
  std::uint64_t calls = 0;
  std::uint64_t errors = 0;        // of them, those that did not succeed
  Duration gpu_time{0};            // charged
  std::int64_t memory_kib_ms = 0;  // device memory held by its instances, times how long

  UsageCounts& operator+=(const UsageCounts& other) {
    calls += other.calls;
    errors += other.errors;
    gpu_time += other.gpu_time;
    memory_kib_ms += other.memory_kib_ms;
    return *this;
  }
  bool operator==(const UsageCounts&) const = default;
};

// GB: 10^9 bytes.
constexpr double gb_seconds(const UsageCounts& counts) {
  return static_cast<double>(counts.memory_kib_ms) * 1024e-12;
}

struct UsageRow {
  UsageKey key;
  UsageCounts counts;

  bool operator==(const UsageRow&) const = default;
};

struct UsageQuery {
  std::optional<std::string> tenant;                   // empty: of all
  std::int64_t from_hour = 0, until_hour = INT64_MAX;  // the second one is out
  std::optional<UsageKey> after;                       // the last row of the page before
  std::size_t most = 10'000;                           // rows
};

}  // namespace fairlead
