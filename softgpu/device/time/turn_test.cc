#include "softgpu/device/time/turn.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Child;
using testing::Client;
using testing::Environment;
using testing::kSmall;
using testing::Observer;
using testing::open_client;
using testing::TemporaryHome;

const StopCheck kNever = [] { return false; };

TEST(Turn, PassesOverADeadHolder) {
  const TemporaryHome home(kSmall);
  Child holder([] { open_client().device->turn().enter(kNever); });
  holder.kill();
  as_client([](Client& client) {
    client.device->turn().enter(kNever);
    EXPECT_EQ(client.device->self().slot, 0U);
    client.device->turn().leave();
  });
}

TEST(Turn, WaitersAreServedInTheOrderOfTheirTickets) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Control& control = observer.view->control();
  std::string order = home.path() + "/order";
  Child holder([] { open_client().device->turn().enter(kNever); });
  const auto queue_up = [&](char name) {
    const std::uint32_t before = control.turn_waiters.load();
    const int pid = ::fork();
    if (pid == 0) {
      Client& client = open_client();
      client.device->turn().enter(kNever);
      std::ofstream(order, std::ios::app) << name;
      client.device->turn().leave();
      ::_exit(0);
    }
    while (control.turn_waiters.load() == before) std::this_thread::yield();
    return pid;
  };
  std::vector<int> pids;
  for (const char name : {'a', 'b', 'c'}) pids.push_back(queue_up(name));
  holder.kill();
  for (const int pid : pids) ::waitpid(pid, nullptr, 0);
  std::string content;
  std::ifstream(order) >> content;
  EXPECT_EQ(content, "abc");
  EXPECT_EQ(control.turn_holder.load(), 0U);
}

TEST(Turn, AWaiterThatIsStoppedTakesItsTicketBack) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child holder([] { open_client().device->turn().enter(kNever); });
  as_client([&](Client& client) {
    int asked = 0;
    EXPECT_FALSE(client.device->turn().enter([&] { return ++asked > 3; }));
    EXPECT_EQ(observer.view->control().turn_waiters.load(), 0U);
    EXPECT_EQ(observer.view->control().tickets[client.self.slot].load(), 0U);
  });
}

// The state that a process leaves which is killed while it hands over: the turn is given, the ticket not yet taken.
TEST(Turn, AHandOverThatWasCutOffGivesTheTurnOnlyOnce) {
  const TemporaryHome home(kSmall);
  Observer observer;
  as_client([&](Client& client) {
    Control& control = observer.view->control();
    control.turn_holder.store(client.device->self().pack());
    ASSERT_TRUE(client.device->turn().enter(kNever));  // draws a ticket and finds that it has the turn
    EXPECT_EQ(control.tickets[client.device->self().slot].load(), 0U);
    client.device->turn().leave();
    EXPECT_EQ(control.turn_holder.load(), 0U);
    EXPECT_EQ(control.turn_waiters.load(), 0U);
  });
}

// Two processes compute for ever; each makes progress only while it holds the turn.
TEST(Turn, ProcessesThatNeverEndShareByASlice) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_TIME_SLICE_US", "200"}});
  Observer observer;
  const auto endless = [] {
    Client& client = open_client();
    std::thread([&client] {
      Turn& turn = client.device->turn();
      turn.enter(kNever);
      while (true) turn.pause(kNever);
    }).detach();
  };
  const Child first(endless);
  const Child second(endless);
  const std::uint32_t owners[] = {observer.clients.live(0)->owner.pack(), observer.clients.live(1)->owner.pack()};
  std::uint32_t last = 0;
  for (int changes = 0; changes < 20;) {
    const std::uint32_t holder = observer.view->control().turn_holder.load();
    if (holder == last || holder == 0) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_TRUE(holder == owners[0] || holder == owners[1]);
    last = holder;
    ++changes;
  }
  // A third, short, kernel gets its turn among them.
  as_client([](Client& client) {
    ASSERT_TRUE(client.device->turn().enter(kNever));
    client.device->turn().leave();
  });
}

TEST(Turn, KernelsOfOneProcessPauseTogether) {
  const TemporaryHome home(Environment{{"SOFTGPU_MEMORY_SCALE", "64"}, {"SOFTGPU_TIME_SLICE_US", "1"}});
  as_client([](Client& client) {
    Turn& turn = client.device->turn();
    std::atomic<int> inside{0};
    std::atomic<bool> done{false};
    std::vector<std::thread> kernels;
    for (int i = 0; i < 3; ++i) {
      kernels.emplace_back([&] {
        turn.enter(kNever);
        ++inside;
        while (!done) turn.pause(kNever);
        turn.leave();
      });
    }
    while (inside != 3) std::this_thread::yield();
    const int pid = ::fork();
    if (pid == 0) {
      Client& other = open_client();
      for (int i = 0; i < 5; ++i) {
        if (!other.device->turn().enter(kNever)) ::_exit(1);
        other.device->turn().leave();
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    done = true;
    for (std::thread& kernel : kernels) kernel.join();  // whoever gave the turn away is back by then
    EXPECT_GT(turn.away_ns(), 0U);
  });
}

}  // namespace
}  // namespace softgpu
