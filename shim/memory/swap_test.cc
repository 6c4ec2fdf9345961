// The moves, on the fake driver: contents, addresses and counts after everything that can go wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "shim/memory/testing/scene.h"

namespace fairlead::shim::memory {
namespace {

using testing::FakeDriver;
using testing::kMiB;
using testing::Scene;
using wire::MoveResult;

constexpr std::uint64_t kAll = UINT64_MAX;
constexpr std::uint64_t kSecond = 1'000'000'000;

// Two allocations with contents.
struct Program : Scene {
  explicit Program(const Options& options = {}) : Scene(options) {
    driver.poke(small, 1000, 1);
    driver.poke(large, 5 * kMiB, 2);
  }
  void expect_whole() {
    EXPECT_TRUE(driver.holds(small, 1000, 1));
    EXPECT_TRUE(driver.holds(large, 5 * kMiB, 2));
  }
  CUdeviceptr small = allocate(1000);
  CUdeviceptr large = allocate(5 * kMiB);
};

TEST(Swap, EverythingLeavesAndComesBackUnderItsAddress) {
  Program program;
  const wire::Moved out = swap_out(kAll, kSecond);
  EXPECT_EQ(out.result, MoveResult::kDone);
  EXPECT_EQ(out.bytes, 8 * kMiB);
  EXPECT_EQ(program.driver.used(), 0U);
  EXPECT_EQ(page().resident, 0U);
  EXPECT_EQ(page().away, 8 * kMiB);
  EXPECT_EQ(page().held, 5 * kMiB + 1000);
  EXPECT_TRUE(program.around.gate_closed);
  const wire::Moved in = swap_in();
  EXPECT_EQ(in.result, MoveResult::kDone);
  EXPECT_EQ(in.bytes, 8 * kMiB);
  EXPECT_FALSE(program.around.gate_closed);
  EXPECT_EQ(page().resident, 8 * kMiB);
  EXPECT_EQ(page().away, 0U);
  EXPECT_EQ(program.around.staged, 0U) << "all staging is given back";
  program.expect_whole();
}

// The node may look at any moment, and plans with what it sees.
TEST(Swap, NothingIsCountedTwiceOnTheWay) {
  Program program;
  std::set<std::uint64_t> away;
  program.driver.on_call = [&] {
    EXPECT_EQ(page().resident + page().away, 8 * kMiB);
    away.insert(page().away);
  };
  swap_out(kAll, kSecond);
  swap_in();
  program.driver.on_call = nullptr;
  EXPECT_EQ(away, (std::set<std::uint64_t>{0, 2 * kMiB, 6 * kMiB, 8 * kMiB})) << "all the stages were looked at";
}

// It still fills the device when everything else returns.
TEST(Swap, MemoryThatTheDriverWouldNotUnmapLeavesLessForWhatIsAllocatedAway) {
  Scene scene({.device_bytes = 16 * kMiB});
  const CUdeviceptr stuck = scene.allocate(6 * kMiB);
  scene.allocate(6 * kMiB);
  scene.free(stuck);
  scene.driver.fail(Symbol::cuMemUnmap, 1, CUDA_ERROR_UNKNOWN);
  swap_out(kAll, kSecond);
  CUdeviceptr address = 0;
  EXPECT_EQ(memory::allocate(&address, 6 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory::allocate(&address, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  EXPECT_FALSE(scene.around.gate_closed);
}

TEST(Swap, ContentsGoToMemoryOfTheProcessWhereThereIsNoArena) {
  for (const bool pinned : {true, false}) {
    Program program({.arena_bytes = 0});
    if (!pinned) {
      program.driver.fail(Symbol::cuMemHostAlloc, 1, CUDA_ERROR_OUT_OF_MEMORY);
      program.driver.fail(Symbol::cuMemHostAlloc, 2, CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
      EXPECT_EQ(swap_in().result, MoveResult::kDone);
      program.expect_whole();
    }
    EXPECT_LE(program.driver.calls(Symbol::cuMemHostAlloc), 2) << "pinned memory is kept for the next time";
  }
}

TEST(Swap, OnlyAsMuchAsIsAskedForLeavesOldestFirst) {
  Program program;
  const CUdeviceptr young = program.allocate(4 * kMiB);
  program.allocate(10);  // the slab is young again
  EXPECT_EQ(swap_out(kMiB, kSecond).bytes, 6 * kMiB);
  EXPECT_EQ(page().resident, 6 * kMiB);
  EXPECT_FALSE(program.driver.holds(program.large, 5 * kMiB, 2)) << "the oldest has left";
  EXPECT_EQ(swap_out(kMiB, kSecond).bytes, 4 * kMiB) << "a second order finds the gate closed and goes on";
  program.driver.poke(program.small, 1000, 1);
  EXPECT_EQ(swap_in().bytes, 10 * kMiB);
  program.expect_whole();
  program.free(young);
}

TEST(Swap, FreedMemoryIsGivenUpBeforeAnythingMoves) {
  Program program;
  program.free(program.allocate(4 * kMiB));
  const wire::Moved out = swap_out(4 * kMiB, kSecond);
  EXPECT_EQ(out.result, MoveResult::kDone);
  EXPECT_EQ(out.bytes, 4 * kMiB);
  EXPECT_FALSE(program.around.gate_closed);
  program.expect_whole();
}

TEST(Swap, NothingIsThereToMove) {
  Scene scene({});
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kNothing);
  EXPECT_EQ(swap_in().result, MoveResult::kNothing);
}

TEST(Swap, WhatIsFixedStays) {
  Program program;
  pin(program.large + kMiB);
  EXPECT_EQ(page().fixed, 6 * kMiB);
  EXPECT_EQ(swap_out(kAll, kSecond).bytes, 2 * kMiB);
  EXPECT_TRUE(program.driver.holds(program.large, 5 * kMiB, 2));
  swap_in();
  program.expect_whole();
  program.free(program.large);
  EXPECT_EQ(page().fixed, 0U);
}

TEST(Swap, BusyChangesNothing) {
  Program program;
  program.around.gate_closes = false;
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kBusy);
  program.around.gate_closes = true;
  program.around.captures = true;
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kBusy);
  EXPECT_EQ(program.driver.calls(Symbol::cuCtxRecordEvent), 0) << "it would break the capture";
  program.around.captures = false;
  program.driver.start_work(FakeDriver::kContext);
  EXPECT_EQ(swap_out(kAll, 1'000'000).result, MoveResult::kBusy) << "a kernel that waits for the host";
  program.driver.end_work(FakeDriver::kContext);
  program.driver.fail(Symbol::cuCtxRecordEvent, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kBusy);
  EXPECT_FALSE(program.around.gate_closed);
  EXPECT_EQ(page().resident, 8 * kMiB);
  program.expect_whole();
}

TEST(Swap, WorkOfAContextWithoutMemoryMustEndToo) {
  Program program;
  know_context(FakeDriver::kOther);
  program.driver.start_work(FakeDriver::kOther);
  EXPECT_EQ(swap_out(kAll, 1'000'000).result, MoveResult::kBusy);
  program.driver.end_work(FakeDriver::kOther);
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
}

TEST(Swap, WithoutStagingThatMuchIsLeftWhereItIs) {
  Program program({.arena_bytes = 6 * kMiB});
  const CUdeviceptr more = program.allocate(4 * kMiB);
  program.driver.poke(more, 4 * kMiB, 3);
  const wire::Moved out = swap_out(kAll, kSecond);
  EXPECT_EQ(out.result, MoveResult::kPartly);
  EXPECT_EQ(page().away + page().resident, 12 * kMiB);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  program.expect_whole();
  EXPECT_TRUE(program.driver.holds(more, 4 * kMiB, 3));
}

TEST(Swap, WithoutAnyStagingNothingChanges) {
  Program none({.arena_bytes = 2 * kMiB});
  none.free(none.small);
  EXPECT_EQ(swap_out(kAll, kSecond).bytes, 2 * kMiB) << "the empty slab";
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kNoRoom);
  EXPECT_FALSE(none.around.gate_closed);
}

TEST(Swap, AFailureOnTheWayOutLosesNothing) {
  for (const Symbol symbol : {Symbol::cuMemcpyDtoHAsync_v2, Symbol::cuEventSynchronize, Symbol::cuMemUnmap,
                              Symbol::cuStreamCreate, Symbol::cuEventCreate, Symbol::cuEventRecord}) {
    for (const int nth : {1, 2}) {
      Program program;
      program.driver.fail(symbol, nth, CUDA_ERROR_UNKNOWN);
      const wire::Moved out = swap_out(kAll, kSecond);
      EXPECT_EQ(out.bytes, page().away) << static_cast<int>(symbol);
      EXPECT_EQ(page().away + page().resident, 8 * kMiB);
      EXPECT_EQ(program.around.gate_closed, page().away != 0);
      // The planned failure may be this one's.
      if (swap_in().result != MoveResult::kDone && program.around.gate_closed) {
        EXPECT_EQ(swap_in().result, MoveResult::kDone);
      }
      EXPECT_EQ(program.around.staged, 0U);
      program.expect_whole();
    }
  }
}

TEST(Swap, AFailureOnTheWayInLosesNothing) {
  for (const Symbol symbol : {Symbol::cuMemCreate, Symbol::cuMemMap, Symbol::cuMemSetAccess,
                              Symbol::cuMemcpyHtoDAsync_v2, Symbol::cuEventRecord}) {
    for (const int nth : {1, 2}) {
      Program program;
      ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
      program.driver.fail(symbol, nth, CUDA_ERROR_UNKNOWN);
      const wire::Moved in = swap_in();
      EXPECT_EQ(page().away + page().resident, 8 * kMiB);
      EXPECT_EQ(program.around.gate_closed, page().away != 0);
      EXPECT_EQ(in.result == MoveResult::kDone, page().away == 0);
      if (page().away != 0) {
        EXPECT_EQ(swap_in().result, MoveResult::kDone);
      }
      EXPECT_EQ(program.around.staged, 0U);
      program.expect_whole();
    }
  }
}

TEST(Swap, AFullDeviceIsTheNodesToSolveAndThenSomeIsBack) {
  Program program({.device_bytes = 8 * kMiB});
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  CUdeviceptr others = 0;
  ASSERT_EQ(program.driver.allocate(&others, 4 * kMiB, false), CUDA_SUCCESS);
  const wire::Moved some = swap_in();
  EXPECT_EQ(some.result, MoveResult::kPartly);
  EXPECT_EQ(some.bytes, 2 * kMiB);
  EXPECT_EQ(program.around.asked_for_room, 1) << "once";
  EXPECT_TRUE(program.around.gate_closed);
  program.around.make_room = [&](std::uint64_t bytes) {
    EXPECT_EQ(bytes, 6 * kMiB);
    return program.driver.free_plain(others) == CUDA_SUCCESS;
  };
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  program.expect_whole();
}

TEST(Swap, WhatIsAllocatedWhileAwayIsThereWhenAllIsBack) {
  Program program({.device_bytes = 16 * kMiB});
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  const CUdeviceptr large = program.allocate(4 * kMiB);
  const CUdeviceptr small = program.allocate(700);
  EXPECT_EQ(program.driver.used(), 0U) << "it needs no device memory yet";
  Range range;
  EXPECT_TRUE(find(large + 5, &range));
  program.free(program.allocate(4 * kMiB));
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  program.driver.poke(large, 4 * kMiB, 5);
  program.driver.poke(small, 700, 6);
  program.expect_whole();
}

TEST(Swap, NoMoreIsAllocatedWhileAwayThanCanReturn) {
  Program program({.device_bytes = 16 * kMiB});
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  program.allocate(8 * kMiB);
  CUdeviceptr address = 0;
  EXPECT_EQ(allocate(&address, 2 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
}

TEST(Swap, WhatIsFreedWhileAwayGivesItsStagingBack) {
  Program program;
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  program.free(program.large);
  EXPECT_EQ(page().away, 2 * kMiB);
  program.free(program.small);
  EXPECT_EQ(page().held, 0U);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  EXPECT_EQ(program.around.staged, 0U);
  EXPECT_FALSE(program.around.gate_closed);
}

TEST(Swap, SlabsShareARequestForStaging) {
  Scene scene({.device_bytes = 256 * kMiB, .arena_bytes = 256 * kMiB});
  for (int i = 0; i < 40; ++i) scene.allocate(kMiB);
  ASSERT_EQ(swap_out(kAll, kSecond).bytes, 40 * kMiB);
  EXPECT_EQ(scene.around.staging_requests, 1);
  swap_in();
  EXPECT_EQ(scene.around.staged, 0U);
}

TEST(Swap, ACopyDoesNotCrossTwoRegistrations) {
  Scene scene({.device_bytes = 128 * kMiB, .arena_bytes = 128 * kMiB});
  scene.driver.poke(scene.allocate(70 * kMiB), 70 * kMiB, 1);
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemcpyDtoHAsync_v2), 3) << "chunks of 32 MiB";
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemHostRegister_v2), 3);
  swap_in();
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemHostRegister_v2), 3) << "pinned once";
}

