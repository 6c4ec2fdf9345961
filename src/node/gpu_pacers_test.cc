#include "node/gpu_pacers.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <numeric>
#include <sstream>
#include <system_error>

#include "base/log.h"

namespace fairlead {
namespace {

const InstanceId kReserved(1), kOther(2), kElsewhere(3);
const GpuId kGpu(1), kSecondGpu(2);
constexpr PacedShare kQuota{.request_percent = 40};

// What is logged while it lives.
class Lines {
 public:
  Lines() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~Lines() { spdlog::set_default_logger(before_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  int count(const std::string& part) const {
    const std::string text = text_.str();
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

class GpuPacersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }
  PaceDriver::Page come(InstanceId instance, std::uint64_t process) {
    auto page = std::make_shared<wire::ShimPage>();
    pacers_.process_came(instance, process, page);
    return page;
  }
  static bool is_paced(const PaceDriver::Page& page) { return (page->pace.load() & wire::kPacePlaces) != 0; }
  static bool is_closed(const PaceDriver::Page& page) { return (page->gate.load() & wire::kGateNode) != 0; }

  ShareStatus measured(std::uint64_t flow) const {
    ShareStatus status;
    pacers_.measure(FlowId(flow), status);
    return status;
  }
  std::uint64_t waits(std::uint64_t flow) const {
    const auto counts = measured(flow).waits.histogram;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  GpuPacers pacers_;
};

TEST_F(GpuPacersTest, NobodyIsPacedWhereNobodyHasAQuota) {
  pacers_.started(kOther, kGpu, PacedShare());
  const auto page = come(kOther, 1);
  EXPECT_FALSE(is_paced(page));
  EXPECT_FALSE(is_closed(page));
  EXPECT_TRUE(pacers_.snapshot().empty());
}

// Widths as the pacers of devices have them.
class KernelSizes : public GpuPacersTest {
 protected:
  static constexpr std::uint64_t kServer = 7, kOtherServer = 8;

  void start(InstanceId instance, const PacedShare& share = PacedShare()) { pacers_.started(instance, kGpu, share); }
  int width(InstanceId instance) const {
    for (const auto& [gpu, snapshot] : pacers_.snapshot()) {
      for (const DeliveredService& one : snapshot.instances) {
        if (one.instance == instance) return one.share.width_percent;
      }
    }
    return 0;
  }
};

TEST_F(KernelSizes, AnInstanceIsNoWiderThanItsKernels) {
  start(kReserved, kQuota);
  start(kOther);
  EXPECT_EQ(width(kReserved), 100);
  pacers_.size(kReserved, {kServer, 10});
  pacers_.size(kOther, {kServer, 25});
  EXPECT_EQ(width(kReserved), 10);
  EXPECT_EQ(width(kOther), 25);
  pacers_.size(kOther, {kServer, 40});  // its server was started again, and it was registered anew
  EXPECT_EQ(width(kOther), 40);
}

TEST_F(KernelSizes, AnInstanceIsNoWiderThanItsShare) {
  pacers_.set_side_by_side(true);
  start(kReserved, {.width_percent = 30, .request_percent = 40});
  pacers_.size(kReserved, {kServer, 80});
  EXPECT_EQ(width(kReserved), 30);
  pacers_.set_share(kReserved, {.width_percent = 90, .request_percent = 40});
  EXPECT_EQ(width(kReserved), 80);
}

TEST_F(KernelSizes, AreKnownWhenThePacerComes) {
  start(kOther);
  pacers_.size(kOther, {kServer, 25});
  EXPECT_EQ(width(kOther), 0) << "no pacer";
  start(kReserved, kQuota);
  EXPECT_EQ(width(kOther), 25);
  pacers_.gone(kReserved);
  start(kReserved, kQuota);
  EXPECT_EQ(width(kOther), 25) << "a second pacer is told as the first was";
}

TEST_F(KernelSizes, OfTwoServersCountOnlyWhereProcessesRunSideBySide) {
  start(kReserved, kQuota);
  start(kOther);
  pacers_.size(kReserved, {kServer, 10});
  pacers_.size(kOther, {kOtherServer, 25});
  EXPECT_EQ(width(kReserved), 100);
  EXPECT_EQ(width(kOther), 100);
  pacers_.gone(kOther);
  EXPECT_EQ(width(kReserved), 10) << "it is the only server again";

  pacers_.set_side_by_side(true);
  start(kOther);
  pacers_.size(kOther, {kOtherServer, 25});
  EXPECT_EQ(width(kReserved), 10);
  EXPECT_EQ(width(kOther), 25);
}

TEST_F(KernelSizes, WhoSaysItsWidthIsAsWideAsTheDeviceBesideAnotherServer) {
  start(kReserved, {.width_percent = 10, .request_percent = 40});
  start(kOther);
  pacers_.size(kReserved, {kServer, 100});  // as wide as its share
  EXPECT_EQ(width(kReserved), 10);
  pacers_.size(kOther, {kOtherServer, 25});
  EXPECT_EQ(width(kReserved), 100) << "the two processes take turns";
}

TEST_F(KernelSizes, OfAnotherDeviceDoNotMatter) {
  start(kReserved, kQuota);
  pacers_.started(kElsewhere, kSecondGpu, PacedShare());
  pacers_.size(kReserved, {kServer, 10});
  pacers_.size(kElsewhere, {kOtherServer, 25});
  EXPECT_EQ(width(kReserved), 10);
}

TEST_F(KernelSizes, AnInstanceThatNobodyKnowsHasNone) {
  start(kReserved, kQuota);
  pacers_.size(kOther, {kServer, 10});
  EXPECT_EQ(width(kOther), 0);
  EXPECT_EQ(width(kReserved), 100);
}

TEST_F(GpuPacersTest, AQuotaPacesAllOfItsDeviceAndNobodyElse) {
  pacers_.started(kOther, kGpu, PacedShare());
  pacers_.started(kElsewhere, kSecondGpu, PacedShare());
  const auto other = come(kOther, 1), elsewhere = come(kElsewhere, 2);
  pacers_.started(kReserved, kGpu, kQuota);
  EXPECT_TRUE(is_paced(other) && is_closed(other)) << "it ran before";
  EXPECT_FALSE(is_paced(elsewhere));
  EXPECT_TRUE(is_closed(come(kReserved, 3)));
  ASSERT_EQ(pacers_.snapshot().size(), 1u);
  EXPECT_EQ(pacers_.snapshot()[0].second.instances.size(), 2u);
}

TEST_F(GpuPacersTest, GatesAreOpenWhenTheLastQuotaGoes) {
  pacers_.started(kOther, kGpu, PacedShare());
  pacers_.started(kReserved, kGpu, kQuota);
  const auto other = come(kOther, 1);
  pacers_.gone(kReserved);
  EXPECT_FALSE(is_paced(other) || is_closed(other));
  EXPECT_TRUE(pacers_.snapshot().empty());
}

TEST_F(GpuPacersTest, AProcessThatLostItsConnectionIsLeftAlone) {
  pacers_.started(kReserved, kGpu, kQuota);
  const auto page = come(kReserved, 1);
  pacers_.process_left(1);
  EXPECT_FALSE(is_paced(page) || is_closed(page));
  pacers_.process_left(1);
  pacers_.process_left(7);
}

TEST_F(GpuPacersTest, AShareThatChangesChangesWhileItRuns) {
  pacers_.started(kReserved, kGpu, kQuota);
  const auto page = come(kReserved, 1);
  pacers_.set_share(kReserved, {.request_percent = 60, .limit_percent = 70});
  EXPECT_EQ(pacers_.snapshot()[0].second.instances[0].share.limit_percent, 70);
  EXPECT_TRUE((page->pace.load() & wire::kPaceLeash) != 0) << "its own limit is near";
  pacers_.set_share(kReserved, PacedShare());
  EXPECT_FALSE(is_paced(page));
  pacers_.set_share(kReserved, kQuota);
  EXPECT_TRUE(is_paced(page));
}

TEST_F(GpuPacersTest, AnOlderShimIsNotPaced) {
  pacers_.started(kReserved, kGpu, kQuota);
  auto page = std::make_shared<wire::ShimPage>();
  page->version = wire::kOldestShimVersion;
  pacers_.process_came(kReserved, 1, page);
  EXPECT_FALSE(is_paced(page) || is_closed(page));
}

// A function may make connections 200 times a second.
TEST_F(GpuPacersTest, AnInstanceThatIsNotPacedIsNamedOnce) {
  const Lines lines;
  pacers_.started(kReserved, kGpu, kQuota);
  for (std::uint64_t process = 1; process <= 5; ++process) {
    auto page = std::make_shared<wire::ShimPage>();
    page->version = wire::kOldestShimVersion;
    pacers_.process_came(kReserved, process, page);
    pacers_.process_left(process);
  }
  EXPECT_EQ(lines.count("instance 1 is not paced"), 1);
}

TEST_F(GpuPacersTest, WhereThereIsNoThreadTheDeviceIsNotPacedAndTheNodeLives) {
  const Lines lines;
  bool has_threads = false;
  GpuPacers pacers([&](PaceDriverOptions options) {
    if (!has_threads) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::make_unique<PaceDriver>(std::move(options));
  });
  pacers.started(kReserved, kGpu, kQuota);
  auto page = std::make_shared<wire::ShimPage>();
  pacers.process_came(kReserved, 1, page);
  EXPECT_FALSE(is_paced(page) || is_closed(page));
  pacers.started(kOther, kGpu, PacedShare());
  EXPECT_EQ(lines.count("device 1 is not paced"), 1);
  has_threads = true;
  pacers.set_share(kReserved, {.request_percent = 50});
  EXPECT_TRUE(is_paced(page)) << "as soon as there is one";
}

TEST_F(GpuPacersTest, WhatWasDeliveredIsOfThoseThatHadWork) {
  const PacedShare share{.flow = FlowId(5), .request_percent = 40};
  pacers_.started(kReserved, kGpu, share);
  come(kReserved, 1);
  EXPECT_FALSE(measured(5).delivery) << "it had no work";
  const auto page = come(kReserved, 2);
  page->asking.store(1);
  Bells::ring(page->bell);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!measured(5).delivery && std::chrono::steady_clock::now() < give_up) {
  }
  ASSERT_TRUE(measured(5).delivery);
  EXPECT_EQ(measured(5).delivery->window, std::chrono::seconds(1));
  EXPECT_FALSE(measured(6).delivery);
  EXPECT_EQ(waits(5), 1u);
  pacers_.gone(kReserved);
  EXPECT_EQ(waits(5), 1u) << "though nobody is there, nor a pacer";
  pacers_.forget(FlowId(5));
  EXPECT_EQ(waits(5), 0u);
}

TEST_F(GpuPacersTest, WaitsAreToldByPowersOfFour) {
  constexpr std::size_t kAll = std::size(kGateWaitBucketsSeconds) + 1;
  const PacedShare share{.flow = FlowId(5), .request_percent = 40};
  pacers_.started(kReserved, kGpu, share);
  const auto page = come(kReserved, 1);
  page->asking.store(1);
  Bells::ring(page->bell);
  while (waits(5) == 0) {
  }
  EXPECT_EQ(measured(5).waits.histogram.size(), kAll);
  EXPECT_EQ(measured(5).waits.histogram.back(), 0u) << "it waited for less than a second";
}

TEST_F(GpuPacersTest, NothingIsSaidOfThoseWhoCannotBePaced) {
  pacers_.started(kReserved, kGpu, kQuota);
  auto page = std::make_shared<wire::ShimPage>();
  page->version = wire::kOldestShimVersion;
  pacers_.process_came(kReserved, 1, page);
  EXPECT_FALSE(pacers_.device_worked(kReserved, std::chrono::hours(1)));
  EXPECT_FALSE(pacers_.device_worked(kElsewhere, std::chrono::hours(1)));
  EXPECT_EQ(measured(0).evaded.named, 0u);
}

TEST_F(GpuPacersTest, WhatIsNotKnownChangesNothing) {
  const auto page = come(kOther, 1);
  EXPECT_FALSE(is_paced(page));
  pacers_.set_share(kOther, kQuota);
  pacers_.gone(kOther);
  EXPECT_TRUE(pacers_.snapshot().empty());
}

}  // namespace
}  // namespace fairlead
