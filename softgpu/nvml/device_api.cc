// Devices: handles and identity.
#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "softgpu/nvml/nvml_state.h"

using softgpu::check_device;
using softgpu::check_gpu;
using softgpu::NvmlState;
using softgpu::write_text;

namespace {

constexpr unsigned kVendor = 0x10DE;
constexpr unsigned kClass3d = 0x03;
constexpr unsigned kSubClass3d = 0x02;
constexpr unsigned kLanes = 16;

// NVML writes the PCI domain with eight digits.
std::string bus_id(unsigned index) {
  return "0000" + softgpu::pci_bus_id(index);
}

unsigned pci_device_id(nvmlDevice_t device) {
  return static_cast<unsigned>(device->profile().pci_device_id) << 16 | kVendor;
}

// Thirteen digits that differ between machines and between devices.
std::string serial_of(nvmlDevice_t device) {
  constexpr std::uint64_t kSerials = 100'000'000'000;
  const std::uint64_t number = NvmlState::get()->machine().id % kSerials * 100 + device->index();
  std::string digits = std::to_string(number);
  return std::string(13 - digits.size(), '0') + digits;
}

// The generation whose 16 lanes carry the link's bandwidth: about 16, 32 and 64 GB/s in theory.
unsigned link_generation(nvmlDevice_t device) {
  const std::uint64_t bandwidth = device->profile().link_bandwidth_gb_s;
  if (bandwidth <= 15) return 3;
  return bandwidth <= 31 ? 4 : 5;
}

nvmlDeviceArchitecture_t architecture_of(const softgpu::Profile& profile) {
  switch (profile.compute_major) {
    case 7: return profile.compute_minor >= 5 ? NVML_DEVICE_ARCH_TURING : NVML_DEVICE_ARCH_VOLTA;
    case 8: return profile.compute_minor == 9 ? NVML_DEVICE_ARCH_ADA : NVML_DEVICE_ARCH_AMPERE;
    case 9: return NVML_DEVICE_ARCH_HOPPER;
    case 10:
    case 12: return NVML_DEVICE_ARCH_BLACKWELL;
    default: return NVML_DEVICE_ARCH_UNKNOWN;
  }
}

// The first GPU that `wanted` is true for.
template <typename Wanted>
nvmlReturn_t find_gpu(const char* text, nvmlDevice_t* device, Wanted wanted) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (text == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (const auto& known : state->gpus()) {
    if (!wanted(known.get())) continue;
    *device = known.get();
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

template <typename Value>
nvmlReturn_t answer(nvmlDevice_t device, Value* out, Value value) {
  SOFTGPU_NVML_TRY(check_gpu(device, out));
  *out = value;
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(state->gpus().size());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  NvmlState* state = NvmlState::get();
  if (state == nullptr) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= state->gpus().size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = state->gpus()[index].get();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  const nvmlReturn_t gpu =
      find_gpu(uuid, device, [&](nvmlDevice_t known) { return known->part().uuid_text() == uuid; });
  if (gpu != NVML_ERROR_NOT_FOUND) return gpu;
  for (const auto& known : NvmlState::get()->gpus()) {
    for (const nvmlDevice_t mig : softgpu::mig_devices_of(known.get())) {
      if (mig->part().uuid_text() != uuid) continue;
      *device = mig;
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  return find_gpu(id, device, [&](nvmlDevice_t known) {
    const std::string full = bus_id(known->index());
    return ::strcasecmp(id, full.c_str()) == 0 || ::strcasecmp(id, full.c_str() + 4) == 0;
  });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return find_gpu(serial, device, [&](nvmlDevice_t known) { return serial_of(known) == serial; });
}

// Of a MIG device: its index within the GPU.
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *index = device->index();
  if (!device->is_mig()) return NVML_SUCCESS;
  const std::vector<nvmlDevice_t> all = softgpu::mig_devices_of(device->gpu);
  *index = static_cast<unsigned>(std::find(all.begin(), all.end(), device) - all.begin());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) {
  SOFTGPU_NVML_TRY(check_gpu(device, minor));
  *minor = device->index();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  SOFTGPU_NVML_TRY(check_device(device));
  return write_text(device->profile().name, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  SOFTGPU_NVML_TRY(check_device(device));
  return write_text(device->part().uuid_text(), uuid, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned length) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return write_text(serial_of(device), serial, length);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* brand) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (brand == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *brand = device->profile().name.starts_with("Tesla") ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* architecture) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (architecture == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *architecture = architecture_of(device->profile());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned* board) {
  SOFTGPU_NVML_TRY(check_gpu(device, board));
  *board = (device->index() + 1) << 8;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned* multi_gpu) {
  return answer(device, multi_gpu, 0U);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned length) {
  SOFTGPU_NVML_TRY(check_gpu(device));
  return write_text("00.00.00.00.00", version, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  SOFTGPU_NVML_TRY(check_gpu(device, pci));
  *pci = {};
  pci->bus = device->index() + 1;
  pci->pciDeviceId = pci_device_id(device);
  SOFTGPU_NVML_TRY(write_text(softgpu::pci_bus_id(device->index()), pci->busIdLegacy, sizeof pci->busIdLegacy));
  return write_text(bus_id(device->index()), pci->busId, sizeof pci->busId);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t* pci) {
  SOFTGPU_NVML_TRY(check_gpu(device, pci));
  *pci = {};
  pci->bus = device->index() + 1;
  pci->pciDeviceId = pci_device_id(device);
  return write_text(softgpu::pci_bus_id(device->index()), pci->busId, sizeof pci->busId);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t* pci) {
  SOFTGPU_NVML_TRY(check_gpu(device, pci));
  if (pci->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *pci = {};
  pci->version = nvmlPciInfoExt_v1;
  pci->bus = device->index() + 1;
  pci->pciDeviceId = pci_device_id(device);
  pci->baseClass = kClass3d;
  pci->subClass = kSubClass3d;
  return write_text(bus_id(device->index()), pci->busId, sizeof pci->busId);
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t* type) {
  return answer<nvmlBusType_t>(device, type, NVML_BUS_TYPE_PCIE);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  SOFTGPU_NVML_TRY(check_gpu(device, generation));
  *generation = link_generation(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return nvmlDeviceGetMaxPcieLinkGeneration(device, generation);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return nvmlDeviceGetMaxPcieLinkGeneration(device, generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* lanes) {
  return answer(device, lanes, kLanes);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* lanes) {
  return answer(device, lanes, kLanes);
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned* count) {
  return answer(device, count, 0U);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, nvmlGpuVirtualizationMode_t* mode) {
  return answer(device, mode, NVML_GPU_VIRTUALIZATION_MODE_NONE);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* state) {
  return answer(device, state, NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* state) {
  return answer(device, state, NVML_FEATURE_DISABLED);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  SOFTGPU_NVML_TRY(check_device(device));
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = device->profile().compute_major;
  *minor = device->profile().compute_minor;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned* cores) {
  SOFTGPU_NVML_TRY(check_gpu(device, cores));
  *cores = static_cast<unsigned>(device->profile().sm_count * device->profile().cores_per_sm);
  return NVML_SUCCESS;
}
