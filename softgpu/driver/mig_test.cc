// MIG as programs meet it: CUDA devices, CUDA_VISIBLE_DEVICES, and NVML's partitioning calls beside them.
#include <cstring>
#include <fstream>
#include <vector>

#include "abi/nvml.h"
#include "softgpu/device/device.h"
#include "softgpu/device/mig/partition.h"
#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Environment;
using softgpu::testing::Fresh;
using softgpu::testing::Scenario;
using softgpu::testing::use_device;

const Environment kA100 = {{"SOFTGPU_PROFILE", "a100-40"}};
const Environment kTwoA100 = {{"SOFTGPU_PROFILE", "a100-40"}, {"SOFTGPU_DEVICES", "2"}};

struct Host {
  softgpu::Machine machine = softgpu::open_machine().value();
  softgpu::Clients clients = softgpu::Clients::open(machine).value();
  softgpu::Partition partition{machine, clients, 0};

  std::vector<softgpu::Part> parts() const {
    return softgpu::mig_parts(machine, 0, softgpu::read_settings(machine, 0)->mig);
  }
};

// Partitions GPU 0; its compute instances.
std::vector<softgpu::Part> partition(const std::vector<const char*>& names) {
  auto& host = *new Host;
  std::vector<const softgpu::MigProfile*> profiles;
  for (const char* name : names) profiles.push_back(softgpu::mig_geometry(host.machine, 0).find(name));
  EXPECT_TRUE(host.partition.set_mode(true));
  EXPECT_TRUE(host.partition.create_all(profiles));
  return host.parts();
}

