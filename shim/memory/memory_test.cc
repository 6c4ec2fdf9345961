// Allocating, freeing, finding, counting, on the fake driver.
#include "shim/memory/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "shim/memory/testing/scene.h"

namespace fairlead::shim::memory {
namespace {

using testing::FakeDriver;
using testing::kMiB;
using testing::Scene;

TEST(Memory, SmallAllocationsShareAGranule) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr one = scene.allocate(100);
  const CUdeviceptr two = scene.allocate(100);
  EXPECT_EQ(two - one, 512U);
  EXPECT_EQ(scene.driver.used(), 2 * kMiB);
  EXPECT_EQ(page().held, 200U);
  EXPECT_EQ(page().resident, 2 * kMiB);
}

TEST(Memory, LargeAllocationsHaveGranulesOfTheirOwn) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr one = scene.allocate(3 * kMiB);
  EXPECT_EQ(one % (2 * kMiB), 0U);
  EXPECT_EQ(scene.driver.used(), 4 * kMiB);
  scene.driver.poke(one, 3 * kMiB, 1);
}

TEST(Memory, TheCapIsTheDriversOutOfMemory) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  page().memory_cap = 4 * kMiB;
  const CUdeviceptr one = scene.allocate(3 * kMiB);
  CUdeviceptr two = 0;
  EXPECT_EQ(allocate(&two, kMiB + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(&two, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(page().held, 3 * kMiB);
  EXPECT_EQ(allocate(&two, kMiB), CUDA_SUCCESS);
  scene.free(one);
  std::size_t free_bytes = 100 * kMiB, total = 200 * kMiB;
  show_capped(&free_bytes, &total);
  EXPECT_EQ(free_bytes, 3 * kMiB);
  EXPECT_EQ(total, 4 * kMiB);
}

TEST(Memory, FindsTheAllocationOfAnInteriorPointer) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr small = scene.allocate(1000);
  const CUdeviceptr large = scene.allocate(5 * kMiB);
  Range range;
  ASSERT_TRUE(find(small + 999, &range));
  EXPECT_EQ(range.start, small);
  EXPECT_EQ(range.bytes, 1000U);
  EXPECT_EQ(range.context, FakeDriver::kContext);
  EXPECT_FALSE(find(small + 1000, &range));
  ASSERT_TRUE(find(large + 5 * kMiB - 1, &range));
  EXPECT_EQ(range.start, large);
  EXPECT_FALSE(find(large + 5 * kMiB, &range));
  EXPECT_FALSE(find(0x1234, &range));
}

TEST(Memory, WhatStartsNowhereIsNotFreed) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr small = scene.allocate(1000);
  const CUdeviceptr large = scene.allocate(5 * kMiB);
  CUresult result = CUDA_SUCCESS;
  EXPECT_EQ(memory::free(small + 512, &result), Freed::kFailed);
  EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory::free(large + 2 * kMiB, &result), Freed::kFailed);
  EXPECT_EQ(memory::free(0x1234, &result), Freed::kNotOurs);
  scene.free(small);
  EXPECT_EQ(memory::free(small, &result), Freed::kFailed) << "twice";
  EXPECT_EQ(page().held, 5 * kMiB);
}

TEST(Memory, FreedMemoryStaysMappedForTheNextAllocationOfItsSize) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr one = scene.allocate(3 * kMiB);
  scene.free(one);
  EXPECT_EQ(page().held, 0U);
  EXPECT_EQ(page().resident, 4 * kMiB);
  EXPECT_EQ(scene.allocate(4 * kMiB), one);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemCreate), 1);
}

