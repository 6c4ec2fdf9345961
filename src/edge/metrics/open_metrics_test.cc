#include "edge/metrics/open_metrics.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(OpenMetrics, IsGivenToWhoPrefersIt) {
  EXPECT_TRUE(wants_open_metrics("application/openmetrics-text"));
  EXPECT_TRUE(
      wants_open_metrics("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                         "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1"))
      << "Prometheus' own";
  for (const char* accept : {"", "*/*", "text/plain", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                             "application/openmetrics-text;q=0.2,text/plain;q=0.5", "application/openmetrics-text;q=0",
                             "application/openmetrics-text;version=2.0.0", "application/openmetrics-textile",
                             ";;;,,,=", "text/plain;q=zero, application/openmetrics-text;q=0.9"}) {
    EXPECT_FALSE(wants_open_metrics(accept)) << accept;
  }
}

TEST(OpenMetrics, CountersLoseTheirEndingAndHelpIsEscaped) {
  EXPECT_EQ(to_open_metrics("# HELP a_total Of \"b\".\n# TYPE a_total counter\na_total{f=\"x\"} 1\n"
                            "# HELP g What.\n# TYPE g gauge\ng 2\n"),
            "# TYPE a counter\n# HELP a Of \\\"b\\\".\na_total{f=\"x\"} 1\n"
            "# TYPE g gauge\n# HELP g What.\ng 2\n# EOF\n");
  EXPECT_EQ(to_open_metrics("# HELP a A.\n# TYPE a counter\na 1\n"), "# TYPE a unknown\n# HELP a A.\na 1\n# EOF\n");
  EXPECT_EQ(to_open_metrics(""), "# EOF\n");
}

TEST(OpenMetrics, BoundsAreFloatingPointAndExemplarsStay) {
  EXPECT_EQ(
      to_open_metrics("h_bucket{f=\"x\",le=\"10\"} 1 # {trace_id=\"ab\"} 0.5 1.5\nh_bucket{f=\"x\",le=\"0.5\"} 1\n"
                      "h_bucket{f=\"x\",le=\"+Inf\"} 1\nh_bucket{file=\"9\"} 1\n"),
      "h_bucket{f=\"x\",le=\"10.0\"} 1 # {trace_id=\"ab\"} 0.5 1.5\nh_bucket{f=\"x\",le=\"0.5\"} 1\n"
      "h_bucket{f=\"x\",le=\"+Inf\"} 1\nh_bucket{file=\"9\"} 1\n# EOF\n");
}

}  // namespace
}  // namespace fairlead
