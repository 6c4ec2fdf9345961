// NVML beside the driver: the same devices, memory and processes.
#include "abi/nvml.h"

#include <cstring>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::Fresh;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

nvmlDevice_t first_device() {
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
  return device;
}

DRIVER_TEST_IN(Nvml, DescribesTheSameDevicesAsTheDriver,
               (Environment{{"SOFTGPU_PROFILE", "h100-80"}, {"SOFTGPU_DEVICES", "2"}})) {
  unsigned count = 0;
  char text[96];
  nvmlDevice_t found = nullptr;
  int major = 0;
  int minor = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2U);
  nvmlDevice_t device = first_device();
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetName(device, text, sizeof text), NVML_SUCCESS);
  EXPECT_STREQ(text, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(nvmlDeviceGetName(device, text, 3), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(nvmlDeviceGetUUID(device, text, sizeof text), NVML_SUCCESS);
  EXPECT_EQ(std::strlen(text), 40U);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS);
  EXPECT_EQ(found, device);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:02:00.0", &found), NVML_SUCCESS);
  EXPECT_NE(found, device);
  EXPECT_EQ(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), NVML_SUCCESS);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(nvmlDeviceGetMigMode(device, &count, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_NOT_FOUND), "not found");
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetName(device, text, sizeof text), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

const Scenario kClient("be a client", [] {
  use_device();
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 64 << 20), CUDA_SUCCESS);
});

DRIVER_TEST(Nvml, SeesProcessesAndTheirMemoryUntilTheyDie) {
  use_device();
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t device = first_device();
  nvmlProcessInfo_t processes[4];
  unsigned count = 4;
  Fresh client("be a client");
  ASSERT_TRUE(client.ran());
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
  ASSERT_EQ(count, 2U);
  const auto own = processes[0].pid == static_cast<unsigned>(::getpid()) ? 0 : 1;
  EXPECT_EQ(processes[own].pid, static_cast<unsigned>(::getpid()));
  EXPECT_EQ(processes[1 - own].pid, static_cast<unsigned>(client.pid()));
  EXPECT_GE(processes[1 - own].usedGpuMemory, 64ULL << 20);
  count = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2U);
  nvmlMemory_t before;
  nvmlMemory_t after;
  nvmlMemory_v2_t versioned;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, &before), NVML_SUCCESS);
  client.kill();
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, &after), NVML_SUCCESS);
  EXPECT_GE(before.used - after.used, 64ULL << 20);
  EXPECT_EQ(after.used + after.free, after.total);
  versioned.version = nvmlMemory_v2;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device, &versioned), NVML_SUCCESS);
  EXPECT_EQ(versioned.used, after.used);
  versioned.version = 1;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device, &versioned), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

// A kernel that is held for about 250 ms: 50,000 times its modelled launch overhead of 5 us.
DRIVER_TEST_IN(Nvml, UtilisationFollowsComputing,
               (Environment{{"SOFTGPU_MODE", "model"}, {"SOFTGPU_TIME_SCALE", "50000"}})) {
  use_device();
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t device = first_device();
  nvmlUtilization_t use;
  unsigned idle_power = 0;
  unsigned power = 0;
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
  EXPECT_EQ(use.gpu, 0U);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(device, &idle_power), NVML_SUCCESS);
  EXPECT_EQ(softgpu::testing::run_kernel("empty", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(device, &use), NVML_SUCCESS);
  EXPECT_GE(use.gpu, 20U);
  EXPECT_LE(use.gpu, 60U);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(device, &power), NVML_SUCCESS);
  EXPECT_GT(power, idle_power);
}

unsigned utilisation_since(unsigned long long* since) {
  nvmlProcessUtilizationSample_t samples[4];
  unsigned count = 4;
  const nvmlReturn_t asked = nvmlDeviceGetProcessUtilization(first_device(), samples, &count, *since);
  if (asked != NVML_SUCCESS) return 0;
  *since = samples[0].timeStamp;
  return samples[0].smUtil;
}

// Between two answers, whatever came before: a kernel of 250 ms, then nothing for as long as it took.
DRIVER_TEST_IN(Nvml, ProcessUtilisationIsOfTheTimeSinceTheLastAnswer,
               (Environment{{"SOFTGPU_MODE", "model"}, {"SOFTGPU_TIME_SCALE", "50000"}})) {
  use_device();
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(softgpu::testing::run_kernel("empty", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  unsigned long long since = 0;
  EXPECT_GT(utilisation_since(&since), 0U);
  EXPECT_EQ(softgpu::testing::run_kernel("empty", nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_GE(utilisation_since(&since), 80U) << "the kernel alone";
  EXPECT_EQ(utilisation_since(&since), 0U) << "nothing since";
}

}  // namespace