TEST(Swap, WhatIsInAnOldNodesArenaReturnsFromThere) {
  Program program;
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  const std::size_t before = program.around.staged;
  program.around.make_arena(64 * kMiB);
  program.around.staged = 0;
  set_up({wire::MemoryBackend::kVmm, wire::UvmMode::kPlain, program.around.take_arena(), program.around.arena_bytes});
  EXPECT_GT(before, 0U);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  program.expect_whole();
  EXPECT_EQ(program.around.staged, 0U) << "the new node gets nothing that it did not give";
  ASSERT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  EXPECT_GT(program.driver.calls(Symbol::cuMemHostUnregister), 0) << "the old arena is gone";
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  program.expect_whole();
}

TEST(Swap, ManagedMemoryIsPrefetchedBothWays) {
  for (const bool v2 : {true, false}) {
    Scene scene({.backend = wire::MemoryBackend::kUvm});
    scene.driver.has_v2_prefetch = v2;
    scene.allocate(5 * kMiB);
    scene.driver.managed_on_device = 6 * kMiB;
    EXPECT_EQ(swap_out(kAll, kSecond).bytes, 6 * kMiB);
    EXPECT_EQ(scene.driver.managed_on_device, 0U);
    EXPECT_EQ(scene.around.staging_requests, 0);
    EXPECT_EQ(swap_in().bytes, 6 * kMiB);
    EXPECT_EQ(scene.driver.managed_on_device, 6 * kMiB);
  }
}

