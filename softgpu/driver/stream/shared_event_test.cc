// Events between processes.
#include <cstring>
#include <fstream>
#include <thread>

#include "softgpu/device/device.h"
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Fresh;
using softgpu::testing::run_kernel;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

constexpr unsigned kFlags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;

// Handles travel in files of the state folder.
template <typename Handle>
void leave(const char* name, const Handle& handle) {
  std::ofstream file(std::string(std::getenv("SOFTGPU_HOME")) + "/" + name, std::ios::binary);
  file.write(handle.reserved, sizeof handle.reserved);
}

template <typename Handle>
Handle take(const char* name) {
  Handle handle = {};
  std::ifstream file(std::string(std::getenv("SOFTGPU_HOME")) + "/" + name, std::ios::binary);
  file.read(handle.reserved, sizeof handle.reserved);
  return handle;
}

// A stream whose kernel waits until the returned word is set.
volatile unsigned* hold(CUstream& stream) {
  void* host = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostAlloc(&host, 64, 0), CUDA_SUCCESS);
  CUdeviceptr flag = reinterpret_cast<CUdeviceptr>(host);
  void* parameters[] = {&flag};
  EXPECT_EQ(run_kernel("wait_flag", parameters, stream), CUDA_SUCCESS);
  return static_cast<volatile unsigned*>(host);
}

// Opens the event and queues a fill behind it.
const Scenario kWaiter("wait for a shared event", [] {
  use_device();
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr word = 0;
  ASSERT_EQ(cuIpcOpenEventHandle(&event, take<CUipcEventHandle>("event")), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcOpenMemHandle_v2(&word, take<CUipcMemHandle>("memory"), 1), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(word, 9, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  CUipcEventHandle wrong = take<CUipcEventHandle>("event");
  wrong.reserved[0] ^= 1;
  EXPECT_EQ(cuIpcOpenEventHandle(&event, wrong), CUDA_ERROR_INVALID_HANDLE);
  wrong.reserved[0] ^= 1;
  wrong.reserved[12] ^= 1;
  EXPECT_EQ(cuIpcOpenEventHandle(&event, wrong), CUDA_ERROR_INVALID_HANDLE);
});

DRIVER_TEST(SharedEvent, AnotherProcessWaitsForIt) {
  use_device();
  CUevent event = nullptr;
  CUevent own = nullptr;
  CUstream stream = nullptr;
  CUipcEventHandle handle;
  CUipcMemHandle memory;
  CUdeviceptr word = 0;
  ASSERT_EQ(cuEventCreate(&event, kFlags), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);  // never recorded
  ASSERT_EQ(cuMemAlloc_v2(&word, 4), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32_v2(word, 0, 1), CUDA_SUCCESS);
  volatile unsigned* flag = hold(stream);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  ASSERT_EQ(cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcOpenEventHandle(&own, handle), CUDA_ERROR_INVALID_CONTEXT);  // not in the process that made it
  ASSERT_EQ(cuIpcGetMemHandle(&memory, word), CUDA_SUCCESS);
  leave("event", handle);
  leave("memory", memory);
  Fresh waiter("wait for a shared event");
  ASSERT_TRUE(waiter.ran());
  auto* seen = reinterpret_cast<volatile unsigned*>(word);
  EXPECT_EQ(*seen, 0U);
  *flag = 1;
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  while (*seen == 0) std::this_thread::yield();  // ends with the test's time limit if the waiter is not woken
  EXPECT_EQ(*seen, 9U);
}

// Records an event behind a kernel that never ends.
const Scenario kRecorder("record a shared event", [] {
  use_device();
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUipcEventHandle handle;
  ASSERT_EQ(cuEventCreate(&event, kFlags), CUDA_SUCCESS);
  hold(stream);
  ASSERT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetEventHandle(&handle, event), CUDA_SUCCESS);
  leave("event", handle);
});

DRIVER_TEST(SharedEvent, AKilledRecorderKeepsNobodyWaiting) {
  use_device();
  CUevent event = nullptr;
  Fresh recorder("record a shared event");
  ASSERT_TRUE(recorder.ran());
  ASSERT_EQ(cuIpcOpenEventHandle(&event, take<CUipcEventHandle>("event")), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  recorder.kill();
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
}

// The recorder computes on device 0 and is not hit.
DRIVER_TEST_IN(SharedEvent, AnXidEndsTheWaiting, (softgpu::testing::Environment{{"SOFTGPU_DEVICES", "2"}})) {
  CUcontext waiting = nullptr;
  CUevent event = nullptr;
  const Fresh recorder("record a shared event");
  ASSERT_TRUE(recorder.ran());
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&waiting, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcOpenEventHandle(&event, take<CUipcEventHandle>("event")), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_SUCCESS);
  const softgpu::Machine machine = softgpu::open_machine().value();
  const softgpu::Clients clients = softgpu::Clients::open(machine).value();
  softgpu::DeviceView::open(machine, clients, 1).value()->faults().raise_xid(48);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ECC_UNCORRECTABLE);
}

DRIVER_TEST(SharedEvent, OnlyUntimedEventsAreShared) {
  use_device();
  CUevent event = nullptr;
  CUipcEventHandle handle;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuIpcGetEventHandle(&handle, event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuIpcGetEventHandle(nullptr, event), CUDA_ERROR_INVALID_VALUE);
  CUevent shared = nullptr;
  float elapsed = 0;
  ASSERT_EQ(cuEventCreate(&shared, kFlags), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(shared, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(shared), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime_v2(&elapsed, shared, shared), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