TEST(Memory, AFullDeviceGetsBackWhatWasFreedBeforeTheNodeIsAsked) {
  Scene scene({.backend = wire::MemoryBackend::kVmm, .device_bytes = 16 * kMiB});
  const CUdeviceptr one = scene.allocate(6 * kMiB);
  scene.free(one);
  scene.allocate(12 * kMiB);
  EXPECT_EQ(scene.around.asked_for_room, 0);
  CUdeviceptr more = 0;
  EXPECT_EQ(allocate(&more, 6 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(scene.around.asked_for_room, 1);
  EXPECT_EQ(page().held, 12 * kMiB);
  EXPECT_EQ(scene.driver.reserved(), 1U) << "nothing is left of what was refused";
}

TEST(Memory, RoomThatIsTooLittleIsAskedForAgain) {
  Scene scene({.backend = wire::MemoryBackend::kVmm, .device_bytes = 8 * kMiB});
  std::vector<CUdeviceptr> others(2);
  for (CUdeviceptr& one : others) ASSERT_EQ(scene.driver.allocate(&one, 3 * kMiB, false), CUDA_SUCCESS);
  scene.around.make_room = [&](std::uint64_t) {
    const bool freed = scene.driver.free_plain(others.back()) == CUDA_SUCCESS;
    others.pop_back();
    return freed;
  };
  scene.allocate(6 * kMiB);
  EXPECT_EQ(scene.around.asked_for_room, 2);
}

TEST(Memory, ANodeThatPromisesForEverIsNotBelievedForEver) {
  Scene scene({.backend = wire::MemoryBackend::kVmm, .device_bytes = 8 * kMiB});
  scene.around.make_room = [](std::uint64_t) { return true; };
  CUdeviceptr address = 0;
  EXPECT_EQ(allocate(&address, 10 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(scene.around.asked_for_room, 8);
}

TEST(Memory, TheNodeMakesRoom) {
  Scene scene({.backend = wire::MemoryBackend::kVmm, .device_bytes = 8 * kMiB});
  CUdeviceptr others = 0;
  ASSERT_EQ(scene.driver.allocate(&others, 6 * kMiB, false), CUDA_SUCCESS);
  scene.around.make_room = [&](std::uint64_t) { return scene.driver.free_plain(others) == CUDA_SUCCESS; };
  scene.allocate(6 * kMiB);
}

TEST(Memory, AFreeThatMayNotWaitIsCarriedOutByALaterOne) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr small = scene.allocate(100);
  const CUdeviceptr large = scene.allocate(4 * kMiB);
  scene.around.captures = true;
  const int waits = scene.driver.calls(Symbol::cuCtxSynchronize);
  scene.free(small);
  scene.free(large);
  EXPECT_EQ(scene.driver.calls(Symbol::cuCtxSynchronize), waits) << "waiting would break the capture";
  EXPECT_EQ(page().held, 0U);
  const CUdeviceptr other = scene.allocate(100);
  EXPECT_NE(other, small) << "work of before the capture may still use it";
  EXPECT_NE(scene.allocate(4 * kMiB), large);
  scene.around.captures = false;
  scene.free(other);
  EXPECT_EQ((std::set{scene.allocate(100), scene.allocate(100)}), (std::set{small, other}));
  EXPECT_EQ(scene.allocate(4 * kMiB), large);
}

TEST(Memory, AFreeThatFailsChangesNothing) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr one = scene.allocate(4 * kMiB);
  scene.driver.fail(Symbol::cuCtxSynchronize, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  CUresult result = CUDA_SUCCESS;
  EXPECT_EQ(memory::free(one, &result), Freed::kFailed);
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(page().held, 4 * kMiB);
  scene.free(one);
}

TEST(Memory, AMappingThatFailsLeavesNothingBehind) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  for (const Symbol symbol :
       {Symbol::cuMemAddressReserve, Symbol::cuMemCreate, Symbol::cuMemMap, Symbol::cuMemSetAccess}) {
    scene.driver.fail(symbol, 1, CUDA_ERROR_UNKNOWN);
    CUdeviceptr address = 0;
    EXPECT_EQ(allocate(&address, 4 * kMiB), CUDA_ERROR_UNKNOWN);
    EXPECT_EQ(scene.driver.used(), 0U);
    EXPECT_EQ(scene.driver.reserved(), 0U);
    EXPECT_EQ(page().held, 0U);
    EXPECT_EQ(page().resident, 0U);
  }
}

TEST(Memory, PeersReachWhatIsThereAndWhatComes) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  scene.allocate(4 * kMiB);
  const int calls = scene.driver.calls(Symbol::cuMemSetAccess);
  EXPECT_EQ(grant(FakeDriver::kContext, 1), CUDA_SUCCESS);
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemSetAccess), calls + 1);
  EXPECT_EQ(grant(FakeDriver::kContext, 1), CUDA_SUCCESS) << "again: nothing to do";
  EXPECT_EQ(scene.driver.calls(Symbol::cuMemSetAccess), calls + 1);
}

