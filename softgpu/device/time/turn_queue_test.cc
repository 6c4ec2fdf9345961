#include "softgpu/device/time/turn_queue.h"

#include <gtest/gtest.h>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Child;
using testing::Client;
using testing::kSmall;
using testing::open_client;
using testing::TemporaryHome;

const StopCheck kNever = [] { return false; };
const StopCheck kAtOnce = [] { return true; };

// A process's own queue, beside the one in its Device.
struct Waiter {
  explicit Waiter(Client& its_client) : client(its_client) {}
  Client& client;
  Control& control = client.device->control();
  DeviceLock lock{control.lock, *client.clients, client.self};
  TurnQueue queue{control, lock, *client.clients, client.self};
};

TEST(TurnQueue, AFreeTurnIsTakenWithoutATicket) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    Waiter self(client);
    EXPECT_TRUE(self.queue.acquire(kAtOnce));
    EXPECT_EQ(self.control.turn_holder.load(), client.self.pack());
    EXPECT_EQ(self.control.tickets[client.self.slot].load(), 0U);
    EXPECT_FALSE(self.queue.others_wait());
    self.queue.give_up(monotonic_ns());
    EXPECT_EQ(self.control.turn_holder.load(), 0U);
  });
}

TEST(TurnQueue, TheMeterRunsWhileTheTurnIsHeld) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    Waiter self(client);
    const BusyMeter meter(self.control);
    ASSERT_TRUE(self.queue.acquire(kNever));
    const std::uint64_t before = meter.total_busy_ns();
    self.queue.give_up(monotonic_ns() + 1'000'000);
    EXPECT_GE(meter.total_busy_ns() - before, 1'000'000U);
  });
}

TEST(TurnQueue, WhoIsStoppedLeavesNoTicketBehind) {
  const TemporaryHome home(kSmall);
  Child holder([] { open_client().device->turn().enter(kNever); });
  as_client([](Client& client) {
    Waiter self(client);
    int asked = 0;
    EXPECT_FALSE(self.queue.acquire([&] {
      EXPECT_TRUE(self.queue.others_wait()) << "the ticket is drawn before anybody is asked";
      return ++asked == 2;
    }));
    EXPECT_FALSE(self.queue.others_wait());
    EXPECT_EQ(self.control.tickets[client.self.slot].load(), 0U);
  });
}

// The turn came while the waiter was told to stop: it goes on to the next, who may have nobody else to wake it.
TEST(TurnQueue, ATurnThatComesToOneWhoStopsIsHandedOn) {
  const TemporaryHome home(kSmall);
  Child holder([] { open_client().device->turn().enter(kNever); });
  as_client([](Client& client) {
    Waiter self(client);
    EXPECT_FALSE(self.queue.acquire([&] {
      self.control.turn_holder.store(client.self.pack());
      return true;
    }));
    EXPECT_EQ(self.control.turn_holder.load(), 0U);
  });
}

TEST(TurnQueue, TicketsOfTheDeadArePassedOver) {
  const TemporaryHome home(kSmall);
  Child holder([] { open_client().device->turn().enter(kNever); });
  Child waiter([] {
    Client& client = open_client();
    Control& control = client.device->control();
    control.ticket_owners[client.self.slot].store(client.self.pack());
    control.tickets[client.self.slot].store(control.next_ticket.fetch_add(1) + 1);
    control.turn_waiters.fetch_add(1);
  });
  waiter.kill();
  holder.kill();
  as_client([](Client& client) {
    Waiter self(client);
    EXPECT_TRUE(self.queue.acquire(kNever));
    EXPECT_FALSE(self.queue.others_wait());
  });
}

}  // namespace
}  // namespace softgpu
