#include "shim/gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace fairlead::shim {
namespace {

constexpr std::uint64_t kSecond = 1000000000;

TEST(Gate, NobodyIsInsideWhileItIsClosed) {
  std::atomic<bool> stop{false};
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        const Passage passage;
        inside.fetch_add(1);
        passed.fetch_add(1);
        inside.fetch_sub(1);
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = passed.load();
    while (passed.load() == before) std::this_thread::yield();
    ASSERT_TRUE(close_gate(wire::kGateMemory, 10 * kSecond));
    EXPECT_EQ(inside.load(), 0);
    const std::uint64_t closed = passed.load();
    std::this_thread::yield();
    EXPECT_EQ(passed.load(), closed);
    open_gate(wire::kGateMemory);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(page().gate.load(), 0U);
}

TEST(Gate, ClosingGivesUpAtItsDeadlineAndOpensAgain) {
  std::atomic<bool> entered{false};
  std::atomic<bool> leave{false};
  std::thread thread([&] {
    const Passage passage;
    entered.store(true);
    while (!leave.load()) std::this_thread::yield();
  });
  while (!entered.load()) std::this_thread::yield();
  EXPECT_FALSE(close_gate(wire::kGateMemory, 1000));
  EXPECT_EQ(page().gate.load(), 0U);
  leave.store(true);
  thread.join();
  EXPECT_TRUE(close_gate(wire::kGateMemory, kSecond));
  open_gate(wire::kGateMemory);
}

TEST(Gate, APassageInsideAnotherPassesAClosedGate) {
  const Passage outer;
  page().gate.fetch_or(wire::kGateNode);
  {
    const Passage inner;
    EXPECT_EQ(inner.slot(), nullptr);
  }
  open_gate(wire::kGateNode);
  EXPECT_NE(outer.slot(), nullptr);
}

TEST(Gate, TheShimsOwnWorkPassesAClosedGate) {
  page().gate.fetch_or(wire::kGateMemory);
  {
    const Bypass own_work;
    const Passage passage;
    EXPECT_EQ(passage.slot(), nullptr);
  }
  open_gate(wire::kGateMemory);
  EXPECT_FALSE(bypassed());
}

TEST(Gate, AWaiterIsCountedAndGoesOnWhenEveryBitIsOpen) {
  const std::uint64_t waits = page().gate_waits.load();
  ASSERT_TRUE(close_gate(wire::kGateMemory, kSecond));
  page().gate.fetch_or(wire::kGateNode);
  std::atomic<bool> passed{false};
  std::thread thread([&] {
    const Passage passage;
    passed.store(true);
  });
  while (!somebody_waits()) std::this_thread::yield();
  open_gate(wire::kGateMemory);
  EXPECT_FALSE(passed.load());
  open_gate(wire::kGateNode);
  thread.join();
  EXPECT_TRUE(passed.load());
  EXPECT_FALSE(somebody_waits());
  EXPECT_EQ(page().gate_waits.load(), waits + 1);
}

template <typename Word>
bool becomes(const std::atomic<Word>& word, Word wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (word.load() != wanted && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return word.load() == wanted;
}

TEST(Gate, WhoseMemoryIsAwayAsksForNoPlace) {
  wire::ShimPage& shared = page();
  shared.pace.store(wire::kPacePlaces);
  shared.gate.fetch_or(wire::kGateNode);
  std::thread thread([] { const Passage passage; });
  EXPECT_TRUE(becomes(shared.asking, std::uint64_t{1}));
  // Its memory leaves, and it is given a place that it cannot use.
  shared.gate.fetch_or(wire::kGateMemory);
  shared.open_until_ns.store(UINT64_MAX / 2);
  shared.grant.fetch_add(1);
  open_gate(wire::kGateNode);
  EXPECT_TRUE(becomes(shared.asking, std::uint64_t{0}));
  EXPECT_TRUE(becomes(shared.drained, shared.grant.load())) << "it gives the place back";
  EXPECT_NE(shared.gate.load() & wire::kGateNode, 0U);
  open_gate(wire::kGateMemory);
  EXPECT_TRUE(becomes(shared.asking, std::uint64_t{1})) << "and asks again when its memory is back";
  shared.pace.store(0);
  open_gate(wire::kGateNode);
  thread.join();
  EXPECT_EQ(shared.asking.load(), 0U);
}

TEST(Gate, LaunchesOfEveryThreadAreInThePageWhenTheThreadHasEnded) {
  const std::uint64_t before = page().launches.load();
  std::vector<std::thread> threads;
  for (int i = 0; i < 200; ++i) {  // more than one block of slots, over time
    threads.emplace_back([] {
      for (int n = 0; n < 300; ++n) {
        const Passage passage;
        count_launch(passage.slot());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(page().launches.load(), before + 200 * 300);
}

}  // namespace
}  // namespace fairlead::shim
