// OpenMetrics 1.0, for those who ask for it: it alone has exemplars. The same families as in Prometheus' text format, written anew where the
// two differ: a counter's family is named without _total, help is escaped, bounds are floating point numbers, and the text has an end.
//
// Source: github.com/prometheus/OpenMetrics, specification/OpenMetrics.md.
#pragma once

#include <string>
#include <string_view>

namespace fairlead {

inline constexpr std::string_view kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Whether an Accept header wants it before plain text.
bool wants_open_metrics(std::string_view accept);

// Of a text in which HELP and TYPE precede each family's samples.
std::string to_open_metrics(std::string_view text);

}  // namespace fairlead