int count_devices() {
  int count = -1;
  const CUresult initialised = cuInit(0);
  EXPECT_TRUE(initialised == CUDA_SUCCESS || initialised == CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  return count;
}

std::string name_of(CUdevice device) {
  char name[96] = "";
  EXPECT_EQ(cuDeviceGetName(name, sizeof name, device), CUDA_SUCCESS);
  return name;
}

void show_only(const std::string& list) {
  ::setenv("CUDA_VISIBLE_DEVICES", list.c_str(), 1);
}

DRIVER_TEST_IN(Mig, ASliceIsADevice, kA100) {
  const auto parts = partition({"3g.20gb", "1g.5gb"});
  EXPECT_EQ(count_devices(), 2);
  EXPECT_EQ(name_of(0), "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
  EXPECT_EQ(name_of(1), "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
  int sms = 0;
  std::size_t bytes = 0;
  CUuuid gpu;
  CUuuid slice;
  EXPECT_EQ(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1), CUDA_SUCCESS);
  EXPECT_EQ(sms, 14);
  EXPECT_EQ(cuDeviceTotalMem_v2(&bytes, 1), CUDA_SUCCESS);
  EXPECT_EQ(bytes, (4864ULL << 20) / 64);
  EXPECT_EQ(cuDeviceGetUuid(&gpu, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetUuid_v2(&slice, 1), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(slice.bytes, parts[1].uuid.data(), sizeof slice.bytes), 0);
  EXPECT_NE(std::memcmp(gpu.bytes, slice.bytes, sizeof slice.bytes), 0);
}

DRIVER_TEST_IN(Mig, AKernelRunsOnASliceInItsOwnMemory, kA100) {
  partition({"3g.20gb", "1g.5gb"});
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  for (const CUdevice device : {0, 1}) {
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    CUdeviceptr words = 0;
    EXPECT_EQ(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc_v2(&words, total), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(cuMemAlloc_v2(&words, 64 * 4), CUDA_SUCCESS);
    unsigned count = 64;
    void* parameters[] = {&words, &count};
    EXPECT_EQ(softgpu::testing::run_kernel("store_index", parameters, nullptr, 2, 32), CUDA_SUCCESS);
    unsigned last = 0;
    EXPECT_EQ(cuMemcpyDtoH_v2(&last, words + 63 * 4, 4), CUDA_SUCCESS);
    EXPECT_EQ(last, 63U);
  }
}

DRIVER_TEST_IN(Mig, AGpuInMigModeIsNoDevice, kTwoA100) {
  partition({});
  EXPECT_EQ(count_devices(), 1);
  char id[16];
  EXPECT_EQ(cuDeviceGetPCIBusId(id, sizeof id, 0), CUDA_SUCCESS);
  EXPECT_STREQ(id, "0000:02:00.0");
}

DRIVER_TEST_IN(Mig, VisibleByUuidAndByItsPrefix, kTwoA100) {
  const auto parts = partition({"2g.10gb", "1g.5gb"});
  const Host host;
  show_only(softgpu::uuid_text(host.machine, 1) + "," + parts[1].uuid_text() + "," +
            parts[0].uuid_text().substr(0, 20));
  EXPECT_EQ(count_devices(), 3);
  EXPECT_EQ(name_of(0), "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(name_of(1), parts[1].profile.name);
  EXPECT_EQ(name_of(2), parts[0].profile.name);
}

DRIVER_TEST_IN(Mig, VisibleByTheNameOfOlderDrivers, kA100) {
  const auto parts = partition({"2g.10gb", "1g.5gb"});
  const Host host;
  show_only("MIG-" + softgpu::uuid_text(host.machine, 0) + "/" + std::to_string(parts[1].mig->gpu_instance) + "/0");
  EXPECT_EQ(count_devices(), 1);
  EXPECT_EQ(name_of(0), parts[1].profile.name);
}

DRIVER_TEST_IN(Mig, TheListEndsAtAGpuInMigMode, kTwoA100) {
  const auto parts = partition({"1g.5gb"});
  const Host host;
  show_only(parts[0].uuid_text() + "," + softgpu::uuid_text(host.machine, 0) + "," +
            softgpu::uuid_text(host.machine, 1));
  EXPECT_EQ(count_devices(), 1);
}

DRIVER_TEST_IN(Mig, AnAmbiguousPrefixNamesNothing, kTwoA100) {
  show_only("GPU-73");  // both begin so
  EXPECT_EQ(count_devices(), 0);
}

DRIVER_TEST_IN(Mig, ADeviceNamedTwiceEndsTheList, kTwoA100) {
  show_only("1,1,0");
  EXPECT_EQ(count_devices(), 1);
}

DRIVER_TEST_IN(Mig, OlderDriversSeeOneSlice,
               (Environment{{"SOFTGPU_PROFILE", "a100-40"}, {"SOFTGPU_MIG_ENUMERATION", "single"}})) {
  partition({"2g.10gb", "1g.5gb"});
  EXPECT_EQ(count_devices(), 1);
}

DRIVER_TEST_IN(Mig, OneComputeInstanceOfEachGpuInstanceIsSeen, kA100) {
  Host host;
  ASSERT_TRUE(host.partition.set_mode(true));
  const unsigned id =
      host.partition.create(*softgpu::mig_geometry(host.machine, 0).find("3g.20gb"), std::nullopt).value();
  ASSERT_TRUE(host.partition.create_compute(id, 1, std::nullopt));
  ASSERT_TRUE(host.partition.create_compute(id, 2, std::nullopt));
  EXPECT_EQ(count_devices(), 1);
  EXPECT_EQ(name_of(0), "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb");
}

const Scenario kUser("use the first device", [] { use_device(); });

DRIVER_TEST_IN(Mig, ASliceInUseIsNotDestroyedUntilItsProcessDies, kA100) {
  partition({"1g.5gb"});
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  nvmlDevice_t mig = nullptr;
  nvmlGpuInstance_t instance = nullptr;
  nvmlComputeInstance_t compute = nullptr;
  unsigned id = 0;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetGpuInstanceId(mig, &id), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetGpuInstanceById(gpu, id, &instance), NVML_SUCCESS);
  ASSERT_EQ(nvmlGpuInstanceGetComputeInstanceById(instance, 0, &compute), NVML_SUCCESS);
  Fresh user("use the first device");
  ASSERT_TRUE(user.ran());
  nvmlProcessInfo_t process;
  unsigned count = 1;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(gpu, &count, &process), NVML_SUCCESS);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(process.pid, static_cast<unsigned>(user.pid()));
  EXPECT_EQ(process.gpuInstanceId, id);
  EXPECT_EQ(nvmlComputeInstanceDestroy(compute), NVML_ERROR_IN_USE);
  EXPECT_EQ(nvmlGpuInstanceDestroy(instance), NVML_ERROR_IN_USE);
  user.kill();
  EXPECT_EQ(nvmlComputeInstanceDestroy(compute), NVML_SUCCESS);
  EXPECT_EQ(nvmlGpuInstanceDestroy(instance), NVML_SUCCESS);
  EXPECT_EQ(nvmlGpuInstanceDestroy(instance), NVML_ERROR_NOT_FOUND);
  char name[96];
  EXPECT_EQ(nvmlDeviceGetName(mig, name, sizeof name), NVML_ERROR_INVALID_ARGUMENT);
}

DRIVER_TEST_IN(Mig, NvmlPartitionsAGpu, kA100) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  nvmlGpuInstance_t instance = nullptr;
  nvmlGpuInstance_t other = nullptr;
  nvmlComputeInstance_t compute = nullptr;
  nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
  nvmlGpuInstanceProfileInfo_v2_t info = {};
  nvmlGpuInstancePlacement_t placements[8];
  unsigned count = 0;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  info.version = nvmlGpuInstanceProfileInfo_v2;
  ASSERT_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, NVML_GPU_INSTANCE_PROFILE_3_SLICE, &info), NVML_SUCCESS);
  EXPECT_EQ(info.id, 9U);
  EXPECT_EQ(info.multiprocessorCount, 42U);
  EXPECT_EQ(info.memorySizeMB, 19968U);
  EXPECT_STREQ(info.name, "MIG 3g.20gb");
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, NVML_GPU_INSTANCE_PROFILE_8_SLICE, &info),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, NVML_GPU_INSTANCE_PROFILE_COUNT, &info),
            NVML_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu, 9, placements, &count), NVML_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(placements[1].start, 4U);
  EXPECT_EQ(placements[1].size, 4U);

  EXPECT_EQ(nvmlDeviceCreateGpuInstance(gpu, 9, &instance), NVML_ERROR_NOT_SUPPORTED);  // MIG is off
  ASSERT_EQ(nvmlDeviceSetMigMode(gpu, NVML_DEVICE_MIG_ENABLE, &activation), NVML_SUCCESS);
  EXPECT_EQ(activation, NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, &placements[1], &instance), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceCreateGpuInstanceWithPlacement(gpu, 9, &placements[1], &other),
            NVML_ERROR_INSUFFICIENT_RESOURCES);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 9, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  nvmlUtilization_t use;
  EXPECT_EQ(nvmlDeviceGetUtilizationRates(gpu, &use), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceSetMigMode(gpu, NVML_DEVICE_MIG_DISABLE, &activation), NVML_ERROR_IN_USE);

  nvmlDevice_t mig = nullptr;
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_ERROR_NOT_FOUND);  // no compute instance yet
  ASSERT_EQ(nvmlGpuInstanceCreateComputeInstance(instance, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, &compute),
            NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_SUCCESS);
  nvmlDeviceAttributes_t attributes;
  ASSERT_EQ(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
  EXPECT_EQ(attributes.multiprocessorCount, 42U);
  EXPECT_EQ(attributes.gpuInstanceSliceCount, 3U);
  EXPECT_EQ(attributes.memorySizeMB, 19968U);
  char uuid[96];
  nvmlDevice_t found = nullptr;
  ASSERT_EQ(nvmlDeviceGetUUID(mig, uuid, sizeof uuid), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID(uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, mig);
  EXPECT_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &found), NVML_SUCCESS);
  EXPECT_EQ(found, gpu);
  unsigned watts = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(mig, &watts), NVML_ERROR_NOT_SUPPORTED);
}

