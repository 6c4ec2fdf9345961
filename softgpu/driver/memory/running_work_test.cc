// Memory that is taken away while work runs: who frees waits for no kernel of another stream, and no kernel takes the
// process with it. A test that waits for ever is ended by an alarm.
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::run_kernel;
using softgpu::testing::use_device;

constexpr std::size_t kPage = 2 << 20;
constexpr unsigned kPatienceSeconds = 30;

CUdeviceptr map_page(int device = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressReserve(&address, kPage, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(address, kPage, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemSetAccess(address, kPage, &access, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  return address;
}

CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
  return address;
}

// A kernel that waits for a word of zero at `flag` to change, and runs when this returns.
CUstream spin_on(CUdeviceptr flag) {
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuMemsetD32_v2(flag, 0, 2), CUDA_SUCCESS);
  void* parameters[] = {&flag};
  EXPECT_EQ(run_kernel("wait_flag", parameters, stream), CUDA_SUCCESS);
  const auto* begun = reinterpret_cast<volatile unsigned*>(flag + 4);
  while (*begun == 0) std::this_thread::yield();
  return stream;
}

DRIVER_TEST(RunningWork, NoCallThatTakesMemoryAwayWaitsForAKernel) {
  ::alarm(kPatienceSeconds);
  use_device();
  const CUdeviceptr mapped = map_page();
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  Gate gate;
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(gate.close(stream), CUDA_SUCCESS);
  gate.wait_until_closed();
  const CUmemAccessDesc none = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  EXPECT_EQ(cuMemSetAccess(mapped, kPage, &none, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(mapped, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(mapped, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

DRIVER_TEST(RunningWork, AFreeInAStreamWaitsForItsOwnStreamOnly) {
  ::alarm(kPatienceSeconds);
  use_device();
  const CUdeviceptr memory = allocate(4 * kPage);
  Gate gate;
  CUstream waiting = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream freeing = make_stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(gate.close(waiting), CUDA_SUCCESS);
  gate.wait_until_closed();
  // The kernel ends when the operation behind the free has run.
  EXPECT_EQ(cuMemFreeAsync(memory, freeing), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue32_v2(freeing, gate.address, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(waiting), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(memory, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(RunningWork, AKernelWhoseMemoryIsUnmappedFails) {
  ::alarm(kPatienceSeconds);
  use_device();
  const CUdeviceptr flag = map_page();
  CUstream stream = spin_on(flag);
  EXPECT_EQ(cuMemUnmap(flag, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(flag, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

DRIVER_TEST(RunningWork, AKernelWhoseMemoryIsFreedFails) {
  ::alarm(kPatienceSeconds);
  use_device();
  const CUdeviceptr flag = allocate(4 * kPage);
  CUstream stream = spin_on(flag);
  EXPECT_EQ(cuMemFreeAsync(flag, make_stream(CU_STREAM_NON_BLOCKING)), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// Physical memory is free at once, whoever still runs: a loop of allocations beside a kernel that never ends goes on.
DRIVER_TEST(RunningWork, MemoryFreedBesideAnEndlessKernelIsUsedAgain) {
  ::alarm(kPatienceSeconds);
  use_device();
  Gate gate;
  CUstream endless = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  ASSERT_EQ(gate.close(endless), CUDA_SUCCESS);
  gate.wait_until_closed();
  for (int i = 0; i < 100; ++i) {  // 16 GiB in all, through a device of 256 MiB and a window of 2 GiB
    const CUdeviceptr memory = allocate(std::size_t{160} << 20);
    ASSERT_EQ(cuMemFreeAsync(memory, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  }
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(endless), CUDA_SUCCESS);
}

// Threads that unmap on two devices whose streams are never idle: neither waits for the other, nor for the kernels.
DRIVER_TEST_IN(RunningWork, BusyDevicesDoNotHoldUpThoseThatUnmap, (Environment{{"SOFTGPU_DEVICES", "2"}})) {
  ::alarm(kPatienceSeconds);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  const auto work = [](int device) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, softgpu::testing::kTestPtx), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&kernel, module, "empty"), CUDA_SUCCESS);
    const CUstream streams[] = {make_stream(CU_STREAM_NON_BLOCKING), make_stream(CU_STREAM_NON_BLOCKING)};
    for (int i = 0; i < 30; ++i) {
      const CUdeviceptr mapped = map_page(device);
      for (int launch = 0; launch < 20; ++launch) {
        ASSERT_EQ(cuLaunchKernel(kernel, 64, 1, 1, 32, 1, 1, 0, streams[launch % 2], nullptr, nullptr), CUDA_SUCCESS);
      }
      ASSERT_EQ(cuMemUnmap(mapped, kPage), CUDA_SUCCESS);
      ASSERT_EQ(cuMemAddressFree(mapped, kPage), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
}

DRIVER_TEST(RunningWork, AContextThatIsDestroyedRefusesTheAllocationsOfOtherThreads) {
  ::alarm(kPatienceSeconds);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    std::atomic<bool> runs{false};
    CUresult last = CUDA_SUCCESS;
    std::thread other([&] {
      cuCtxSetCurrent(context);
      for (std::size_t bytes = 64; last == CUDA_SUCCESS; bytes = bytes == 64 ? kPage : 64) {
        CUdeviceptr address = 0;
        last = cuMemAlloc_v2(&address, bytes);
        runs = true;
        if (last == CUDA_SUCCESS && cuMemFree_v2(address) != CUDA_SUCCESS) last = cuMemAlloc_v2(&address, bytes);
      }
    });
    while (!runs) std::this_thread::yield();
    EXPECT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    other.join();
    EXPECT_EQ(last, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
}

DRIVER_TEST(HostMemory, OfThreadsThatRegisterOverlappingRangesOneDoes) {
  ::alarm(kPatienceSeconds);
  CUcontext context = use_device();
  std::vector<char> memory(1 << 16);
  constexpr int kRounds = 500;
  std::atomic<int> arrived{0};
  std::atomic<int> registered{0};
  const auto meet = [&](int times) {
    ++arrived;
    while (arrived < times) std::this_thread::yield();
  };
  // Both register, then the one that could unregisters.
  const auto work = [&](std::size_t offset) {
    cuCtxSetCurrent(context);
    for (int round = 0; round < kRounds; ++round) {
      meet(4 * round + 2);
      const CUresult result = cuMemHostRegister_v2(memory.data() + offset, 4096, 0);
      if (result == CUDA_SUCCESS) ++registered;
      meet(4 * round + 4);
      ASSERT_EQ(registered, round + 1);
      if (result == CUDA_SUCCESS) {
        ASSERT_EQ(cuMemHostUnregister(memory.data() + offset), CUDA_SUCCESS);
      } else {
        ASSERT_EQ(result, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
      }
    }
  };
  std::thread other(work, 100);
  work(0);
  other.join();
}

}  // namespace
