// When calls of a session may begin. Planted and caught: a place that no call uses is kept; "drained" while the call runs; a call that
// begins behind the end of its place; a session that nobody paces waits.
#include "runtime/device_server/call_gates.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "base/clock.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSession = 7;

// A session, and the node's end of its page.
class CallGatesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::ftruncate(memory_.get(), sizeof(wire::ShimPage)), 0);
    void* const at = ::mmap(nullptr, sizeof(wire::ShimPage), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    ASSERT_NE(at, MAP_FAILED);
    page_ = new (at) wire::ShimPage;
    ASSERT_TRUE(gates_.add(kSession, memory_, doorbell_));
  }
  void TearDown() override { ::munmap(page_, sizeof *page_); }

  void pace() {
    page_->pace.store(wire::kPacePlaces);
    page_->gate.fetch_or(wire::kGateNode);
  }
  void grant(Duration length) {
    page_->open_until_ns.store(static_cast<std::uint64_t>((now_ + length).time_since_epoch().count()));
    page_->grant.fetch_add(1);
    page_->gate.fetch_and(~wire::kGateNode);
  }
  bool may_begin() { return gates_.may_begin(kSession, now_); }
  void settle(bool waits) {
    gates_.settle([waits](std::uint64_t) { return waits; });
  }
  bool is_open() const { return (page_->gate.load() & wire::kGateNode) == 0; }
  bool has_drained() const { return page_->drained.load() == page_->grant.load(); }

  UniqueFd memory_{::memfd_create("page", MFD_CLOEXEC)}, doorbell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  wire::ShimPage* page_ = nullptr;
  CallGates gates_;
  Instant now_ = monotonic_now();
};

TEST_F(CallGatesTest, WhereNobodyPacesCallsBeginWhenTheyCome) {
  EXPECT_TRUE(may_begin());
  EXPECT_TRUE(gates_.may_begin(99, now_)) << "it has no page";
  EXPECT_EQ(page_->bell.load(), 0u);
}

TEST_F(CallGatesTest, ACallAsksOnceAndBeginsInItsPlace) {
  pace();
  EXPECT_FALSE(may_begin());
  EXPECT_FALSE(may_begin());
  EXPECT_EQ(page_->asking.load(), 1u);
  EXPECT_EQ(page_->bell.load(), 1u);
  std::vector<int> doorbells;
  gates_.add_doorbells(doorbells);
  EXPECT_EQ(doorbells.size(), 1u);
  grant(2ms);
  EXPECT_TRUE(may_begin());
  EXPECT_EQ(page_->asking.load(), 0u);
}

TEST_F(CallGatesTest, APlaceIsGivenBackWhenItsLastCallHasEnded) {
  pace();
  EXPECT_FALSE(may_begin());
  grant(2ms);
  ASSERT_TRUE(may_begin());
  gates_.began(kSession);
  settle(false);
  EXPECT_TRUE(is_open()) << "its call runs";
  page_->gate.fetch_or(wire::kGateNode);  // the frame is over
  settle(true);
  EXPECT_FALSE(has_drained()) << "its call runs";
  gates_.ended(kSession, 3ms);
  settle(true);
  EXPECT_TRUE(has_drained());
  EXPECT_EQ(page_->gpu_time_ns.load(), 3'000'000u);
  EXPECT_FALSE(may_begin());
  grant(2ms);
  ASSERT_TRUE(may_begin());
  gates_.began(kSession);
  gates_.ended(kSession, 1ms);
  settle(true);
  EXPECT_TRUE(is_open()) << "another call waits";
  settle(false);
  EXPECT_TRUE(!is_open() && has_drained());
}

TEST_F(CallGatesTest, NothingBeginsBehindTheEndOfAPlace) {
  pace();
  EXPECT_FALSE(may_begin());
  grant(2ms);
  now_ += 3ms;
  EXPECT_FALSE(may_begin()) << "the node is late";
  EXPECT_TRUE(!is_open() && has_drained());
  EXPECT_EQ(page_->asking.load(), 1u);
}

TEST_F(CallGatesTest, WhoAskedAndIsGoneAsksNoMore) {
  pace();
  EXPECT_FALSE(may_begin());
  settle(false);
  EXPECT_EQ(page_->asking.load(), 0u);
  EXPECT_FALSE(gates_.asks(kSession));
  EXPECT_FALSE(may_begin());
  page_->pace.store(0);
  page_->gate.fetch_and(~wire::kGateNode);
  EXPECT_TRUE(may_begin()) << "the pacer is gone";
}

TEST_F(CallGatesTest, APageThatIsTooSmallIsRefused) {
  const UniqueFd small(::memfd_create("small", MFD_CLOEXEC));
  EXPECT_FALSE(gates_.add(8, small, doorbell_));
}

}  // namespace
}  // namespace fairlead
