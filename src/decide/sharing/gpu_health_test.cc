#include "decide/sharing/gpu_health.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using enum GpuRemedy;
using enum GpuState;

Instant at(Duration since_start) {
  return Instant(since_start);
}

// A device that answered from the first sample on.
GpuHealth steady(bool has_daemon) {
  GpuHealth health(has_daemon);
  EXPECT_EQ(health.device_answers(at(10s)), std::nullopt);
  return health;
}

TEST(GpuHealth, AFaultOfAnMpsClientRestartsTheDaemonOnceAllHaveGone) {
  GpuHealth health = steady(true);
  EXPECT_EQ(health.daemon(MpsDaemonState::kActive), std::nullopt);
  EXPECT_EQ(health.daemon(MpsDaemonState::kFault), kDrain);
  EXPECT_EQ(health.state(), kDraining);
  EXPECT_EQ(health.reason(), "a fault of an MPS client");
  EXPECT_EQ(health.daemon(MpsDaemonState::kFault), std::nullopt) << "said once";
  EXPECT_EQ(health.device_answers(at(11s)), std::nullopt) << "instances are still there";
  EXPECT_EQ(health.emptied(at(12s)), kRestartDaemon);
  EXPECT_EQ(health.state(), kRepairing);
  EXPECT_EQ(health.device_answers(at(12s)), std::nullopt) << "on its way";
  EXPECT_EQ(health.daemon(MpsDaemonState::kGone), std::nullopt) << "between stop and start";
  EXPECT_EQ(health.daemon_started(at(13s), true), kServe);
  EXPECT_EQ(health.state(), kServing);
  EXPECT_EQ(health.reason(), "");
  EXPECT_EQ(health.daemon_restarts(), 1u);
}

TEST(GpuHealth, ADaemonThatDoesNotStartIsTriedAgainEverMoreRarely) {
  GpuHealth health = steady(true);
  health.daemon(MpsDaemonState::kGone);
  ASSERT_EQ(health.emptied(at(20s)), kRestartDaemon);
  Instant now = at(20s);
  for (const Duration wait : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    EXPECT_EQ(health.daemon_started(now, false), std::nullopt);
    EXPECT_EQ(health.device_answers(now + wait - 1ms), std::nullopt);
    now += wait;
    EXPECT_EQ(health.device_answers(now), kRestartDaemon);
  }
  EXPECT_EQ(health.daemon_restarts(), 0u);
  EXPECT_EQ(health.daemon_started(now, true), kServe);
}

TEST(GpuHealth, ALostDeviceServesAfterItHasAnsweredForAWhile) {
  GpuHealth health = steady(false);
  EXPECT_EQ(health.device_fails(at(20s), "GPU is lost"), kDrain);
  EXPECT_EQ(health.device_fails(at(21s), "GPU is lost"), std::nullopt);
  EXPECT_EQ(health.emptied(at(22s)), std::nullopt);
  EXPECT_EQ(health.state(), kRepairing);
  EXPECT_EQ(health.device_answers(at(30s)), std::nullopt);
  EXPECT_EQ(health.device_fails(at(30500ms), "GPU is lost"), std::nullopt) << "it came and went";
  EXPECT_EQ(health.device_answers(at(31s)), std::nullopt);
  EXPECT_EQ(health.device_answers(at(31900ms)), std::nullopt);
  EXPECT_EQ(health.device_answers(at(32s)), kServe);
}

TEST(GpuHealth, OfALostDeviceTheDaemonIsRestartedOnlyWhenItAnswers) {
  GpuHealth health = steady(true);
  health.device_fails(at(20s), "GPU is lost");
  EXPECT_EQ(health.emptied(at(20s)), std::nullopt);
  EXPECT_EQ(health.device_answers(at(30s)), std::nullopt);
  EXPECT_EQ(health.device_answers(at(31s)), kRestartDaemon);
  EXPECT_EQ(health.daemon_started(at(32s), true), kServe);
}

TEST(GpuHealth, ADeviceThatComesBackBeforeItIsEmptyServesOnceItIs) {
  GpuHealth health = steady(false);
  health.device_fails(at(20s), "GPU is lost");
  health.device_answers(at(21s));
  EXPECT_EQ(health.device_answers(at(25s)), std::nullopt);
  EXPECT_EQ(health.emptied(at(26s)), kServe);
}

TEST(GpuHealth, CriticalXidsDrainAndThoseOfOneProgramDoNot) {
  for (const unsigned xid : {13u, 31u, 43u, 45u, 68u, 109u}) EXPECT_EQ(steady(false).xid(xid), std::nullopt) << xid;
  for (const unsigned xid : {48u, 74u, 79u, 94u, 95u, 119u}) EXPECT_EQ(steady(false).xid(xid), kDrain) << xid;
  GpuHealth health = steady(false);
  health.xid(48);
  EXPECT_EQ(health.reason(), "Xid 48");
  EXPECT_EQ(health.emptied(at(20s)), kServe) << "new contexts work";
}

TEST(GpuHealth, WithoutADaemonItsStateIsOfNoInterest) {
  EXPECT_EQ(steady(false).daemon(MpsDaemonState::kFault), std::nullopt);
  EXPECT_EQ(steady(false).daemon_started(at(20s), true), std::nullopt);
  EXPECT_EQ(steady(false).emptied(at(20s)), std::nullopt) << "idle is not empty";
}

}  // namespace
}  // namespace fairlead
