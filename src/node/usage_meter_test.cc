#include "node/usage_meter.h"

#include <gtest/gtest.h>

#include "net/http_test_client.h"
#include "store/sqlite.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kHourMs = 3'600'000;

class UsageMeterTest : public testing::Test {
 protected:
  UsageMeterTest() { open(); }

  void open() {
    meter_ =
        UsageMeter::open(io_, {.state_dir = folder_.path(), .days = 2, .wall_clock_ms = [this] { return now_ms_; }})
            .value();
  }
  std::vector<UsageRow> rows(UsageQuery query = {}) {
    std::optional<std::vector<UsageRow>> found;
    meter_->usage(std::move(query), [&](Result<std::vector<UsageRow>> read) { found = std::move(read).value(); });
    EXPECT_TRUE(net::run_until(io_, [&] { return found.has_value(); }));
    return found.value_or(std::vector<UsageRow>());
  }

  store::TestFolder folder_;
  boost::asio::io_context io_{1};
  std::int64_t now_ms_ = 1000 * kHourMs;
  std::unique_ptr<UsageMeter> meter_;
};

TEST_F(UsageMeterTest, AddsUpByTenantHourAndFunction) {
  meter_->called("a", "f", false, 2ms);
  meter_->called("a", "f", true, 3ms);
  meter_->charged("a", "f", 1ms);
  meter_->called("b", "f", false, 5ms);
  now_ms_ += kHourMs;
  meter_->called("a", "f", false, 7ms);
  const auto found = rows();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].key, (UsageKey{"a", 1000, "f"}));
  EXPECT_EQ(found[0].counts, (UsageCounts{.calls = 2, .errors = 1, .gpu_time = 6ms}));
  EXPECT_EQ(found[1].counts.gpu_time, 7ms);
  EXPECT_EQ(found[2].key.tenant, "b");
  EXPECT_EQ(rows({.tenant = "b"}).size(), 1u);
}

TEST_F(UsageMeterTest, WhoAsksWithoutEndKeepsNobodyElseWaiting) {
  std::size_t answered = 0, refused = 0;
  const auto count = [&](const Result<std::vector<UsageRow>>& read) { ++(read ? answered : refused); };
  for (int i = 0; i < 1000; ++i) meter_->usage({.tenant = "a"}, count);
  EXPECT_EQ(refused, 1000 - kMostUsageReads / 2);
  meter_->usage({.tenant = "b"}, count);
  EXPECT_TRUE(net::run_until(io_, [&] { return answered == kMostUsageReads / 2 + 1; }));
  meter_->usage({.tenant = "a"}, count);
  EXPECT_EQ(refused, 1000 - kMostUsageReads / 2) << "its places are free again";
}

TEST_F(UsageMeterTest, MemoryCountsForAsLongAsItWasHeld) {
  const Instant begin = Instant() + 1h;
  EXPECT_EQ(meter_->sample_begins(begin), 0ns);
  Duration all{0};
  for (int i = 1; i <= 50; ++i) {  // as samples come: not exactly at their period
    const Duration elapsed = meter_->sample_begins(begin + i * 203ms);
    all += elapsed;
    meter_->held("a", "f", gib(2), elapsed);
  }
  EXPECT_EQ(all, 50 * 203ms);
  const auto found = rows();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(gb_seconds(found[0].counts), 2 * 1.073741824 * 10.15, 0.001);
  EXPECT_EQ(found[0].counts.calls, 0u);
}

TEST_F(UsageMeterTest, AGracefulEndLosesNothing) {
  for (int i = 0; i < 1000; ++i) meter_->called("a", "f", false, 1ms);
  meter_.reset();
  open();
  meter_->called("a", "f", false, 1ms);
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(rows()[0].counts.calls, 1001u);
}

TEST_F(UsageMeterTest, WhoMakesNamesFillsNoDisk) {
  const std::size_t names = kMostUsageNames * 3;
  for (std::size_t i = 0; i < names; ++i) meter_->called("a", "f" + std::to_string(i), false, 1ms);
  meter_->called("b", "f1", false, 1ms);
  const auto found = rows({.tenant = "a"});
  EXPECT_EQ(found.size(), kMostUsageNames + 1);
  std::uint64_t calls = 0;
  for (const UsageRow& row : found) calls += row.counts.calls;
  EXPECT_EQ(calls, names) << "no call is lost";
  EXPECT_EQ(rows({.tenant = "b"}).size(), 1u);
}

// Another program holds the file: nothing can be written for as long as SQLite waits, then it is tried again.
TEST_F(UsageMeterTest, WhatCannotBeWrittenIsKeptAndWrittenLater) {
  meter_->called("a", "f", false, 1ms);
  ASSERT_EQ(rows().size(), 1u);
  const auto other = store::Database::open(folder_ / "usage.db").value();
  ASSERT_TRUE(other->run("BEGIN IMMEDIATE"));
  meter_->called("a", "f", false, 1ms);
  meter_->called("a", "g", false, 1ms);
  const auto locked = rows();  // after the write was given up
  EXPECT_EQ(locked.size(), 1u);
  EXPECT_EQ(locked[0].counts.calls, 1u);
  ASSERT_TRUE(other->run("ROLLBACK"));
  const auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].counts.calls, 2u);
  EXPECT_EQ(found[1].counts.calls, 1u);
  EXPECT_EQ(meter_->lost_rows(), 0u);
}

TEST_F(UsageMeterTest, OldHoursAreForgotten) {
  meter_->called("a", "f", false, 1ms);
  EXPECT_EQ(rows().size(), 1u);
  now_ms_ += 48 * kHourMs;
  meter_->called("a", "f", false, 1ms);
  EXPECT_EQ(rows().size(), 2u) << "two days are kept";
  now_ms_ += kHourMs;
  meter_->called("a", "f", false, 1ms);
  const auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key.hour, 1048);
}

}  // namespace
}  // namespace fairlead
