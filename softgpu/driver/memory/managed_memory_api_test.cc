// Managed memory: one address everywhere, residency by pages, more than the device has.
#include <cstdint>
#include <vector>

#include "softgpu/device/device.h"
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::add_one;
using softgpu::testing::free_bytes;
using softgpu::testing::Fresh;
using softgpu::testing::run_kernel;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

constexpr std::size_t kMib = 1 << 20;
constexpr std::size_t kPage = 2 * kMib;

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  return address;
}

unsigned& on_host(CUdeviceptr address) {
  return *reinterpret_cast<unsigned*>(address);
}

int range_attribute(CUmem_range_attribute attribute, CUdeviceptr address, std::size_t bytes) {
  int value = -100;
  EXPECT_EQ(cuMemRangeGetAttribute(&value, sizeof value, attribute, address, bytes), CUDA_SUCCESS);
  return value;
}

DRIVER_TEST(Managed, GoesWithTheContextThatAllocatedIt) {
  use_device();
  const CUdeviceptr kept = allocate(1000);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const CUdeviceptr gone = allocate(1000);
  EXPECT_EQ(add_one(gone), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  unsigned managed = 0;
  EXPECT_EQ(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, gone), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(gone), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(kept), CUDA_SUCCESS);
}

DRIVER_TEST(Managed, OneAddressForHostAndDevice) {
  const CUcontext context = use_device();
  const CUdeviceptr address = allocate(1000);
  on_host(address) = 41;
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(on_host(address), 42U);
  EXPECT_EQ(cuMemsetD32_v2(address + 4, 7, 1), CUDA_SUCCESS);
  EXPECT_EQ(on_host(address + 4), 7U);
  unsigned managed = 0;
  CUcontext owner = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, address), CUDA_SUCCESS);
  EXPECT_EQ(managed, 1U);
  EXPECT_EQ(owner, context);
  EXPECT_EQ(cuMemFree_v2(address + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAllocManaged(&none, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&none, 4, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&none, 4, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Managed, TheEndIsExact) {
  use_device();
  const CUdeviceptr address = allocate(kPage + 8);
  EXPECT_EQ(add_one(address + kPage + 4), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address + kPage + 8), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(Managed, TheFirstTouchMigratesAPage) {
  use_device();
  const CUdeviceptr address = allocate(4 * kPage);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);  // also loads the module
  const std::size_t before = free_bytes();
  EXPECT_EQ(add_one(address + 4), CUDA_SUCCESS);  // there already
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(add_one(address + 2 * kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - kPage);
  EXPECT_EQ(cuMemPrefetchAsync(address, 4 * kPage, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 3 * kPage);
  EXPECT_EQ(cuMemPrefetchAsync(address, 3 * kPage, CU_DEVICE_CPU, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before + kPage);
}

// 400 MiB on a device of 256 MiB: all of it is usable, and the device is never more than full.
DRIVER_TEST(Managed, MayBeLargerThanTheDevice) {
  use_device();
  constexpr std::size_t kPages = 200;
  const CUdeviceptr address = allocate(kPages * kPage);
  const auto sweep = [&] {
    for (std::size_t page = 0; page < kPages; ++page) {
      CUdeviceptr word = address + page * kPage;
      void* parameters[] = {&word};
      EXPECT_EQ(run_kernel("add_one", parameters), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  sweep();
  EXPECT_EQ(free_bytes(), 0U);
  sweep();
  for (std::size_t page = 0; page < kPages; ++page) EXPECT_EQ(on_host(address + page * kPage), 2U);
  // What is not managed takes the room of what is.
  CUdeviceptr other = 0;
  EXPECT_EQ(cuMemAlloc_v2(&other, 100 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(other, 1, 100 * kMib), CUDA_SUCCESS);
  sweep();
  EXPECT_EQ(on_host(address), 3U);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_GT(free_bytes(), 100 * kMib);
}

// What the device counts, read as a tool would.
struct Counts {
  std::uint64_t migrations = 0;
  std::uint64_t evictions = 0;
};

Counts counts() {
  static const auto* machine = new softgpu::Machine(softgpu::open_machine().value());
  static const auto* clients = new softgpu::Clients(softgpu::Clients::open(*machine).value());
  static const auto* view = softgpu::DeviceView::open(*machine, *clients, 0).value().release();
  return {view->control().migrations.load(), view->control().evictions.load()};
}

// The page claimed longest ago goes first: with room for two, touching 0 1 2 0 migrates four times and evicts 0 and 1.
DRIVER_TEST(Managed, TheOldestPageIsEvicted) {
  use_device();
  const CUdeviceptr address = allocate(3 * kPage);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(address, 3 * kPage, CU_DEVICE_CPU, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  CUdeviceptr filler = 0;
  ASSERT_EQ(cuMemAlloc_v2(&filler, free_bytes() - 2 * kPage), CUDA_SUCCESS);
  const Counts before = counts();
  for (const std::size_t page : {0, 1, 2, 0, 2, 0}) EXPECT_EQ(add_one(address + page * kPage), CUDA_SUCCESS);
  EXPECT_EQ(counts().migrations - before.migrations, 4U);
  EXPECT_EQ(counts().evictions - before.evictions, 2U);
  EXPECT_EQ(add_one(address + kPage), CUDA_SUCCESS);  // takes the room of 2, which was claimed before 0
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(counts().migrations - before.migrations, 5U);
}

// A migration holds the stream for its modelled time: 2 MiB over 12 GB/s take 170 us, of 100 pages 17 ms.
DRIVER_TEST_IN(Managed, MigrationsTakeModelledTime, (softgpu::testing::Environment{{"SOFTGPU_MODE", "model"}})) {
  use_device();
  const CUdeviceptr address = allocate(100 * kPage);
  CUevent begin = nullptr;
  CUevent end = nullptr;
  float elapsed_ms = 0;
  ASSERT_EQ(cuEventCreate(&begin, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&end, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(begin, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(address, 100 * kPage, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime_v2(&elapsed_ms, begin, end), CUDA_SUCCESS);
  EXPECT_GE(elapsed_ms, 100 * 2.097152F / 12);
}

DRIVER_TEST(Managed, AdviceIsKeptByPages) {
  use_device();
  const CUdeviceptr address = allocate(4 * kPage);
  const CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  EXPECT_EQ(cuMemAdvise(address, 2 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 2 * kPage), 1);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 3 * kPage), 0);
  EXPECT_EQ(cuMemAdvise_v2(address, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host), CUDA_SUCCESS);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, kPage), CU_DEVICE_CPU);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, kPage), CU_MEM_LOCATION_TYPE_HOST);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, address, 2 * kPage), CU_DEVICE_INVALID);
  EXPECT_EQ(cuMemAdvise_v2(address, 4 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, device), CUDA_SUCCESS);
  int accessed[3] = {};
  EXPECT_EQ(cuMemRangeGetAttribute(accessed, sizeof accessed, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, 4 * kPage),
            CUDA_SUCCESS);
  EXPECT_EQ(accessed[0], 0);
  EXPECT_EQ(accessed[1], CU_DEVICE_INVALID);
  EXPECT_EQ(cuMemPrefetchAsync_v2(address, kPage, device, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, kPage), 0);
  EXPECT_EQ(range_attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, address, 2 * kPage), CU_DEVICE_INVALID);
  int value = 0;
  EXPECT_EQ(cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, 1),
            CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Managed, APageThatPrefersTheHostStaysThere) {
  use_device();
  const CUdeviceptr address = allocate(kPage);
  const CUdeviceptr other = allocate(kPage);
  EXPECT_EQ(add_one(other), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU), CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);  // over the link
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(cuMemAdvise(address, kPage, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - kPage);
}

DRIVER_TEST(Managed, OnlyManagedRangesAreAdvisedAndPrefetched) {
  use_device();
  const CUdeviceptr address = allocate(kPage);
  const CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_INVALID, 0};
  const CUmemLocation absent = {CU_MEM_LOCATION_TYPE_DEVICE, 9};
  CUdeviceptr plain = 0;
  CUstream stream = nullptr;
  ASSERT_EQ(cuMemAlloc_v2(&plain, kPage), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(plain, kPage, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(address, kPage + 1, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(address, 0, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync(address, kPage, 9, nullptr), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemPrefetchAsync_v2(address, kPage, absent, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuMemPrefetchAsync_v2(address, kPage, nowhere, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemPrefetchAsync_v2(address, kPage, {CU_MEM_LOCATION_TYPE_HOST, 0}, 1, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAdvise(plain, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAdvise(address, kPage, static_cast<CUmem_advise>(9), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamAttachMemAsync(nullptr, address, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAttachMemAsync(stream, address, 4, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamAttachMemAsync(stream, plain, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Managed, BatchesPrefetchAndDiscard) {
  use_device();
  CUdeviceptr ranges[] = {allocate(kPage), allocate(2 * kPage)};
  std::size_t bytes[] = {kPage, 2 * kPage};
  CUmemLocation locations[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  std::size_t indices[] = {0};
  const std::size_t before = free_bytes();
  EXPECT_EQ(cuMemPrefetchBatchAsync(ranges, bytes, 2, locations, indices, 1, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 3 * kPage);
  EXPECT_EQ(cuMemDiscardBatchAsync(ranges, bytes, 2, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  indices[0] = 1;
  EXPECT_EQ(cuMemPrefetchBatchAsync(ranges, bytes, 2, locations, indices, 1, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemDiscardBatchAsync(ranges, bytes, 2, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
}

// Fills the device with managed pages and keeps them.
const Scenario kHolder("hold managed memory", [] {
  use_device();
  const CUdeviceptr address = allocate(300 * kMib);
  EXPECT_EQ(cuMemPrefetchAsync(address, 300 * kMib, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 0U);
});

DRIVER_TEST(Managed, GivesWayToAnotherProcess) {
  use_device();
  Fresh holder("hold managed memory");
  ASSERT_TRUE(holder.ran());
  EXPECT_EQ(free_bytes(), 0U);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 100 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(address, 1, 100 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), 0U);
  holder.kill();
  EXPECT_GT(free_bytes(), 50 * kMib);
}

// Two devices: a page is on one of them at a time, unless it is read mostly.
DRIVER_TEST_IN(Managed, APageMovesBetweenDevices, (softgpu::testing::Environment{{"SOFTGPU_DEVICES", "2"}})) {
  const CUcontext first = use_device();
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  const CUdeviceptr address = allocate(kPage);
  const auto free_on = [](CUcontext context) {
    cuCtxSetCurrent(context);
    return free_bytes();
  };
  const auto touch_on = [&](CUcontext context) {
    cuCtxSetCurrent(context);
    EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  };
  touch_on(second);
  touch_on(first);
  const std::size_t free_first = free_on(first);
  const std::size_t free_second = free_on(second);
  touch_on(second);
  EXPECT_EQ(free_on(first), free_first + kPage);
  EXPECT_EQ(free_on(second), free_second - kPage);
  EXPECT_EQ(cuMemAdvise(address, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
  touch_on(first);
  EXPECT_EQ(free_on(first), free_first);
  EXPECT_EQ(free_on(second), free_second - kPage);
  EXPECT_EQ(on_host(address), 4U);
}

}  // namespace
