// Memory pools and stream-ordered allocation; peer access.
#include <atomic>
#include <cstdint>
#include <thread>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::add_one;
using softgpu::testing::Fresh;
using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::run_kernel;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

constexpr std::size_t kMib = 1 << 20;
constexpr int kInherited = 151;  // the pool's descriptor in a second process

CUmemoryPool make_pool(CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_NONE, std::size_t most = 0) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = type;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.maxSize = most;
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  return pool;
}

std::uint64_t number(CUmemoryPool pool, CUmemPool_attribute attribute) {
  std::uint64_t value = 0;
  EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
  return value;
}

void set_threshold(CUmemoryPool pool, std::uint64_t bytes) {
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes), CUDA_SUCCESS);
}

CUdeviceptr allocate(CUmemoryPool pool, std::size_t bytes, CUstream stream = nullptr) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&address, bytes, pool, stream), CUDA_SUCCESS);
  return address;
}

DRIVER_TEST(Pool, OfThreadsThatFreeTheSameMemoryOneDoes) {
  use_device();
  const CUmemoryPool pool = make_pool();
  for (int i = 0; i < 50; ++i) {
    const CUdeviceptr memory = allocate(pool, 64);
    std::atomic<int> ready{0};
    std::atomic<int> freed{0};
    const auto free = [&] {
      ++ready;
      while (ready != 2) std::this_thread::yield();
      if (cuMemFreeAsync(memory, nullptr) == CUDA_SUCCESS) ++freed;
    };
    std::thread other([&, context = use_device()] {
      cuCtxSetCurrent(context);
      free();
    });
    free();
    other.join();
    EXPECT_EQ(freed, 1);
  }
}

DRIVER_TEST(Pool, KeepsWhatTheThresholdAllows) {
  use_device();
  const CUmemoryPool pool = make_pool();
  const CUdeviceptr first = allocate(pool, 10 * kMib);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 * kMib);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * kMib);
  EXPECT_EQ(cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0U);  // threshold 0
  set_threshold(pool, 6 * kMib);
  EXPECT_EQ(cuMemFreeAsync(allocate(pool, 10 * kMib), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * kMib);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0U);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 10 * kMib);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 10 * kMib);
  const CUdeviceptr small = allocate(pool, 4 * kMib);  // from what is kept
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * kMib);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * kMib);
  EXPECT_EQ(cuMemFree_v2(small), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(small), CUDA_ERROR_INVALID_VALUE);
  std::uint64_t value = 0;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0U);
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_ERROR_INVALID_VALUE);
  value = 5;
  EXPECT_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Pool, ASmallBlockIsReusedAfterItsFree) {
  use_device();
  const CUmemoryPool pool = make_pool();
  const CUdeviceptr first = allocate(pool, 1000);
  EXPECT_EQ(cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(allocate(pool, 1000), first);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024U);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * kMib);
  EXPECT_EQ(cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0U);
}

