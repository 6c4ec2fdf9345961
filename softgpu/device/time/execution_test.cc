// Kernels and copies of several processes beside each other.
#include "softgpu/device/time/execution.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "softgpu/device/device_testing.h"
#include "softgpu/device/time/trace.h"

namespace softgpu {
namespace {

using Refusal = Activity::ContextRefusal;
using testing::as_client;
using testing::Child;
using testing::Client;
using testing::Environment;
using testing::kSmall;
using testing::Observer;
using testing::open_client;
using testing::TemporaryHome;

const StopCheck kNever = [] { return false; };

ClientShare mps_share(std::uint64_t sms) {
  ClientShare share;
  share.mps = true;
  share.sms = sms;
  share.max_contexts = 2;
  return share;
}

// A client of a machine whose device has 80 SMs.
Client& open_mps_client(std::uint64_t sms, bool faults_shared = false) {
  Client& client = open_client();
  ClientShare share = mps_share(sms);
  share.faults_shared = faults_shared;
  client.device = Device::open(client.machine, *client.clients, client.self, 0, share).value();
  return client;
}

TEST(Activity, AKernelAloneGetsItsClientsShare) {
  const TemporaryHome home(kSmall);
  as_client([](Client& first) {
    first.device = Device::open(first.machine, *first.clients, first.self, 0, mps_share(40)).value();
    Activity& activity = first.device->activity();
    activity.begin_kernel(40);
    EXPECT_EQ(activity.grant(80, 40).milli_sms, 40'000U);
    EXPECT_EQ(activity.grant(80, 40).memory_users, 1U);
    activity.begin_kernel(40);  // of another stream
    EXPECT_EQ(activity.grant(80, 40).milli_sms, 20'000U);
    activity.end_kernel(40);
    activity.end_kernel(40);
  });
}

TEST(Activity, SharesBeyondTheDeviceContendWhileBothCompute) {
  const TemporaryHome home(kSmall);
  Child other([] { open_mps_client(60).device->activity().begin_kernel(60); });
  ASSERT_TRUE(other.ran());
  const auto grant = [](std::uint64_t expected) {
    as_client([=](Client& client) {
      client.device = Device::open(client.machine, *client.clients, client.self, 0, mps_share(60)).value();
      client.device->activity().begin_kernel(60);
      EXPECT_EQ(client.device->activity().grant(80, 60).milli_sms, expected);
    });
  };
  grant(40'000);
  other.kill();
  grant(60'000);
}

TEST(Activity, CopiesOfTheDeadDoNotCount) {
  const TemporaryHome home(kSmall);
  Child other([] { open_client().device->activity().begin_copy(Direction::kToDevice); });
  const auto copies = [](std::uint64_t to_device) {
    as_client([=](Client& client) {
      const Transfer transfer(*client.device, Direction::kToDevice);
      EXPECT_EQ(client.device->activity().copies(Direction::kToDevice), to_device);
      EXPECT_EQ(client.device->activity().copies(Direction::kFromDevice), 1U);
    });
  };
  copies(2);
  other.kill();
  copies(1);
}

TEST(Activity, ContextsOfMpsClientsAreLimitedPerDevice) {
  const TemporaryHome home(kSmall);
  Child other([] { open_mps_client(80).device->add_context(); });
  as_client([](Client& client) {
    EXPECT_EQ(client.device->add_context(), Refusal::kNone);  // takes turns: no limit
    client.device = Device::open(client.machine, *client.clients, client.self, 0, mps_share(80)).value();
    EXPECT_EQ(client.device->add_context(), Refusal::kNone);
    EXPECT_EQ(client.device->add_context(), Refusal::kTooMany);
    client.device->remove_context();
    EXPECT_EQ(client.device->add_context(), Refusal::kNone);
  });
}

TEST(Activity, AfterASharedFaultNewClientsAreRefusedUntilTheLastOneHitIsGone) {
  const TemporaryHome home(kSmall);
  Child hit([] {
    Device& device = *open_mps_client(80, true).device;
    device.add_context();
    device.share_fault(719);
    device.remove_context();  // does not help: the process must exit
  });
  const auto expect_refusal = [](Refusal refusal, bool faults_shared) {
    as_client([=](Client& client) {
      ClientShare share = mps_share(80);
      share.faults_shared = faults_shared;
      client.device = Device::open(client.machine, *client.clients, client.self, 0, share).value();
      EXPECT_EQ(client.device->add_context(), refusal);
    });
  };
  expect_refusal(Refusal::kDraining, true);
  expect_refusal(Refusal::kNone, false);
  hit.kill();
  expect_refusal(Refusal::kNone, true);
}

TEST(Activity, TheDeviceIsBusyWhileAnyMpsClientComputes) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child other([] { open_mps_client(60).device->activity().begin_kernel(60); });
  EXPECT_GT(observer.view->sample().busy, 0);
  EXPECT_GT(observer.view->users().busy(observer.clients.live(0)->owner, monotonic_ns()), 0);
  other.kill();
  EXPECT_EQ(observer.view->sample().busy, 0);
}

TEST(MemoryLimit, HoldsForWhatAClientClaims) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    ClientShare share = mps_share(80);
    share.memory_limit = 10 * kPageBytes;
    client.device = Device::open(client.machine, *client.clients, client.self, 0, share).value();
    EXPECT_EQ(client.device->free_bytes(), 10 * kPageBytes);
    const auto heap = client.device->make_heap();  // takes a page
    EXPECT_EQ(heap->allocate(10 * kPageBytes), 0U);
    EXPECT_NE(heap->allocate(9 * kPageBytes), 0U);
    EXPECT_EQ(client.device->free_bytes(), 0U);
    EXPECT_EQ(client.device->total_bytes(), 10 * kPageBytes);
  });
}

TEST(Execution, ChargesModelledTimeWithoutRunningAnything) {
  const TemporaryHome home(kSmall);
  Observer observer;
  as_client([&](Client& client) {
    for (int i = 0; i < 3; ++i) {
      Execution execution(*client.device, {"kernel", 80}, kNever);
      ASSERT_TRUE(execution.begin());
      execution.end({.lane_instructions = 1'000'000'000});
    }
    const ClientActivity& activity = observer.view->control().activity[client.self.slot];
    EXPECT_EQ(activity.kernel_count.load(), 3U);
    const KernelWork work{.lane_instructions = 1'000'000'000, .blocks = 80};
    EXPECT_EQ(activity.kernel_ns.load(), 3 * kernel_ns(client.device->profile(), work));
  });
}

TEST(Execution, PacedModesHoldTheCaller) {
  const TemporaryHome home(Environment{{"SOFTGPU_MODE", "charge"}, {"SOFTGPU_MEMORY_SCALE", "64"}});
  as_client([](Client& client) {
    const std::uint64_t begin = monotonic_ns();
    Execution execution(*client.device, {"kernel", 80}, kNever);
    ASSERT_TRUE(execution.begin());
    execution.end({.lane_instructions = 50'000'000'000});  // 6.4 ms
    EXPECT_GE(monotonic_ns() - begin, 6'300'000U);
    Transfer transfer(*client.device, Direction::kToDevice);
    const std::uint64_t copy_begin = monotonic_ns();
    transfer.finish(60'000'000, kNever);  // 5 ms
    EXPECT_GE(monotonic_ns() - copy_begin, 4'900'000U);
  });
}

TEST(Execution, StoppingEndsEveryWait) {
  const TemporaryHome home(Environment{{"SOFTGPU_MODE", "model"}, {"SOFTGPU_MEMORY_SCALE", "64"}});
  Child holder([] { open_client().device->turn().enter(kNever); });
  as_client([](Client& client) {
    bool stopped = true;
    const StopCheck stop = [&] { return stopped; };
    EXPECT_FALSE(Execution(*client.device, {"waits for the turn"}, stop).begin());
  });
  holder.kill();
  as_client([](Client& client) {
    bool stopped = false;
    const StopCheck stop = [&] { return stopped; };
    Execution execution(*client.device, {"runs for an hour"}, stop);
    ASSERT_TRUE(execution.begin());
    client.device->faults().hang();
    stopped = true;
    execution.pause();
    execution.end({.lane_instructions = 1ULL << 62});
  });
}

TEST(Execution, AHangEndsAtTheDeadline) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    client.device->faults().hang();
    Execution execution(*client.device, {"hangs"}, kNever);
    ASSERT_TRUE(execution.begin());
    const std::atomic<std::uint64_t>& deadline = execution.set_timeout(3'000'000);
    execution.pause();
    EXPECT_GE(monotonic_ns(), deadline.load());
    execution.end({});
  });
}

TEST(Execution, TheDeadlineMovesByTheTimeTheTurnIsAway) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_TIME_SLICE_US", "1"}});
  as_client([](Client& client) {
    Execution execution(*client.device, {"kernel"}, kNever);
    ASSERT_TRUE(execution.begin());
    const std::atomic<std::uint64_t>& deadline = execution.set_timeout(1'000'000'000);
    const std::uint64_t first = deadline.load();
    execution.pause();
    EXPECT_EQ(deadline.load(), first);
    const int pid = ::fork();
    if (pid == 0) {
      Turn& turn = open_client().device->turn();
      turn.enter(kNever);
      turn.leave();
      ::_exit(0);
    }
    while (client.device->turn().away_ns() == 0) execution.pause();
    EXPECT_EQ(deadline.load(), first + client.device->turn().away_ns());
    ::waitpid(pid, nullptr, 0);
    execution.end({});
  });
}

TEST(Trace, IsAnArrayWithoutItsEnd) {
  const TemporaryHome home(kSmall);
  const std::string path = home.path() + "/trace.json";
  for (int process = 0; process < 2; ++process) {
    as_client([&](Client& client) {
      ASSERT_TRUE(open_trace(path));
      Execution execution(*client.device, {"a \"quoted\\ name\"\n", 80}, kNever);
      ASSERT_TRUE(execution.begin());
      execution.end({.lane_instructions = 1000});
    });
  }
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, "[");
  int kernels = 0;
  while (std::getline(file, line)) {
    EXPECT_TRUE(line.starts_with("{\"ph\":\"") && line.ends_with("},")) << line;
    kernels += line.find(R"("name":"a \"quoted\\ name\"")") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(kernels, 2);
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_NE(open_trace("/nonexistent/trace").error().find("/nonexistent/trace"), std::string::npos);
  EXPECT_FALSE(tracing());
}

}  // namespace
}  // namespace softgpu
