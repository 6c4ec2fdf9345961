// The device model across real processes: shared capacity, and what remains of a process that is killed.
#include "softgpu/device/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
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

// As a program that closes what it does not know: a daemon, or one that starts another.
TEST(Clients, AProcessThatClosesAllDescriptorsLives) {
  const TemporaryHome home(kSmall);
  Observer observer;
  Child child([&] {
    open_client();
    ::close(::open(observer.machine.path("slots").c_str(), O_RDWR));
    for (int descriptor = 3; descriptor < 200; ++descriptor) {
      struct stat file = {};
      if (::fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode)) ::close(descriptor);  // not the pipe to the parent
    }
  });
  ASSERT_TRUE(child.ran());
  EXPECT_TRUE(observer.clients.live(0));
  child.kill();
  EXPECT_FALSE(observer.clients.live(0));
}

TEST(Clients, AChildOfForkDoesNotKeepItsParentAlive) {
  const TemporaryHome home(kSmall);
  Observer observer;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Child parent([&] {
    open_client();
    const int child = ::fork();
    if (child == 0) {
      while (true) ::pause();
    }
    EXPECT_EQ(::write(ends[1], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  });
  ASSERT_TRUE(parent.ran());
  EXPECT_TRUE(observer.clients.live(0));
  parent.kill();
  EXPECT_FALSE(observer.clients.live(0));
  int child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ::kill(child, SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
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
  Child holder([] { open_client().device->turn().enter([] { return false; }); });
  EXPECT_GT(observer.view->sample().busy, 0);
  holder.kill();
  EXPECT_EQ(observer.view->sample().busy, 0);
}

TEST(PageEntry, SurvivesPacking) {
  const PageEntry entries[] = {
      {PageEntry::Kind::kPrivate, {511, Owner::kGenerationMask}, {}, 1ULL << 31},
      {PageEntry::Kind::kEvictable, {0, 1}, {}, UINT32_MAX},
      {PageEntry::Kind::kShared, {}, {kMaxShares - 1, ShareName::kGenerationMask}, (1ULL << 22) - 1},
  };
  for (const PageEntry& entry : entries) {
    const PageEntry copy = PageEntry::unpack(entry.pack());
    EXPECT_EQ(copy.kind, entry.kind);
    EXPECT_EQ(copy.owner, entry.owner);
    EXPECT_EQ(copy.share, entry.share);
    EXPECT_EQ(copy.page, entry.page);
  }
}

}  // namespace
}  // namespace softgpu