// Memory whose free is still queued is not handed out, and is dead once the stream has passed the free.
DRIVER_TEST(Pool, FreesHappenInStreamOrder) {
  use_device();
  const CUmemoryPool pool = make_pool();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 64, 0), CUDA_SUCCESS);
  auto* flag = static_cast<volatile unsigned*>(host);
  CUdeviceptr flag_address = reinterpret_cast<CUdeviceptr>(host);
  void* parameters[] = {&flag_address};
  const CUdeviceptr address = allocate(pool, 3 * kMib, stream);
  EXPECT_EQ(run_kernel("wait_flag", parameters, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(address, 5, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(address, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(address, stream), CUDA_ERROR_INVALID_VALUE);  // twice
  EXPECT_NE(allocate(pool, 3 * kMib), address);
  EXPECT_EQ(cuMemsetD32Async(address, 6, 1, stream), CUDA_SUCCESS);  // after the free: found out when it runs
  *flag = 1;
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(Pool, UseAfterFreeIsCaught) {
  use_device();
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  set_threshold(pool, UINT64_MAX);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocAsync(&address, 4 * kMib, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * kMib);  // kept, but not live
  EXPECT_EQ(cuMemsetD8_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(Pool, AMaximumIsKept) {
  use_device();
  const CUmemoryPool pool = make_pool(CU_MEM_HANDLE_TYPE_NONE, 8 * kMib);
  CUdeviceptr address = allocate(pool, 6 * kMib);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&more, 4 * kMib, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&more, 8 * kMib, pool, nullptr), CUDA_SUCCESS);
}

DRIVER_TEST(Pool, ADeviceHasOneCurrentPool) {
  use_device();
  CUmemoryPool first = nullptr;
  CUmemoryPool current = nullptr;
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&first, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(first), CUDA_ERROR_INVALID_VALUE);
  const CUmemoryPool own = make_pool();
  EXPECT_EQ(cuDeviceSetMemPool(0, own), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
  EXPECT_EQ(current, own);
  CUdeviceptr address = 0;
  CUmemoryPool of = nullptr;
  ASSERT_EQ(cuMemAllocAsync(&address, 100, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), CUDA_SUCCESS);
  EXPECT_EQ(of, own);
  EXPECT_EQ(cuMemPoolDestroy(own), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(own), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetMemPool(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, first);
  EXPECT_EQ(cuMemsetD8_v2(address, 1, 100), CUDA_SUCCESS);  // lives on without its pool
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetDefaultMemPool(&current, &location, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_NOT_SUPPORTED);
}

const CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemPoolPtrExportData exported_pointer() {
  CUmemPoolPtrExportData data = {};
  const std::string text = std::getenv("POOL_POINTER");
  for (std::size_t i = 0; i < sizeof data; ++i) {
    data.reserved[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return data;
}

const Scenario kImporter("import from a pool", [] {
  use_device();
  CUmemoryPool pool = nullptr;
  CUdeviceptr address = 0;
  void* const file = reinterpret_cast<void*>(static_cast<std::intptr_t>(kInherited));
  ASSERT_EQ(cuMemPoolImportFromShareableHandle(&pool, file, kFile, 0), CUDA_SUCCESS);
  CUmemPoolPtrExportData data = exported_pointer();
  ASSERT_EQ(cuMemPoolImportPointer(&address, pool, &data), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(address, 0, 101), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&address, 4, pool, nullptr), CUDA_ERROR_INVALID_VALUE);  // imported: only pointers
  EXPECT_EQ(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemPoolImportPointer(&address, pool, &data), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(address, nullptr), CUDA_SUCCESS);
  // Imported memory is unmapped when it is freed, beside a kernel that ends when the operation behind the free has run.
  ASSERT_EQ(cuMemPoolImportPointer(&address, pool, &data), CUDA_SUCCESS);
  ::alarm(30);
  Gate gate;
  CUstream waiting = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream freeing = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(gate.close(waiting), CUDA_SUCCESS);
  gate.wait_until_closed();
  EXPECT_EQ(cuMemFreeAsync(address, freeing), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue32_v2(freeing, gate.address, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(freeing), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8_v2(address, 0, 1), CUDA_ERROR_INVALID_VALUE);
  data.reserved[4] ^= 1;
  EXPECT_EQ(cuMemPoolImportPointer(&address, pool, &data), CUDA_ERROR_INVALID_VALUE);
});

DRIVER_TEST(Pool, MemoryIsImportedByPointer) {
  use_device();
  const CUmemoryPool pool = make_pool(kFile);
  int descriptor = -1;
  ASSERT_EQ(cuMemPoolExportToShareableHandle(&descriptor, pool, kFile, 0), CUDA_SUCCESS);
  ASSERT_EQ(::dup2(descriptor, kInherited), kInherited);
  allocate(pool, 100);
  const CUdeviceptr address = allocate(pool, 100);
  ASSERT_EQ(cuMemsetD32_v2(address, 6, 1), CUDA_SUCCESS);
  CUmemPoolPtrExportData data = {};
  ASSERT_EQ(cuMemPoolExportPointer(&data, address), CUDA_SUCCESS);
  std::string text;
  for (const unsigned char byte : data.reserved) {
    constexpr char kHex[] = "0123456789abcdef";
    text += kHex[byte / 16];
    text += kHex[byte % 16];
  }
  ::setenv("POOL_POINTER", text.c_str(), 1);
  EXPECT_TRUE(Fresh("import from a pool").ran());
  unsigned value = 0;
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, address, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 7U);
  EXPECT_EQ(cuMemPoolExportToShareableHandle(&descriptor, make_pool(), kFile, 0), CUDA_ERROR_INVALID_VALUE);
}

const softgpu::testing::Environment kTwoDevices = {{"SOFTGPU_DEVICES", "2"}};

DRIVER_TEST_IN(Peer, KernelsReachAPeerOnlyWhenEnabled, kTwoDevices) {
  const CUcontext first = use_device();
  CUcontext second = nullptr;
  int can = 0;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(can, 0);
  ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 64), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32_v2(address, 1, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_EQ(cuCtxEnablePeerAccess(second, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  unsigned value = 0;
  ASSERT_EQ(cuMemAlloc_v2(&own, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDisablePeerAccess(second), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyPeer(own, first, address, second, 4), CUDA_SUCCESS);  // copies need no peer access
  EXPECT_EQ(cuMemcpyDtoH_v2(&value, own, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 2U);
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST_IN(Peer, APoolHasItsOwnListOfDevices, kTwoDevices) {
  use_device();
  const CUmemoryPool pool = make_pool();
  const CUdeviceptr address = allocate(pool, 64);
  CUcontext second = nullptr;
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(cuMemsetD32_v2(address, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAccess(&flags, pool, &access.location), CUDA_SUCCESS);
  EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(second), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_SUCCESS);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(add_one(address), CUDA_ERROR_ILLEGAL_ADDRESS);
  access.location.id = 0;
  EXPECT_EQ(cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_VALUE);  // its own device
}

}  // namespace
