// The device model across real processes: shared capacity, and what remains of a process that is killed.
#include "softgpu/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "softgpu/device/testing.h"

namespace softgpu {
namespace {

using testing::Child;
using testing::Environment;
using ::testing::HasSubstr;
using testing::TemporaryHome;

// 16 GiB / 64: 128 pages.
const Environment kSmall = {{"SOFTGPU_MEMORY_SCALE", "64"}};

// Everything one client process has. Never destroyed: like the driver's, it lives as long as the process.
struct Client {
  Machine machine;
  std::optional<Clients> clients;
  std::unique_ptr<Device> device;
};

Client& open_client() {
  auto& client = *new Client;
  client.machine = open_machine().value();
  client.clients = Clients::open(client.machine).value();
  const Owner self = client.clients->join().value();
  client.device = Device::open(client.machine, *client.clients, self, 0).value();
  return client;
}

// Tests run as clients in child processes; this reads the shared state as NVML does.
struct Observer {
  Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  std::unique_ptr<DeviceView> view = DeviceView::open(machine, clients, 0).value();
  std::uint64_t used() const { return view->use().total; }
};

// Runs `body` in a process of its own, because a process is one client; its expectations decide the exit status.
void as_client(const std::function<void(Client&)>& body) {
  const int pid = ::fork();
  if (pid == 0) {
    body(open_client());
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Machine, FirstProcessDecidesAndLaterEnvironmentIsIgnored) {
  const TemporaryHome home(
      Environment{{"SOFTGPU_PROFILE", "a30"}, {"SOFTGPU_DEVICES", "3"}, {"SOFTGPU_MODE", "model"}});
  const Machine first = open_machine().value();
  ::setenv("SOFTGPU_PROFILE", "h100-80", 1);
  const Machine second = open_machine().value();
  EXPECT_EQ(second.profile.name, "NVIDIA A30");
  EXPECT_EQ(second.device_count, 3U);
  EXPECT_EQ(second.mode, Mode::kModel);
  EXPECT_EQ(uuid_text(first, 1), uuid_text(second, 1));
  EXPECT_NE(uuid_text(first, 0), uuid_text(first, 1));
}

TEST(Machine, BadEnvironmentIsRefusedByName) {
  const TemporaryHome home(Environment{{"SOFTGPU_DEVICES", "99"}});
  const auto machine = open_machine();
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error(), HasSubstr("devices is '99'"));
}

TEST(Machine, DamagedStateIsRefusedWithAdvice) {
  const TemporaryHome home;
  std::ofstream(home.path() + "/machine") << "version = 99\n";
  EXPECT_THAT(open_machine().error(), HasSubstr("softgpu reset"));
}

TEST(Machine, TruncatedControlSegmentIsRefusedWithAdvice) {
  const TemporaryHome home(kSmall);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  std::ofstream(home.path() + "/device0.control") << "short";
  const auto view = DeviceView::open(machine, clients, 0);
  ASSERT_FALSE(view);
  EXPECT_THAT(view.error(), HasSubstr("softgpu reset"));
}

TEST(Clients, SlotIsAliveWhileItsProcessLives) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child child([] { open_client(); });
  ASSERT_TRUE(child.ran());
  const auto live = observer.clients.live(0);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->pid, child.pid());
  child.kill();
  EXPECT_FALSE(observer.clients.live(0));
  EXPECT_FALSE(observer.clients.alive(live->owner));
}

TEST(Clients, OwnProcessIsSeenAliveThroughAnotherDescriptor) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const Clients second = Clients::open(client.machine).value();  // as NVML in the process of a driver
    EXPECT_TRUE(second.alive(client.device->self()));
    EXPECT_EQ(second.live(0)->pid, ::getpid());
  });
}

TEST(Clients, NextOwnerOfASlotHasAnotherGeneration) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child first([] { open_client(); });
  const Owner owner = observer.clients.live(0)->owner;
  first.kill();
  const Child second([] { open_client(); });
  EXPECT_EQ(observer.clients.live(0)->owner.slot, owner.slot);
  EXPECT_FALSE(observer.clients.alive(owner));
}

TEST(Heap, BlocksAreDisjointAlignedAndExact) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const auto heap = client.device->make_heap();
    std::map<std::uint64_t, std::uint64_t> blocks;
    for (std::uint64_t bytes = 1; bytes < (6ULL << 20); bytes = bytes * 3 / 2 + 7) {
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t address = heap->allocate(bytes);
        ASSERT_NE(address, 0U);
        EXPECT_EQ(address % Heap::kAlignment, 0U);
        EXPECT_TRUE(client.device->window().covers(address, bytes));
        EXPECT_FALSE(client.device->window().covers(address, bytes + 1));
        std::memset(reinterpret_cast<void*>(address), 0x5A, bytes);
        blocks[address] = bytes;
      }
    }
    std::uint64_t end = 0;
    for (const auto& [address, bytes] : blocks) {
      EXPECT_GE(address, end);
      end = address + bytes;
      EXPECT_TRUE(heap->release(address));
      EXPECT_FALSE(heap->release(address));
      EXPECT_EQ(client.device->window().find(address).end, 0U);
    }
  });
}

