// What people read of a status: of a node of any age, and of shares as they are delivered. Planted and caught: a function without a
// share in the table of shares; a field of another type that ends the program; "delivered" of one that says nothing.
#include "cli/status_text.h"

#include <gmock/gmock.h>

namespace fairlead::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(StatusText, OfANodeThatSaysNothingAllIsZero) {
  for (const json& status :
       {json::object(), json{{"counters", 7}, {"functions", "none"}, {"gpus", nullptr}, {"version", 1}}}) {
    EXPECT_THAT(summary_text(status), HasSubstr("queued 0  invoked 0  done 0"));
    EXPECT_EQ(gpus_text(status), "no GPU\n");
    EXPECT_EQ(functions_text(status), "no functions\n");
    EXPECT_EQ(tenants_text(status), "");
    EXPECT_EQ(shares_text(status), "");
  }
}

TEST(StatusText, SharesAreShownWithWhatIsDelivered) {
  const json share{{"quota_request_percent", 34},
                   {"quota_limit_percent", 60},
                   {"compute_percent", 50},
                   {"memory_mib", 1024},
                   {"seats", {1, 2}},
                   {"seats_wanted", 2},
                   {"delivered_percent", 33.86},
                   {"delivered_last_minute_percent", 31.04},
                   {"credit_seconds", 0.25},
                   {"gate_waits", 4},
                   {"gate_wait_seconds", 0.012}};
  json status{{"functions", {{{"name", "reserved"}, {"share", share}}}}};
  const std::string text = shares_text(status);
  EXPECT_THAT(text, AllOf(HasSubstr("reserved"), HasSubstr("34%"), HasSubstr("60%"), HasSubstr("50%")));
  EXPECT_THAT(text, AllOf(HasSubstr("1.0 GiB"), HasSubstr("2/2"), HasSubstr("1,2"), HasSubstr("33.9%")));
  EXPECT_THAT(text, AllOf(HasSubstr("31.0%"), HasSubstr("250"), HasSubstr("3 ms")));
  status["functions"][0]["share"].erase("delivered_percent");
  EXPECT_THAT(shares_text(status), Not(HasSubstr("33.9%")));
}

TEST(StatusText, ALimitAloneIsAShareAndNoShareIsNone) {
  const json limited{{"name", "limited"}, {"share", {{"quota_limit_percent", 40}, {"compute_percent", 100}}}};
  const json plain{{"name", "plain"}, {"share", {{"quota_limit_percent", 100}, {"seats_wanted", 0}}}};
  const std::string text = shares_text({{"functions", {limited, plain, {{"name", "older"}}}}});
  EXPECT_THAT(text, AllOf(HasSubstr("limited"), HasSubstr("40%"), Not(HasSubstr("plain")), Not(HasSubstr("older"))));
}

TEST(StatusText, WhoComputesOutsideOfItsTurnsIsNamedThoughItHasNoShare) {
  const json evaded{{"named", 1}, {"stopped", 1}, {"last", "instance 4 used 900 ms"}};
  EXPECT_THAT(shares_text({{"functions", {{{"name", "f"}, {"share", {{"turns_evaded", evaded}}}}}}}),
              HasSubstr("f computes outside of its turns: instance 4 used 900 ms; 1 of its instances were stopped"));
}

TEST(StatusText, WhatLacksSeatsIsNamed) {
  const json share{{"seats_wanted", 2}, {"seats", {1}}, {"lacking", "no device has 60 % of its time left"}};
  EXPECT_THAT(shares_text({{"functions", {{{"name", "f"}, {"share", share}}}}}),
              HasSubstr("f lacks seats: no device has 60 % of its time left\n"));
}

TEST(StatusText, WhoDoesNotStartIsNamedWithTheReason) {
  const json functions = {{{"name", "f"}, {"start_failure", "exit status 1"}}, {{"name", "g"}, {"start_failure", ""}}};
  EXPECT_THAT(start_failures_text({{"functions", functions}}),
              AllOf(HasSubstr("f does not start: exit status 1\n"), Not(HasSubstr("g does not"))));
}

TEST(StatusText, WarmStartsOfAnOlderNodeAreStarts) {
  const json counters{{"warm_starts", 6}, {"cold_starts", 2}};
  EXPECT_THAT(summary_text({{"counters", counters}}), HasSubstr("cold 25%"));
}

}  // namespace
}  // namespace fairlead::cli
