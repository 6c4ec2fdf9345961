// Devices.
#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "softgpu/driver/code/occupancy.h"
#include "softgpu/driver/process.h"

using softgpu::DriverDevice;
using softgpu::get_device;
using softgpu::Process;
using softgpu::Profile;

namespace {

constexpr int kThreadsPerBlock = 1024;
constexpr int kThreadsPerSm = 2048;
constexpr int kRegistersPerSm = 65536;
constexpr int kSharedPerBlock = 48 * 1024;
constexpr int kConstantBytes = 64 * 1024;
constexpr int kMaxGridX = 2147483647;
constexpr int kMaxGridYz = 65535;

// Attributes that depend on the profile; false when the attribute is none of them.
bool profile_attribute(const Profile& profile, CUdevice_attribute attribute, int& value) {
  const auto set = [&](std::uint64_t number) {
    value = static_cast<int>(number);
    return true;
  };
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return set(profile.clock_mhz * 1000);
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return set(profile.memory_clock_mhz * 1000);
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return set(profile.memory_bus_bits);
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return set(profile.l2_kib << 10);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return set(static_cast<unsigned>(profile.compute_major));
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return set(static_cast<unsigned>(profile.compute_minor));
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return set(profile.shared_per_sm_kib << 10);
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return set(profile.shared_per_block_kib << 10);
    case CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
      return set(profile.compute_major >= 8 ? profile.l2_kib << 10 : 0);
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return set(softgpu::reserved_shared(profile));
    default: return false;
  }
}

// Attributes that are the same for every device. What is not named is absent: 0.
int common_attribute(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return kThreadsPerBlock;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return kMaxGridX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return kMaxGridYz;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return kSharedPerBlock;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return kConstantBytes;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return kRegistersPerSm;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return kThreadsPerSm;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: return 2;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return -1;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES: return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    default: return 0;
  }
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  DriverDevice* found = nullptr;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(ordinal, found));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Process* process = Process::get();
  if (process == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(process->devices().size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  DriverDevice* found = nullptr;
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  const std::string& text = found->device->profile().name;
  const std::size_t count = std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, text.data(), count);
  name[count] = '\0';
  return CUDA_SUCCESS;
}

namespace {

CUresult write_uuid(CUuuid* uuid, const softgpu::Uuid& bytes) {
  std::memcpy(uuid->bytes, bytes.data(), sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

}  // namespace

// Of the GPU, also when the device is a part of it.
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  DriverDevice* found = nullptr;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  return write_uuid(uuid, softgpu::device_uuid(found->device->machine(), found->device->index()));
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  DriverDevice* found = nullptr;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  return write_uuid(uuid, found->device->part().uuid);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  DriverDevice* found = nullptr;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  *bytes = found->device->total_bytes();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  DriverDevice* found = nullptr;
  if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
    *value = static_cast<int>(found->device->index()) + 1;
  } else if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
    *value = static_cast<int>(found->device->sms());
  } else if (attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) {
    *value = found->device->share().mps ? 1 : 0;
  } else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) {
    const auto settings = softgpu::read_settings(found->device->machine(), found->device->index());
    *value = static_cast<int>(settings ? settings->compute_mode : softgpu::ComputeMode::kDefault);
  } else if (!profile_attribute(found->device->profile(), attribute, *value)) {
    *value = common_attribute(attribute);
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  DriverDevice* found = nullptr;
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  *major = found->device->profile().compute_major;
  *minor = found->device->profile().compute_minor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  DriverDevice* found = nullptr;
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  const int clock_khz = static_cast<int>(found->device->profile().clock_mhz) * 1000;
  *properties = {kThreadsPerBlock,
                 {kThreadsPerBlock, kThreadsPerBlock, 64},
                 {kMaxGridX, kMaxGridYz, kMaxGridYz},
                 kSharedPerBlock,
                 kConstantBytes,
                 32,
                 2147483647,
                 kRegistersPerSm,
                 clock_khz,
                 512};
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  DriverDevice* found = nullptr;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  const std::string text = softgpu::pci_bus_id(found->device->index());
  if (length < 0 || static_cast<std::size_t>(length) <= text.size()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(id, text.c_str(), text.size() + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Process* process = Process::get();
  if (process == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  for (const auto& entry : process->devices()) {
    const std::string own = softgpu::pci_bus_id(entry->device->index());
    if (::strcasecmp(id, own.c_str()) != 0 && ::strcasecmp(id, own.c_str() + own.find(':') + 1) != 0) continue;
    *device = entry->ordinal;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

// Only clients of MPS can ask for a share of the SMs.
CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  DriverDevice* found = nullptr;
  if (supported == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, found));
  *supported = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  DriverDevice* own = nullptr;
  DriverDevice* other = nullptr;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(get_device(device, own));
  SOFTGPU_TRY(get_device(peer, other));
  *can = softgpu::can_be_peers(*own, *other) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice target) {
  DriverDevice* from = nullptr;
  DriverDevice* to = nullptr;
  if (value == nullptr || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
      attribute > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED || source == target) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(get_device(source, from));
  SOFTGPU_TRY(get_device(target, to));
  const bool supported = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
                         attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED;
  *value = supported && softgpu::can_be_peers(*from, *to) ? 1 : 0;
  return CUDA_SUCCESS;
}
