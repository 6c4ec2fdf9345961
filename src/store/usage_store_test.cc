#include "store/usage_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

using namespace std::chrono_literals;

UsageRow row(const std::string& tenant, std::int64_t hour, const std::string& function, std::uint64_t calls = 1) {
  return {.key = {.tenant = tenant, .hour = hour, .function = function},
          .counts = {.calls = calls, .errors = calls / 2, .gpu_time = calls * 1ms, .memory_kib_ms = 7}};
}

class UsageStoreTest : public testing::Test {
 protected:
  UsageStoreTest() : store_(UsageStore::open(path_).value()) {}

  std::vector<UsageRow> rows(const UsageQuery& query = {}) { return store_->read(query).value(); }

  TestFolder folder_;
  const std::string path_ = folder_ / "usage.db";
  std::unique_ptr<UsageStore> store_;
};

TEST_F(UsageStoreTest, WhatIsAddedAddsUpAndStays) {
  ASSERT_TRUE(store_->add({row("a", 10, "f", 3), row("a", 10, "g")}));
  ASSERT_TRUE(store_->add({row("a", 10, "f", 5)}));
  store_ = UsageStore::open(path_).value();
  EXPECT_FALSE(store_->was_damaged());
  const auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, row("a", 10, "f").key);
  EXPECT_EQ(found[0].counts, (UsageCounts{.calls = 8, .errors = 3, .gpu_time = 8ms, .memory_kib_ms = 14}));
}

TEST_F(UsageStoreTest, QueriesAreByTenantAndHoursAndPagesJoin) {
  std::vector<UsageRow> all;
  for (const char* tenant : {"", "a", "b"}) {
    for (std::int64_t hour = 0; hour < 10; ++hour) {
      for (const char* function : {"f", "g"}) all.push_back(row(tenant, hour, function));
    }
  }
  ASSERT_TRUE(store_->add(all));
  EXPECT_EQ(rows(), all);
  EXPECT_EQ(rows({.tenant = "a"}).size(), 20u);
  EXPECT_EQ(rows({.tenant = ""}).size(), 20u);
  EXPECT_TRUE(rows({.tenant = "nobody"}).empty());
  const auto hours = rows({.tenant = "b", .from_hour = 3, .until_hour = 5});
  ASSERT_EQ(hours.size(), 4u);
  EXPECT_EQ(hours.front().key.hour, 3);
  EXPECT_EQ(hours.back().key.hour, 4);
  std::vector<UsageRow> pages;
  for (UsageQuery query{.most = 7};;) {
    const auto page = rows(query);
    pages.insert(pages.end(), page.begin(), page.end());
    if (page.size() < query.most) break;
    query.after = page.back().key;
  }
  EXPECT_EQ(pages, all);
}

TEST_F(UsageStoreTest, WhatIsOldIsForgotten) {
  ASSERT_TRUE(store_->add({row("a", 10, "f"), row("a", 11, "f"), row("b", 9, "f")}));
  ASSERT_TRUE(store_->forget_before(11));
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(rows()[0].key.hour, 11);
}

TEST_F(UsageStoreTest, AFileThatIsDamagedIsPutAside) {
  store_.reset();
  folder_.write("usage.db", std::string(8192, 'x'));
  store_ = UsageStore::open(path_).value();
  EXPECT_TRUE(store_->was_damaged());
  EXPECT_TRUE(rows().empty());
  ASSERT_TRUE(store_->add({row("a", 1, "f")}));
  EXPECT_TRUE(std::filesystem::exists(path_ + ".damaged"));
}

// A child adds one call after the other and says so; however it is killed, what it had said is there, and at most one more.
TEST_F(UsageStoreTest, AKilledProcessLosesNothingThatWasAdded) {
  store_.reset();
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = UsageStore::open(path_).value();
    for (;;) {
      const bool added = store->add({row("a", 1, "f", 1), row("a", 1, "g", 1)}).has_value();
      if (!added || ::write(said[1], "x", 1) != 1) ::_exit(1);
    }
  }
  ::close(said[1]);
  std::uint64_t added = 0;
  char byte = 0;
  while (added < 500 && ::read(said[0], &byte, 1) == 1) ++added;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(said[0], &byte, 1) == 1) ++added;
  ::close(said[0]);
  store_ = UsageStore::open(path_).value();
  EXPECT_FALSE(store_->was_damaged());
  const auto found = rows();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GE(found[0].counts.calls, added);
  EXPECT_LE(found[0].counts.calls, added + 1);
  EXPECT_EQ(found[0].counts.calls, found[1].counts.calls) << "all rows of an add, or none";
}

}  // namespace
}  // namespace fairlead::store
