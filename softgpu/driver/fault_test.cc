// Faults that are injected into a device, as a program sees them.
#include <chrono>
#include <thread>

#include "softgpu/device/device.h"
#include "softgpu/driver/driver_testing.h"

namespace softgpu::testing {
namespace {

// The injector: the shared words of a device, as `softgpu fault` writes them.
struct Injector {
  explicit Injector(unsigned gpu = 0) : view(DeviceView::open(machine, clients, gpu).value()), faults(view->faults()) {}
  Machine machine = open_machine().value();
  Clients clients = Clients::open(machine).value();
  std::unique_ptr<DeviceView> view;
  Faults faults;
};

CUresult run_one() {
  EXPECT_EQ(run_kernel("empty", nullptr), CUDA_SUCCESS);
  return cuCtxSynchronize();
}

CUresult allocate() {
  CUdeviceptr address = 0;
  return cuMemAlloc_v2(&address, 1000);
}

DRIVER_TEST(InjectedFault, AnXidSticksToEveryContextOfTheDeviceAndNotToLaterOnes) {
  CUcontext primary = use_device();
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  Injector().faults.raise_xid(48);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(allocate(), CUDA_ERROR_ECC_UNCORRECTABLE);
  ASSERT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(allocate(), CUDA_ERROR_ECC_UNCORRECTABLE);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(run_one(), CUDA_SUCCESS);
}

DRIVER_TEST_IN(InjectedFault, AnXidLeavesOtherDevicesAlone, (Environment{{"SOFTGPU_DEVICES", "2"}})) {
  CUcontext other = nullptr;
  CUcontext primary = use_device();
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 1), CUDA_SUCCESS);
  Injector(1).faults.raise_xid(31);
  EXPECT_EQ(allocate(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
  EXPECT_EQ(run_one(), CUDA_SUCCESS);
}

DRIVER_TEST(InjectedFault, AnXidEndsARunningKernel) {
  use_device();
  CUdeviceptr flag = 0;
  ASSERT_EQ(cuMemAlloc_v2(&flag, 8), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8_v2(flag, 0, 8), CUDA_SUCCESS);
  void* parameters[] = {&flag};
  ASSERT_EQ(run_kernel("wait_flag", parameters), CUDA_SUCCESS);
  Injector().faults.raise_xid(13);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

DRIVER_TEST(InjectedFault, AnXidEndsAWaitForAWord) {
  use_device();
  ASSERT_EQ(cuStreamWaitValue32_v2(nullptr, make_words(1), 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  Injector().faults.raise_xid(48);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ECC_UNCORRECTABLE);
}

DRIVER_TEST(InjectedFault, ALostDeviceFailsEveryCall) {
  use_device();
  CUfunction empty = test_function("empty");
  Injector().faults.lose();
  EXPECT_EQ(allocate(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_DEVICE_UNAVAILABLE);
  CUcontext other = nullptr;
  EXPECT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  Injector().faults.clear();
  EXPECT_EQ(allocate(), CUDA_ERROR_DEVICE_UNAVAILABLE);  // sticky
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(run_one(), CUDA_SUCCESS);
}

DRIVER_TEST(InjectedFault, ALostDeviceIsNotFoundByNewProcesses) {
  Injector().faults.lose();
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

DRIVER_TEST_IN(InjectedFault, TheDevicesLeftMoveUp, (Environment{{"SOFTGPU_PROFILE", "v100-16,a30"}})) {
  Injector().faults.lose();
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  int count = 0;
  char name[64] = {};
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "NVIDIA A30");
}

DRIVER_TEST(InjectedFault, AllocationsFailAsOftenAsTold) {
  use_device();
  Injector().faults.fail_allocations(1, 2);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  EXPECT_EQ(allocate(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
}

DRIVER_TEST(InjectedFault, EveryKindOfDeviceMemoryCanFail) {
  use_device();
  Injector injector;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  injector.faults.fail_allocations(0, 2);
  EXPECT_EQ(cuMemAllocAsync(&address, 1000, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemCreate(&handle, 2 << 20, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocAsync(&address, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemCreate(&handle, 2 << 20, &properties, 0), CUDA_SUCCESS);
}

DRIVER_TEST(InjectedFault, AHungKernelGoesOnWhenTheFaultIsCleared) {
  use_device();
  CUfunction empty = test_function("empty");
  Injector injector;
  injector.faults.hang();
  ASSERT_EQ(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    std::this_thread::yield();
  }
  injector.faults.clear();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

DRIVER_TEST_IN(InjectedFault, AHungKernelMeetsItsTimeout, (Environment{{"SOFTGPU_LAUNCH_TIMEOUT_MS", "20"}})) {
  use_device();
  Injector().faults.hang();
  run_kernel("empty", nullptr);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

// 2^60 calls, and no branch goes backwards.
constexpr char kRecursion[] = R"(
.version 7.0
.target sm_70
.address_size 64
.func recurse(.param .b32 depth)
{
  .reg .b32 %r<3>;
  .reg .pred %p;
  ld.param.u32 %r1, [depth];
  setp.eq.u32 %p, %r1, 0;
  @%p bra DONE;
  sub.u32 %r2, %r1, 1;
  { .param .b32 left; st.param.b32 [left], %r2; call recurse, (left); }
  { .param .b32 right; st.param.b32 [right], %r2; call recurse, (right); }
DONE:
  ret;
}
.visible .entry deep()
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 60;
  { .param .b32 depth; st.param.b32 [depth], %r1; call recurse, (depth); }
  ret;
}
)";

DRIVER_TEST_IN(Launch, ARecursionMeetsItsTimeout, (Environment{{"SOFTGPU_LAUNCH_TIMEOUT_MS", "20"}})) {
  use_device();
  CUmodule module = nullptr;
  CUfunction deep = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, kRecursion), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&deep, module, "deep"), CUDA_SUCCESS);
  ASSERT_EQ(cuLaunchKernel(deep, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

DRIVER_TEST(LostState, TruncationUnderAProgramIsAnErrorAndNotACrash) {
  use_device();
  CUfunction empty = test_function("empty");
  ASSERT_EQ(::truncate((machine_home() + "/device0.control").c_str(), 0), 0);
  for (int i = 0; i < 10; ++i) cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(allocate(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

// 1 MiB takes 87 us; a link ten times slower and a scale of 50: 44 ms.
DRIVER_TEST_IN(InjectedFault, ASlowLinkStretchesCopies,
               (Environment{{"SOFTGPU_MODE", "model"}, {"SOFTGPU_TIME_SCALE", "50"}})) {
  use_device();
  Injector().faults.slow_link(10);
  std::vector<char> host(1 << 20);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, host.size()), CUDA_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cuMemcpyHtoD_v2(address, host.data(), host.size()), CUDA_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(43));
}

}  // namespace
}  // namespace softgpu::testing