TEST(Swap, TheOtherManagedModesDoWhatTheyAreNamedFor) {
  for (const wire::UvmMode mode : {wire::UvmMode::kPlain, wire::UvmMode::kAdvise}) {
    Scene scene({.backend = wire::MemoryBackend::kUvm, .uvm = mode});
    scene.allocate(5 * kMiB);
    EXPECT_EQ(scene.driver.calls(Symbol::cuMemAdvise_v2), mode == wire::UvmMode::kAdvise ? 1 : 0);
    EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kNothing);
    EXPECT_EQ(swap_in().result, MoveResult::kNothing);
  }
  Scene scene({.backend = wire::MemoryBackend::kUvm, .uvm = wire::UvmMode::kPrefetch});
  scene.allocate(5 * kMiB);
  EXPECT_EQ(swap_out(kAll, kSecond).result, MoveResult::kDone);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemPrefetchAsync_v2), 0);
  EXPECT_EQ(swap_in().result, MoveResult::kDone);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemPrefetchAsync_v2), 1);
}

TEST(Swap, AllocatingAndFreeingMayGoOnDuringMoves) {
  Scene scene({.device_bytes = 256 * kMiB, .arena_bytes = 256 * kMiB});
  const CUdeviceptr kept = scene.allocate(3 * kMiB);
  scene.driver.poke(kept, 3 * kMiB, 9);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&scene, &stop, t] {
      for (unsigned i = 0; !stop; ++i) {
        const CUdeviceptr small = scene.allocate(100 + t);
        const CUdeviceptr large = scene.allocate((i % 3 + 2) * kMiB);
        Range range;
        EXPECT_TRUE(find(large + 1, &range) && range.start == large);
        scene.free(small);
        scene.free(large);
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_NE(swap_out(kAll, kSecond).result, MoveResult::kBusy);
    swap_in();
    EXPECT_FALSE(scene.around.gate_closed);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  swap_out(kAll, kSecond);
  EXPECT_EQ(page().away, 4 * kMiB) << "what is kept, and nothing else";
  EXPECT_EQ(page().held, 3 * kMiB);
  EXPECT_EQ(scene.driver.used(), 0U);
  swap_in();
  EXPECT_TRUE(scene.driver.holds(kept, 3 * kMiB, 9));
  EXPECT_EQ(scene.around.staged, 0U);
}

}  // namespace
}  // namespace fairlead::shim::memory
