// The laboratory of shares: what is modelled is as said, and the same seed gives the same run.
#include "sim/shares/simulation.h"

#include <gtest/gtest.h>

#include "sim/shares/share_sets.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

SharesSetup setup_of(std::vector<ShareClient> clients, const std::string& scheduler = "pacer") {
  return {.clients = std::move(clients), .scheduler = scheduler, .warm_up = 1s, .length = 4s};
}

TEST(SharesSimulation, TheSameSeedGivesTheSameRun) {
  const auto run = [](std::uint64_t seed) {
    SharesSetup setup = setup_of(*random_set("paper", 3, 400us, 1));
    setup.seed = seed;
    return SharesSimulation(std::move(setup)).run();
  };
  const SharesResult one = run(1), again = run(1), other = run(2);
  EXPECT_EQ(one.state_hash, again.state_hash);
  EXPECT_EQ(one.kernels, again.kernels);
  EXPECT_NE(one.state_hash, other.state_hash);
}

TEST(SharesSimulation, ABusyInstanceAloneHasTheDevice) {
  const SharesResult result = SharesSimulation(setup_of({{.share = {.width_percent = 40}}})).run();
  EXPECT_NEAR(to_seconds(result.clients[0].gpu_time), 4, 1e-3);
  EXPECT_NEAR(result.sm_share, 0.4, 1e-3);
}

TEST(SharesSimulation, BandwidthThatIsAskedForTwiceStretchesKernels) {
  // Two halves at full intensity ask for 1.2 of the bandwidth: kernels that meet take 1.2 times as long.
  const ShareClient half{.share = {.width_percent = 50}, .least_kernel = 100us, .most_kernel = 100us, .intensity = 1};
  const SharesResult result = SharesSimulation(setup_of({half, half})).run();
  EXPECT_NEAR(static_cast<double>(result.kernels), 2 * 5s / 120us, 500);
}

TEST(SharesSimulation, AClosedLoopAnswersAsOftenAsItsWorkTakes) {
  const SharesResult result =
      SharesSimulation(setup_of({{.gap = 0us, .work = Work::kClosed, .request = 10ms, .objective = 11ms}})).run();
  EXPECT_NEAR(static_cast<double>(result.clients[0].answered), 400, 2);
  EXPECT_EQ(result.clients[0].missed, 0u);
}

TEST(SharesSimulation, AUserWaitsForTheUsersBeforeIt) {
  // Four users, 2 ms on the host and 8 ms on the device each: one answer every 10 ms, each 40 ms old.
  SharesSetup setup = setup_of({{.fills_percent = 50, .work = Work::kClosed, .users = 4, .host = 2ms, .request = 8ms}});
  const SharesResult result = SharesSimulation(std::move(setup)).run();
  EXPECT_NEAR(static_cast<double>(result.clients[0].answered), 400, 2);
  EXPECT_NEAR(to_ms(result.clients[0].latency.percentile(0.5)), 40, 1);
  EXPECT_NEAR(result.busy, 0.8, 0.01);
  EXPECT_NEAR(result.occupancy, 0.4, 0.01);
}

TEST(SharesSimulation, ADeviceIsBusyOnceWhereTwoAreInFlight) {
  const ShareClient half{.share = {.width_percent = 50}};
  const SharesResult result = SharesSimulation(setup_of({half, half})).run();
  EXPECT_NEAR(result.busy, 1, 1e-3);
  EXPECT_NEAR(result.sm_share, 1, 0.02);
}

TEST(SharesSimulation, APoissonClientIsAskedForItsRate) {
  for (const Work work : {Work::kPoisson, Work::kBursts}) {
    SharesSetup setup =
        setup_of({{.work = work, .request = 2ms, .rate_per_s = 100, .burst = work == Work::kBursts ? 5 : 1}});
    setup.length = 100s;
    EXPECT_NEAR(static_cast<double>(SharesSimulation(std::move(setup)).run().clients[0].answered), 10'000, 500);
  }
}

TEST(SharesSimulation, AKernelThatRunsIsNotStopped) {
  // Kernels of 50 ms in frames of 2 ms: the device is its until each ends.
  const ShareClient slow{.least_kernel = 50ms, .most_kernel = 50ms};
  const ShareClient quick{
      .share = {.request_percent = 50}, .work = Work::kPoisson, .request = 1ms, .rate_per_s = 10, .objective = 10ms};
  const SharesResult result = SharesSimulation(setup_of({quick, slow})).run();
  EXPECT_GT(result.clients[0].missed, result.clients[0].answered / 2);
}

TEST(SharesSimulation, WhatIsLaunchedAheadRunsPastTheEndOfThePlace) {
  const ShareClient busy{.least_kernel = 10us, .most_kernel = 10us};
  const auto opened = [&](Duration leash) {
    SharesSetup setup = setup_of({busy, busy});
    setup.leash = leash;
    return SharesSimulation(std::move(setup)).run().opened;
  };
  EXPECT_LT(static_cast<double>(opened(500us)), 0.9 * static_cast<double>(opened(0us)));
}

TEST(RandomSet, FillsTheDeviceAndIsOfItsMix) {
  for (const std::string_view mix : share_mixes()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const auto clients = *random_set(mix, 3, 400us, seed);
      EXPECT_GE(clients.size(), 2u) << mix;
      for (const ShareClient& client : clients) {
        EXPECT_TRUE(check(client.share));
        EXPECT_LE(client.most_kernel, 400us);
      }
    }
  }
  EXPECT_EQ(random_set("big", 3, 400us, 1).error().message,
            "mix is \"big\", it must be one of grid, small, paper, continuous");
}

}  // namespace
}  // namespace fairlead::sim