TEST(Heap, EverythingFreedLeavesOnlyTheSpareSlab) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const std::uint64_t before = client.device->free_bytes();
    {
      const auto heap = client.device->make_heap();
      EXPECT_EQ(client.device->free_bytes(), before - kPageBytes);
      std::vector<std::uint64_t> blocks;
      for (int i = 0; i < 20'000; ++i) blocks.push_back(heap->allocate(i % 2 == 0 ? 100 : 5000));
      EXPECT_LT(client.device->free_bytes(), before - 20 * kPageBytes);
      for (const std::uint64_t block : blocks) EXPECT_TRUE(heap->release(block));
      EXPECT_EQ(client.device->free_bytes(), before - kPageBytes);
      heap->allocate(10 << 20);  // left for the heap's end
    }
    EXPECT_EQ(client.device->free_bytes(), before);
  });
}

TEST(Heap, MemoryFreedByOneOwnerIsZeroForTheNext) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const auto heap = client.device->make_heap();
    const std::uint64_t bytes = client.device->free_bytes();
    const std::uint64_t secret = heap->allocate(bytes);
    ASSERT_NE(secret, 0U);
    std::memset(reinterpret_cast<void*>(secret), 0xFF, 4 << 20);
    heap->release(secret);
    const std::uint64_t next = heap->allocate(bytes);
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(next), 0U);
  });
}

TEST(Heap, FragmentedPagesStillMakeOneAllocation) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const auto heap = client.device->make_heap();
    std::vector<std::uint64_t> pages;
    while (const std::uint64_t page = heap->allocate(kPageBytes)) pages.push_back(page);
    for (std::size_t i = 0; i < pages.size(); i += 2) heap->release(pages[i]);
    const std::uint64_t count = (pages.size() + 1) / 2;
    const std::uint64_t scattered = heap->allocate(count * kPageBytes);
    ASSERT_NE(scattered, 0U);
    std::memset(reinterpret_cast<void*>(scattered), 1, count * kPageBytes);
    EXPECT_EQ(heap->allocate(kPageBytes), 0U);
  });
}

TEST(Capacity, IsSharedByProcessesAndComesBackFromTheDead) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child holder([] { open_client().device->make_heap().release()->allocate(100 * kPageBytes); });
  EXPECT_EQ(observer.used(), 101U);
  EXPECT_EQ(observer.view->use().by_slot[0], 101U);
  as_client([](Client& client) {
    EXPECT_EQ(client.device->free_bytes(), 27 * kPageBytes);
    EXPECT_EQ(client.device->make_heap()->allocate(50 * kPageBytes), 0U);
  });
  holder.kill();
  EXPECT_EQ(observer.used(), 0U);
  as_client([](Client& client) { EXPECT_NE(client.device->make_heap()->allocate(120 * kPageBytes), 0U); });
}

TEST(DeviceLock, IsTakenOverFromADeadHolder) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child holder([] {
    Client& client = open_client();
    auto view = DeviceView::open(client.machine, *client.clients, 0).value();
    (new DeviceLock(view->control().lock, *client.clients, client.device->self()))->lock();
    view.release();
  });
  EXPECT_NE(observer.view->control().lock.load(), 0U);
  holder.kill();
  as_client([](Client& client) { EXPECT_NE(client.device->make_heap()->allocate(kPageBytes), 0U); });
  EXPECT_EQ(observer.view->control().lock.load(), 0U);
}

TEST(DeviceLock, ExcludesThreads) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    auto view = DeviceView::open(client.machine, *client.clients, 0).value();
    DeviceLock lock(view->control().lock, *client.clients, client.device->self());
    int counter = 0;  // guarded by lock
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 2000; ++j) {
          const std::lock_guard guard(lock);
          ++counter;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counter, 8000);
  });
}

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

TEST(BusyMeter, CountsTheLastSecondOnly) {
  const TemporaryHome home(kSmall);
  Observer observer;
  BusyMeter meter = observer.view->meter();
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t now = 100 * kSecond;
  meter.begin(now);
  EXPECT_NEAR(meter.sample(now + kSecond / 4).busy, 0.25, 0.001);  // still running
  meter.end(now + kSecond / 2);
  EXPECT_NEAR(meter.sample(now + kSecond / 2).busy, 0.5, 0.001);
  EXPECT_NEAR(meter.sample(now + 5 * kSecond / 4).busy, 0.25, 0.03);
  EXPECT_EQ(meter.sample(now + 2 * kSecond).busy, 0);
  EXPECT_EQ(meter.total_busy_ns(), kSecond / 2);
}

TEST(BusyMeter, AKilledHolderIsNotBusy) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child holder([] { open_client().device->turn().enter(); });
  EXPECT_GT(observer.view->sample().busy, 0);
  holder.kill();
  EXPECT_EQ(observer.view->sample().busy, 0);
}

TEST(PageEntry, SurvivesPacking) {
  const PageEntry entry{{511, Owner::kGenerationMask}, 1ULL << 33};
  const PageEntry copy = PageEntry::unpack(entry.pack());
  EXPECT_EQ(copy.owner, entry.owner);
  EXPECT_EQ(copy.window_page, entry.window_page);
}

}  // namespace
}  // namespace softgpu