TEST(Memory, AContextTakesItsOwnWithIt) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  scene.allocate(100);
  record(77, 1000);
  FakeDriver::current().push_back(FakeDriver::kOther);
  scene.allocate(100);
  scene.allocate(3 * kMiB);
  ASSERT_TRUE(reserve(5000));
  record(78, 5000);
  FakeDriver::current().pop_back();
  ASSERT_TRUE(reserve(1000));
  forget_context(FakeDriver::kOther);
  EXPECT_EQ(page().held, 100U + 1000U);
  EXPECT_EQ(page().resident, 2 * kMiB + 1000U);
  EXPECT_EQ(scene.driver.used(), 2 * kMiB);
  EXPECT_EQ(forget(78), 0U);
  EXPECT_EQ(forget(77), 1000U);
}

TEST(Memory, WithoutABackEndTheDriverAllocatesAndItIsCounted) {
  Scene scene({.backend = wire::MemoryBackend::kNone});
  const CUdeviceptr one = scene.allocate(1000);
  Range range;
  EXPECT_FALSE(find(one, &range)) << "the driver knows";
  EXPECT_EQ(page().fixed, 1000U);
  EXPECT_EQ(swap_out(UINT64_MAX, 0).result, wire::MoveResult::kNothing);
  scene.free(one);
  EXPECT_EQ(page().held, 0U);
  EXPECT_EQ(page().fixed, 0U);
  EXPECT_EQ(page().resident, 0U);
}

TEST(Memory, RecordedMemoryIsCountedOnceAndTakenBackOnce) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  ASSERT_TRUE(reserve(1000));
  record(5, 1000);
  EXPECT_EQ(page().fixed, 1000U);
  CUresult result = CUDA_SUCCESS;
  EXPECT_EQ(memory::free(5, &result), Freed::kNotOurs);
  EXPECT_EQ(forget(5), 1000U);
  EXPECT_EQ(forget(5), 0U);
  EXPECT_EQ(page().held, 0U);
  EXPECT_EQ(page().fixed, 0U);
}

TEST(Memory, ManagedMemoryBeginsAtAGranuleWhateverTheDriverGives) {
  Scene scene({.backend = wire::MemoryBackend::kUvm});
  const CUdeviceptr one = scene.allocate(5 * kMiB);
  EXPECT_EQ(one % (2 * kMiB), 0U);
  EXPECT_EQ(scene.allocate(100) % 512, 0U);
  Range range;
  EXPECT_TRUE(find(one + kMiB, &range));
}

TEST(Memory, NothingOfTheParentIsInAForkedChild) {
  Scene scene({.backend = wire::MemoryBackend::kVmm});
  const CUdeviceptr one = scene.allocate(100);
  forget_all();
  Range range;
  EXPECT_FALSE(find(one, &range));
  CUresult result = CUDA_SUCCESS;
  EXPECT_EQ(memory::free(one, &result), Freed::kNotOurs);
  scene.abandon();
}

}  // namespace
}  // namespace fairlead::shim::memory
