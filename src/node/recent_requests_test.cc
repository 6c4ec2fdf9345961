// What is kept of requests that are over: whose, how many, and who is found to have run while one waited.
#include "node/recent_requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

Instant at(int seconds) {
  return Instant(std::chrono::seconds(1000 + seconds));
}

class RecentRequestsTest : public ::testing::Test {
 protected:
  struct Ran {
    int arrived, delivered, over;  // seconds; delivered -1: it never ran
  };
  void add(const std::string& id, const std::string& function, Ran ran, const std::string& tenant = "a") {
    RequestTrace trace{.request_id = id, .function = function, .tenant = tenant};
    trace.gpu_time = 1s;
    const bool has_run = ran.delivered >= 0;
    requests.add(std::move(trace), {.arrived = at(ran.arrived),
                                    .chosen = at(has_run ? ran.delivered : ran.over),
                                    .delivered = has_run ? at(ran.delivered) : Instant(),
                                    .over = at(ran.over)});
  }
  // "f 1+2" for each: ran + chosen.
  std::string ahead(const std::string& id) {
    std::string text;
    const RequestTrace trace = requests.trace(id).value();
    for (const AheadOf& of : trace.ahead) {
      text += fmt::format("{} {}+{};", of.function, of.ran, of.chosen);
    }
    return text;
  }
  RecentRequests requests;
};

TEST_F(RecentRequestsTest, WhoRanWhileARequestWaitedWasAheadOfIt) {
  add("before", "f", {0, 0, 9});    // over before it came
  add("first", "g", {11, 12, 13});  // came later, and was chosen first
  add("second", "g", {9, 13, 14});
  add("running", "f", {0, 5, 15});  // ran when it came
  add("never", "h", {9, -1, 20});   // did not run
  add("after", "f", {11, 21, 22});  // was chosen later
  add("it", "x", {10, 20, 30});
  EXPECT_EQ(ahead("it"), "g 0+2;f 1+0;");
  EXPECT_EQ(requests.trace("it").value().ahead[0].gpu_time, 2s);
  EXPECT_TRUE(requests.trace("it").value().is_ahead_whole);
}

TEST_F(RecentRequestsTest, WhatRunsStillIsAheadToo) {
  add("it", "x", {10, 20, 30});
  requests.set_running([](const RecentRequests::Visit& visit) {
    visit({.function = "long", .tenant = "b", .delivered = at(1)});
    visit({.function = "late", .tenant = "b", .delivered = at(25)});
  });
  EXPECT_EQ(ahead("it"), "long 1+0;");
}

TEST_F(RecentRequestsTest, ATenantHasSoManyAndTakesNobodysPlace) {
  add("b's", "g", {0, 1, 2}, "b");
  for (std::size_t i = 0; i <= RecentRequests::kMostOfTenant; ++i) add(fmt::format("a{}", i), "f", {0, 1, 2});
  EXPECT_FALSE(requests.trace("a0")) << "the oldest has gone";
  EXPECT_TRUE(requests.trace("a1"));
  EXPECT_TRUE(requests.trace("b's"));
  EXPECT_EQ(requests.size(), RecentRequests::kMostOfTenant + 1);
}

TEST_F(RecentRequestsTest, WhereAllAreTooManyWhoHasMostLosesHisOldest) {
  constexpr std::size_t kTenants = 2 * RecentRequests::kMost / RecentRequests::kMostOfTenant;
  add("lone", "f", {0, 1, 2}, "lone");
  for (std::size_t i = 0; i < RecentRequests::kMostOfTenant; ++i) {
    for (std::size_t tenant = 0; tenant < kTenants; ++tenant)
      add(fmt::format("{}-{}", tenant, i), "f", {0, 1, 2}, std::to_string(tenant));
  }
  EXPECT_EQ(requests.size(), RecentRequests::kMost);
  EXPECT_TRUE(requests.trace("lone"));
  for (std::size_t tenant = 0; tenant < kTenants; ++tenant) {
    EXPECT_TRUE(requests.trace(fmt::format("{}-{}", tenant, RecentRequests::kMostOfTenant - 1)));
  }
}

TEST_F(RecentRequestsTest, WhereSomeAreForgottenItSaysSo) {
  for (std::size_t i = 0; i <= RecentRequests::kMostOfTenant; ++i) add(fmt::format("a{}", i), "f", {0, 1, 50}, "a");
  add("it", "x", {10, 20, 30}, "b");
  EXPECT_FALSE(requests.trace("it").value().is_ahead_whole);
  add("later", "x", {60, 61, 62}, "b");
  EXPECT_TRUE(requests.trace("later").value().is_ahead_whole);
}

// The attempts of an event have one id.
TEST_F(RecentRequestsTest, OfSeveralAttemptsTheLastIsKnown) {
  add("event", "first", {0, 1, 2});
  add("event", "second", {10, 11, 12});
  EXPECT_EQ(requests.trace("event").value().function, "second");
  for (std::size_t i = 0; i < RecentRequests::kMostOfTenant - 1; ++i) add(fmt::format("a{}", i), "f", {0, 1, 2});
  EXPECT_EQ(requests.trace("event").value().function, "second") << "the first attempt is forgotten";
  add("one more", "f", {0, 1, 2});
  EXPECT_FALSE(requests.trace("event"));
}

TEST_F(RecentRequestsTest, TheNewestOfAFunctionAreListedWhosesoeverTheyAre) {
  const auto ids = [this](const RecentQuery& query) {
    std::string text;
    for (const RequestTrace& trace : requests.recent(query)) text += trace.request_id + ";";
    return text;
  };
  add("a1", "f", {0, 1, 2}, "a");
  add("b1", "f", {0, 1, 5}, "b");
  add("a2", "g", {0, 1, 6}, "a");
  add("a3", "f", {0, -1, 9}, "a");
  EXPECT_EQ(ids({}), "a3;a2;b1;a1;");
  EXPECT_EQ(ids({.function = "f"}), "a3;b1;a1;");
  EXPECT_EQ(ids({.tenant = "a", .function = "f"}), "a3;a1;");
  EXPECT_EQ(ids({.most = 2}), "a3;a2;");
  EXPECT_EQ(ids({.tenant = "nobody"}), "");
}

TEST_F(RecentRequestsTest, WhatAFunctionSaysOfItsFailureHasABound) {
  RequestTrace trace{.request_id = "it", .function = "f", .tenant = "a"};
  trace.failure = std::string(1 << 20, 'x');
  requests.add(std::move(trace), {.arrived = at(0), .chosen = at(1), .delivered = at(1), .over = at(2)});
  EXPECT_LE(requests.trace("it").value().failure.size(), RecentRequests::kMostRequestBytes);
}

}  // namespace
}  // namespace fairlead
