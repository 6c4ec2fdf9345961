#include "softgpu/device/memory/memory_use.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Client;
using testing::kSmall;
using testing::TemporaryHome;

TEST(MemoryUse, WhatIsRetiredWhileNothingRunsIsDoneAtOnce) {
  bool done = false;
  EXPECT_TRUE(MemoryUse::none());
  MemoryUse::retire([&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(MemoryUse, TheLastUseThatRanEndsTheWaitAndLaterOnesDoNotProlongIt) {
  auto first = std::make_unique<MemoryUse>();
  auto second = std::make_unique<MemoryUse>();
  bool done = false;
  MemoryUse::retire([&] { done = true; });
  const MemoryUse later;
  EXPECT_FALSE(MemoryUse::none());
  second.reset();
  EXPECT_FALSE(done);
  first.reset();
  EXPECT_TRUE(done);
}

TEST(MemoryUse, EveryRetirementWaitsForItsOwnUses) {
  auto first = std::make_unique<MemoryUse>();
  int done = 0;
  MemoryUse::retire([&] { done |= 1; });
  auto second = std::make_unique<MemoryUse>();
  MemoryUse::retire([&] { done |= 2; });
  second.reset();
  EXPECT_EQ(done, 0);  // the first use may look at either
  first.reset();
  EXPECT_EQ(done, 3);
}

// A use that ends in the middle of the list, from another thread, as those of streams do.
TEST(MemoryUse, WaitEndsThoughThereIsAlwaysSomeUse) {
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  const auto overlap = [&] {
    auto use = std::make_unique<MemoryUse>();
    while (!stop) {
      auto next = std::make_unique<MemoryUse>();
      use = std::move(next);
      ++begun;
    }
  };
  std::thread one(overlap);
  std::thread other(overlap);
  while (begun < 2) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) MemoryUse::wait_for_all();
  stop = true;
  one.join();
  other.join();
  EXPECT_TRUE(MemoryUse::none());
}

TEST(MemoryUse, AMappingGoesWhenItsUsesHaveEnded) {
  void* const memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto& word = *static_cast<volatile int*>(memory);
  word = 7;
  std::optional<MemoryUse> use(std::in_place);
  MemoryUse::retire_mapping(reinterpret_cast<std::uint64_t>(memory), kPageBytes);
  EXPECT_EQ(word, 0);  // given up, but there
  use.reset();
  unsigned char resident = 0;
  EXPECT_NE(::mincore(memory, 4096, &resident), 0);
}

// Whether the system can read a byte there: EFAULT instead of a signal.
bool readable(std::uint64_t address) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  const bool written = ::write(ends[1], reinterpret_cast<const void*>(address), 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return written;
}

TEST(Window, MemoryFreedUnderAUseIsScratchAndThePagesAreAnothers) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const auto heap = client.device->make_heap();
    const std::uint64_t all = client.device->free_bytes();
    const std::uint64_t address = heap->allocate(4 * kPageBytes);
    auto* word = reinterpret_cast<volatile int*>(address);
    {
      const MemoryUse use;
      *word = 7;
      EXPECT_TRUE(heap->release(address));
      EXPECT_EQ(client.device->free_bytes(), all);
      EXPECT_EQ(client.device->window().find(address).end, 0U);
      EXPECT_EQ(*word, 0);
      *word = 8;
      const std::uint64_t next = heap->allocate(4 * kPageBytes);
      EXPECT_NE(next, 0U);
      EXPECT_NE(*reinterpret_cast<volatile int*>(next), 8);  // nothing of the scratch comes back
      EXPECT_TRUE(heap->release(next));
    }
    const std::uint64_t last = heap->allocate(4 * kPageBytes);
    EXPECT_TRUE(heap->release(last));
    EXPECT_FALSE(readable(last));  // nobody runs: the program's own mistake is a signal, as ever
  });
}

// As a kernel that runs on while its memory is freed: a race by intent, of which the thread sanitizer is not told.
__attribute__((no_sanitize("thread"))) void write_until(const std::atomic<bool>& stop, std::uint64_t address,
                                                        std::uint64_t bytes) {
  for (std::uint64_t i = 0; !stop; i += 64) *reinterpret_cast<volatile char*>(address + i % bytes) = 1;
}

// Replacing a mapping has no moment at which there is none.
TEST(Window, AUseNeverMeetsAHole) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const auto heap = client.device->make_heap();
    std::atomic<std::uint64_t> address{heap->allocate(2 * kPageBytes)};
    std::atomic<bool> stop{false};
    std::atomic<bool> runs{false};
    std::thread kernel([&] {
      const MemoryUse use;
      const auto at = address.load();
      runs = true;
      write_until(stop, at, 2 * kPageBytes);
    });
    while (!runs) std::this_thread::yield();
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(heap->release(address));
      address = heap->allocate(2 * kPageBytes);  // the same, lowest, addresses
    }
    stop = true;
    kernel.join();
  });
}

TEST(Heap, ClosedItOwnsNothingAndOpenedItIsNew) {
  const TemporaryHome home(kSmall);
  as_client([](Client& client) {
    const std::uint64_t before = client.device->free_bytes();
    const auto heap = client.device->make_heap();
    const std::uint64_t small = heap->allocate(100);
    const std::uint64_t large = heap->allocate(3 * kPageBytes);
    heap->close();
    EXPECT_EQ(client.device->free_bytes(), before);
    EXPECT_EQ(heap->allocate(100), 0U);
    EXPECT_EQ(heap->allocate(3 * kPageBytes), 0U);
    EXPECT_FALSE(heap->owns(small));
    EXPECT_FALSE(heap->release(small));
    EXPECT_FALSE(heap->release(large));
    EXPECT_EQ(client.device->window().find(small).end, 0U);
    heap->open();
    const std::uint64_t again = heap->allocate(100);
    EXPECT_TRUE(heap->owns(again));
    EXPECT_EQ(client.device->free_bytes(), before - kPageBytes);
  });
}

}  // namespace
}  // namespace softgpu