DRIVER_TEST_IN(Mig, AProcessKeepsNoSliceItDoesNotUse, kA100) {
  const auto parts = partition({"1g.5gb"});
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  Host host;
  ASSERT_TRUE(host.partition.destroy_with_compute(parts[0].mig->gpu_instance));
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

DRIVER_TEST_IN(ComputeMode, ExclusiveProcessAdmitsNoSecondProcess, kA100) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceSetComputeMode(gpu, NVML_COMPUTEMODE_EXCLUSIVE_THREAD), NVML_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(nvmlDeviceSetComputeMode(gpu, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetComputeMode(gpu, &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
  Fresh user("use the first device");
  ASSERT_TRUE(user.ran());
  CUcontext context = nullptr;
  int attribute = 0;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetAttribute(&attribute, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0), CUDA_SUCCESS);
  EXPECT_EQ(attribute, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
  user.kill();
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
}

DRIVER_TEST_IN(NvmlEvents, AChangeOfThePartitionIsAnEvent, kA100) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  nvmlEventSet_t set = nullptr;
  nvmlEventData_t event = {};
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  ASSERT_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceRegisterEvents(gpu, 1ULL << 40, set), NVML_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu, nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange, set), NVML_SUCCESS);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_TIMEOUT);
  partition({"1g.5gb"});
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 1000), NVML_SUCCESS);
  EXPECT_EQ(event.eventType, nvmlEventMigConfigChange);
  EXPECT_EQ(event.device, gpu);
  EXPECT_EQ(nvmlEventSetFree(set), NVML_SUCCESS);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_INVALID_ARGUMENT);
}

