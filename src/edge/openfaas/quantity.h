// Amounts as Kubernetes and Go write them.
//
//   "128Mi" -> 134217728    "1G" -> 1000000000    "1.5Ki" -> 1536    "500m" -> 1 (half a byte, rounded up)    "2e3" -> 2000
//   "90s" -> 90 s           "1m30s" -> 90 s       "250ms" -> 0.25 s  "60" -> 60 s, as OpenFaaS's watchdog reads it
//
// Source: k8s.io/apimachinery resource.Quantity; Go's time.ParseDuration. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::openfaas {

inline constexpr std::int64_t kMostQuantity = std::int64_t{1} << 60;

// At least 0, at most kMostQuantity, fractions rounded up. kInvalidArgument names `field`, the text and what it must be.
Result<std::int64_t> parse_quantity(std::string_view field, std::string_view text);

// At least 0, at most ten years.
Result<Duration> parse_go_duration(std::string_view field, std::string_view text);

}  // namespace fairlead::openfaas
