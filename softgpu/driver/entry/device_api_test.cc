// Initialisation, devices, errors.
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::use_device;

DRIVER_TEST(Init, NothingWorksBeforeIt) {
  int count = 0;
  CUdeviceptr address = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_TEST(Init, ChildOfForkIsNotInitialised) {
  use_device();
  const int pid = ::fork();
  if (pid == 0) {
    CUdeviceptr address = 0;
    const bool refused =
        cuMemAlloc_v2(&address, 4) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);  // the parent is as before
}

DRIVER_TEST_IN(Device, VisibleDevicesSelectAndOrder,
               (Environment{{"SOFTGPU_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "2,0,9,1"}})) {
  int count = 0;
  char id[16];
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cuDeviceGetPCIBusId(id, sizeof id, 0), CUDA_SUCCESS);
  EXPECT_STREQ(id, "0000:03:00.0");
}

DRIVER_TEST_IN(Device, NoVisibleDeviceIsNoDevice, (Environment{{"CUDA_VISIBLE_DEVICES", "-1"}})) {
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

DRIVER_TEST_IN(Device, DescribesItsProfile, (Environment{{"SOFTGPU_PROFILE", "a100-40"}})) {
  char name[64];
  int value = 0;
  int minor = 0;
  std::size_t bytes = 0;
  CUuuid first;
  CUdevice device = 0;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(cuDeviceGetName(name, 7, 0), CUDA_SUCCESS);
  EXPECT_STREQ(name, "NVIDIA");
  EXPECT_EQ(cuDeviceComputeCapability(&value, &minor, 0), CUDA_SUCCESS);
  EXPECT_EQ(value * 10 + minor, 80);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 108);
  EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceTotalMem_v2(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, (40ULL << 30) / 64);
  EXPECT_EQ(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetUuid_v2(&first, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "0000:01:00.0"), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
}

TEST(Errors, HaveNamesAndTexts) {
  const char* text = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "illegal address");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