DRIVER_TEST_IN(NvmlEvents, AnXidIsAnEventAndALostGpuSaysSo, kA100) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  nvmlEventSet_t set = nullptr;
  nvmlEventData_t event = {};
  unsigned watts = 0;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
  ASSERT_EQ(nvmlEventSetCreate(&set), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu, nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
  const Host host;
  softgpu::Faults faults = softgpu::DeviceView::open(host.machine, host.clients, 0).value()->faults();
  faults.raise_xid(31);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 1000), NVML_SUCCESS);
  EXPECT_EQ(event.eventType, nvmlEventTypeXidCriticalError);
  EXPECT_EQ(event.eventData, 31U);
  EXPECT_EQ(nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_TIMEOUT);
  faults.lose();
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu, &watts), NVML_ERROR_GPU_IS_LOST);
  faults.clear();
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu, &watts), NVML_SUCCESS);
}

std::string handle_path() {
  return softgpu::machine_home() + "/handle";
}

const Scenario kExporter("export memory of the first device", [] {
  use_device();
  CUdeviceptr address = 0;
  CUipcMemHandle handle;
  ASSERT_EQ(cuMemAlloc_v2(&address, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cuIpcGetMemHandle(&handle, address), CUDA_SUCCESS);
  std::ofstream(handle_path(), std::ios::binary).write(handle.reserved, sizeof handle.reserved);
});

DRIVER_TEST_IN(Mig, MemoryIsNotSharedBetweenSlices, kA100) {
  partition({"3g.20gb", "1g.5gb"});
  const Fresh exporter("export memory of the first device");
  ASSERT_TRUE(exporter.ran());
  CUipcMemHandle handle;
  std::ifstream(handle_path(), std::ios::binary).read(handle.reserved, sizeof handle.reserved);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  const auto open_on = [&](CUdevice device) {
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    return cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  };
  EXPECT_EQ(open_on(0), CUDA_SUCCESS);
  EXPECT_EQ(open_on(1), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST_IN(Mig, SlicesAreNoPeers, kA100) {
  partition({"3g.20gb", "1g.5gb"});
  CUcontext contexts[2] = {};
  int value = 1;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  for (const CUdevice device : {0, 1}) ASSERT_EQ(cuDevicePrimaryCtxRetain(&contexts[device], device), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceCanAccessPeer(&value, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

DRIVER_TEST_IN(Mig, ADescriptorNamesTheMemoryOfItsSlice, kA100) {
  partition({"3g.20gb", "1g.5gb"});
  CUmemAllocationProp properties = {};
  CUmemGenericAllocationHandle own = 0;
  CUmemGenericAllocationHandle imported = 0;
  int descriptor = -1;
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&own, 2 << 20, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, own, properties.requestedHandleTypes, 0), CUDA_SUCCESS);
  auto* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
  ASSERT_EQ(cuMemImportFromShareableHandle(&imported, shareable, properties.requestedHandleTypes), CUDA_SUCCESS);
  properties.location.id = 0;
  EXPECT_EQ(cuMemGetAllocationPropertiesFromHandle(&properties, imported), CUDA_SUCCESS);
  EXPECT_EQ(properties.location.id, 1);
}

DRIVER_TEST_IN(Mig, AnXidOfTheGpuReachesItsSlices, kA100) {
  partition({"1g.5gb"});
  use_device();
  const Host host;
  softgpu::DeviceView::open(host.machine, host.clients, 0).value()->faults().raise_xid(31);
  CUdeviceptr address = 0;
  EXPECT_NE(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);
}

}  // namespace
