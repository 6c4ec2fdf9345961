#include "node/tenant_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "base/give_way.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TenantWorkerTest : public testing::Test {
 protected:
  // Notes its name on the loop when it is done.
  Status add(const std::string& tenant, const std::string& name, Bytes bytes = Bytes(1)) {
    return worker_.run(tenant, bytes, [this, name] { return [this, name] { done_.push_back(name); }; });
  }
  // Holds the thread until `go`.
  Status add_blocking(const std::string& tenant, std::shared_future<void> go, Bytes bytes = Bytes(1)) {
    return worker_.run(tenant, bytes, [this, go = std::move(go)] {
      go.wait();
      return [this] { done_.emplace_back("blocked"); };
    });
  }
  void run_until(std::size_t count) {
    while (done_.size() < count) {
      io_.restart();
      io_.run_one();
    }
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_ = boost::asio::make_work_guard(io_);
  std::vector<std::string> done_;
  TenantWorker worker_{io_, {.jobs_of_tenant = 3, .bytes_of_tenant = Bytes(100), .bytes = Bytes(150)}};
};

TEST_F(TenantWorkerTest, TenantsTakeTurns) {
  std::promise<void> go;
  ASSERT_TRUE(add_blocking("flood", go.get_future().share()));
  ASSERT_TRUE(add("flood", "second"));
  ASSERT_TRUE(add("flood", "third"));
  ASSERT_TRUE(add("neighbour", "first"));
  go.set_value();
  run_until(4);
  EXPECT_THAT(done_, ElementsAre("blocked", "first", "second", "third"));
}

TEST_F(TenantWorkerTest, ItsThreadGivesWayToTheLoop) {
  const auto niceness = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  int on_worker = 0;
  ASSERT_TRUE(worker_.run("a", Bytes(1), [&] {
    on_worker = niceness();
    return [this] { done_.emplace_back("over"); };
  }));
  run_until(1);
  EXPECT_EQ(on_worker, std::min(niceness() + kGiveWayNice, 19));
}

TEST_F(TenantWorkerTest, ATenantMayHaveSoManyWaitingAndNoMore) {
  std::promise<void> go;
  ASSERT_TRUE(add_blocking("flood", go.get_future().share()));
  ASSERT_TRUE(add("flood", "second"));
  ASSERT_TRUE(add("flood", "third"));
  EXPECT_THAT(add("flood", "fourth").error().message, HasSubstr("3 requests of tenant 'flood'"));
  EXPECT_TRUE(add("neighbour", "first"));
  go.set_value();
  run_until(4);
  EXPECT_TRUE(add("flood", "later"));
  run_until(5);
}

TEST_F(TenantWorkerTest, SoManyBytesMayWait) {
  std::promise<void> go;
  ASSERT_TRUE(add_blocking("a", go.get_future().share(), Bytes(60)));
  EXPECT_EQ(add("a", "more", Bytes(41)).error().code, Errc::kResourceExhausted);
  ASSERT_TRUE(add("b", "some", Bytes(80)));
  EXPECT_THAT(add("c", "much", Bytes(11)).error().message, HasSubstr("retry later"));
  EXPECT_TRUE(add("c", "little", Bytes(10)));
  go.set_value();
  run_until(3);
}

TEST_F(TenantWorkerTest, AJobMayAddAnotherWhenItIsDone) {
  ASSERT_TRUE(worker_.run("a", Bytes(100), [this] { return [this] { EXPECT_TRUE(add("a", "next", Bytes(100))); }; }));
  run_until(1);
  EXPECT_THAT(done_, ElementsAre("next"));
}

}  // namespace
}  // namespace fairlead
