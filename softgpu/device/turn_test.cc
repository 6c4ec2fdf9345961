#include "softgpu/device/turn.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Child;
using testing::Client;
using testing::kSmall;
using testing::Observer;
using testing::open_client;
using testing::TemporaryHome;

TEST(Turn, PassesOverADeadHolder) {
  const TemporaryHome home(kSmall);
  Child holder([] { open_client().device->turn().enter(); });
  holder.kill();
  as_client([](Client& client) {
    client.device->turn().enter();
    EXPECT_EQ(client.device->self().slot, 0U);
    client.device->turn().leave();
  });
}

TEST(Turn, WaitersAreServedInTheOrderOfTheirTickets) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Control& control = observer.view->control();
  std::string order = home.path() + "/order";
  Child holder([] { open_client().device->turn().enter(); });
  const auto queue_up = [&](char name) {
    const std::uint32_t before = control.turn_waiters.load();
    const int pid = ::fork();
    if (pid == 0) {
      Client& client = open_client();
      client.device->turn().enter();
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

}  // namespace
}  // namespace softgpu
