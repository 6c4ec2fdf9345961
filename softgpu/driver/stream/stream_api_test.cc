// Streams, events, launches: order, asynchrony, errors that stick, turns between processes, modelled time.
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::Fresh;
using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::run_kernel;
using softgpu::testing::Scenario;
using softgpu::testing::store_index;
using softgpu::testing::test_function;
using softgpu::testing::use_device;

DRIVER_TEST(Launch, ComputesAndTakesParametersBothWays) {
  use_device();
  const CUdeviceptr words = make_words(1000);
  std::vector<unsigned> out(1000);
  EXPECT_EQ(store_index(words, 900, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), words, 4000), CUDA_SUCCESS);
  EXPECT_EQ(out[899], 899U);
  EXPECT_EQ(out[900], 0U);
  struct {
    CUdeviceptr words;
    unsigned count;
  } packed = {words, 1000};
  std::size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cuLaunchKernel(test_function("store_index"), 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), words, 4000), CUDA_SUCCESS);
  EXPECT_EQ(out[999], 999U);
  void* each[] = {&packed.words, &packed.count};
  EXPECT_EQ(cuLaunchKernel(test_function("store_index"), 8, 1, 1, 128, 1, 1, 0, nullptr, each, extra),
            CUDA_ERROR_INVALID_VALUE);  // one form or the other
  size = 8;
  EXPECT_EQ(cuLaunchKernel(test_function("store_index"), 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra),
            CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Launch, ImpossibleShapesAreRefused) {
  use_device();
  CUfunction empty = test_function("empty");
  const auto launch = [&](unsigned grid, unsigned block, unsigned shared) {
    return cuLaunchKernel(empty, grid, 1, 1, block, 1, 1, shared, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(launch(0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1024, 49152), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchCooperativeKernel(empty, 80 * 2 + 1, 1, 1, 1024, 1, 1, 0, nullptr, nullptr),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST(Stream, WorkIsAsynchronousAndInOrder) {
  use_device();
  Gate gate;
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr words = make_words(10);
  unsigned seen = 99;
  void* pinned = &seen;
  EXPECT_EQ(cuMemHostRegister_v2(pinned, sizeof seen, 0), CUDA_SUCCESS);
  EXPECT_EQ(gate.close(stream), CUDA_SUCCESS);
  EXPECT_EQ(store_index(words, 10, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, words + 36, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(seen, 99U);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
  EXPECT_EQ(seen, 9U);
}

DRIVER_TEST(Stream, LegacyStreamWaitsForBlockingStreamsOnly) {
  use_device();
  Gate blocking_gate;
  Gate other_gate;
  CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent legacy = nullptr;
  ASSERT_EQ(cuEventCreate(&legacy, 0), CUDA_SUCCESS);
  blocking_gate.close(blocking);
  other_gate.close(other);
  EXPECT_EQ(cuEventRecord(legacy, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(legacy), CUDA_ERROR_NOT_READY);
  blocking_gate.open();
  EXPECT_EQ(cuEventSynchronize(legacy), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  other_gate.open();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST(Stream, BlockingStreamsWaitForTheLegacyStreamAndOthersDoNot) {
  use_device();
  Gate gate;
  CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  const auto nothing = [](void*) {};
  EXPECT_EQ(gate.close(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchHostFunc(blocking, nothing, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchHostFunc(other, nothing, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  gate.wait_until_closed();
  EXPECT_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(blocking), CUDA_SUCCESS);
}

DRIVER_TEST(Stream, PerThreadDefaultStreamIsAnotherStream) {
  use_device();
  Gate gate;
  EXPECT_EQ(gate.close(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  const CUcontext context = [] {
    CUcontext current = nullptr;
    cuCtxGetCurrent(&current);
    return current;
  }();
  std::thread([=] {
    cuCtxSetCurrent(context);
    EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  }).join();
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

DRIVER_TEST(Stream, HostFunctionsRunInOrder) {
  use_device();
  Gate gate;
  CUstream stream = make_stream(0);
  std::string order;
  gate.close(stream);
  cuLaunchHostFunc(
      stream, [](void* text) { static_cast<std::string*>(text)->push_back('a'); }, &order);
  cuStreamAddCallback(
      stream,
      [](CUstream, CUresult status, void* text) {
        static_cast<std::string*>(text)->push_back(status == 0 ? 'b' : 'x');
      },
      &order, 0);
  EXPECT_EQ(order, "");
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(order, "ab");
}

std::chrono::nanoseconds cpu_time(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

constexpr std::chrono::milliseconds kBusyTime(50);

DRIVER_TEST(Stream, OnlyTheThreadThatRunsAnOperationUsesTheProcessor) {
  use_device();
  const auto use_processor = [](void*) {
    const auto begin = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    while (cpu_time(CLOCK_THREAD_CPUTIME_ID) - begin < kBusyTime) {
    }
  };
  const auto begin = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  EXPECT_EQ(cuLaunchHostFunc(nullptr, use_processor, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_LT(cpu_time(CLOCK_PROCESS_CPUTIME_ID) - begin, kBusyTime + kBusyTime / 2);
}

DRIVER_TEST(Stream, DestroyedStreamStillFinishesItsWork) {
  use_device();
  Gate gate;
  CUstream stream = make_stream(0);
  const CUdeviceptr words = make_words(10);
  unsigned last = 0;
  gate.close(stream);
  store_index(words, 10, stream);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  gate.open();
  EXPECT_EQ(cuMemcpyDtoH_v2(&last, words + 36, 4), CUDA_SUCCESS);
  EXPECT_EQ(last, 9U);
}

DRIVER_TEST(Event, OrdersStreamsAndMeasuresTime) {
  use_device();
  Gate gate;
  CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream second = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = nullptr;
  CUevent end = nullptr;
  CUevent untimed = nullptr;
  float elapsed = -1;
  cuEventCreate(&begin, 0);
  cuEventCreate(&end, 0);
  cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, begin, end), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(begin), CUDA_SUCCESS);
  cuEventRecord(begin, first);
  gate.close(first);
  EXPECT_EQ(cuEventRecord(end, first), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(second, end, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, begin, end), CUDA_ERROR_NOT_READY);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, begin, end), CUDA_SUCCESS);
  EXPECT_GT(elapsed, 0);
  EXPECT_EQ(cuEventRecord(untimed, first), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&elapsed, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventDestroy_v2(end), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(end), CUDA_ERROR_INVALID_HANDLE);
}

void expect_sticky(CUresult error, CUfunction empty) {
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  EXPECT_EQ(cuCtxSynchronize(), error);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), error);
  EXPECT_EQ(cuStreamCreate(&stream, 0), error);
  EXPECT_EQ(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), error);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(reinterpret_cast<CUcontext*>(&stream), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);  // the reset context is a new one
}

DRIVER_TEST(Fault, UseAfterFreeSticksAsIllegalAddress) {
  use_device();
  CUfunction empty = test_function("empty");
  const CUdeviceptr words = make_words(1000);
  EXPECT_EQ(cuMemFree_v2(words), CUDA_SUCCESS);
  EXPECT_EQ(store_index(words, 10, nullptr), CUDA_SUCCESS);
  expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, empty);
}

DRIVER_TEST(Fault, OneByteBeyondTheEndSticksAsIllegalAddress) {
  use_device();
  CUfunction empty = test_function("empty");
  const CUdeviceptr words = make_words(10);
  EXPECT_EQ(store_index(words, 11, nullptr), CUDA_SUCCESS);
  expect_sticky(CUDA_ERROR_ILLEGAL_ADDRESS, empty);
}

DRIVER_TEST(Fault, MisalignedAddressSticks) {
  use_device();
  CUfunction empty = test_function("empty");
  CUdeviceptr words = make_words(10);
  void* parameters[] = {&words};
  EXPECT_EQ(run_kernel("misaligned", parameters), CUDA_SUCCESS);
  expect_sticky(CUDA_ERROR_MISALIGNED_ADDRESS, empty);
}

DRIVER_TEST(Fault, TrapSticksAsLaunchFailed) {
  use_device();
  CUfunction empty = test_function("empty");
  EXPECT_EQ(run_kernel("trapping", nullptr), CUDA_SUCCESS);
  expect_sticky(CUDA_ERROR_LAUNCH_FAILED, empty);
}

DRIVER_TEST_IN(Fault, DeadlineSticksAsLaunchTimeout, (Environment{{"SOFTGPU_LAUNCH_TIMEOUT_MS", "20"}})) {
  use_device();
  Gate gate;
  EXPECT_EQ(gate.close(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

DRIVER_TEST(Fault, OtherContextsGoOn) {
  use_device();
  CUcontext other = nullptr;
  EXPECT_EQ(run_kernel("trapping", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const CUdeviceptr words = make_words(10);
  EXPECT_EQ(store_index(words, 10, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST(Context, DestroyingEndsARunningKernel) {
  use_device();
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  Gate gate;
  EXPECT_EQ(gate.close(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

// Computes for ever.
const Scenario kBusy("compute for ever", [] {
  use_device();
  auto* gate = new Gate;
  EXPECT_EQ(gate->close(nullptr), CUDA_SUCCESS);
  gate->wait_until_closed();
});

// Within a slice, which here lasts ten seconds.
DRIVER_TEST_IN(Processes, ComputeInTurnsAndAKilledHolderIsPassedOver,
               (Environment{{"SOFTGPU_TIME_SLICE_US", "10000000"}})) {
  Fresh busy("compute for ever");
  ASSERT_TRUE(busy.ran());
  use_device();
  const CUdeviceptr words = make_words(10);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(store_index(words, 10, stream), CUDA_SUCCESS);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    std::this_thread::yield();
  }
  busy.kill();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

// 1 MiB over 12 GB/s takes 87 us; scaled by 500: 44 ms.
DRIVER_TEST_IN(Time, ModelHoldsTheStreamForTheScaledDuration,
               (Environment{{"SOFTGPU_MODE", "model"}, {"SOFTGPU_TIME_SCALE", "500"}})) {
  use_device();
  std::vector<char> host(1 << 20);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, host.size()), CUDA_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cuMemcpyHtoD_v2(address, host.data(), host.size()), CUDA_SUCCESS);
  const auto taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(taken, std::chrono::milliseconds(43));
}

}  // namespace
