// cudaGetDeviceProperties: a structure of what cuDeviceGetAttribute says, attribute by attribute.
#include <cstddef>
#include <cstring>

#include "softgpu/cudart/api.h"

using softgpu::cudart::Driver;
using softgpu::cudart::report;

namespace {

// An attribute's number and the field it fills: the number of the element for arrays.
struct IntField {
  int attribute;
  std::size_t offset;
};

#define FIELD(attribute, field) \
  { attribute, offsetof(cudaDeviceProp, field) }
#define ELEMENT(attribute, field, index) \
  { attribute, offsetof(cudaDeviceProp, field) + (index) * sizeof(int) }

// Numbers of the ABI that abi/cuda_types.h has no name for are the limits of textures and surfaces.
constexpr IntField kInts[] = {
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, regsPerBlock),
    FIELD(CU_DEVICE_ATTRIBUTE_WARP_SIZE, warpSize),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, maxThreadsDim, 0),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, maxThreadsDim, 1),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, maxThreadsDim, 2),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, maxGridSize, 0),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, maxGridSize, 1),
    ELEMENT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, maxGridSize, 2),
    FIELD(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major),
    FIELD(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor),
    FIELD(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiProcessorCount),
    FIELD(CU_DEVICE_ATTRIBUTE_INTEGRATED, integrated),
    FIELD(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, canMapHostMemory),
    FIELD(21, maxTexture1D),
    ELEMENT(22, maxTexture2D, 0),
    ELEMENT(23, maxTexture2D, 1),
    ELEMENT(24, maxTexture3D, 0),
    ELEMENT(25, maxTexture3D, 1),
    ELEMENT(26, maxTexture3D, 2),
    ELEMENT(27, maxTexture2DLayered, 0),
    ELEMENT(28, maxTexture2DLayered, 1),
    ELEMENT(29, maxTexture2DLayered, 2),
    ELEMENT(42, maxTexture1DLayered, 0),
    ELEMENT(43, maxTexture1DLayered, 1),
    FIELD(52, maxTextureCubemap),
    FIELD(55, maxSurface1D),
    ELEMENT(56, maxSurface2D, 0),
    ELEMENT(57, maxSurface2D, 1),
    ELEMENT(58, maxSurface3D, 0),
    ELEMENT(59, maxSurface3D, 1),
    ELEMENT(60, maxSurface3D, 2),
    ELEMENT(45, maxTexture2DGather, 0),
    ELEMENT(46, maxTexture2DGather, 1),
    ELEMENT(47, maxTexture3DAlt, 0),
    ELEMENT(48, maxTexture3DAlt, 1),
    ELEMENT(49, maxTexture3DAlt, 2),
    ELEMENT(53, maxTextureCubemapLayered, 0),
    ELEMENT(54, maxTextureCubemapLayered, 1),
    ELEMENT(61, maxSurface1DLayered, 0),
    ELEMENT(62, maxSurface1DLayered, 1),
    ELEMENT(63, maxSurface2DLayered, 0),
    ELEMENT(64, maxSurface2DLayered, 1),
    ELEMENT(65, maxSurface2DLayered, 2),
    FIELD(66, maxSurfaceCubemap),
    ELEMENT(67, maxSurfaceCubemapLayered, 0),
    ELEMENT(68, maxSurfaceCubemapLayered, 1),
    ELEMENT(70, maxTexture2DLinear, 0),
    ELEMENT(71, maxTexture2DLinear, 1),
    ELEMENT(72, maxTexture2DLinear, 2),
    ELEMENT(73, maxTexture2DMipmap, 0),
    ELEMENT(74, maxTexture2DMipmap, 1),
    FIELD(77, maxTexture1DMipmap),
    FIELD(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, concurrentKernels),
    FIELD(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, ECCEnabled),
    FIELD(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, pciBusID),
    FIELD(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, pciDeviceID),
    FIELD(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, pciDomainID),
    FIELD(CU_DEVICE_ATTRIBUTE_TCC_DRIVER, tccDriver),
    FIELD(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, asyncEngineCount),
    FIELD(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, unifiedAddressing),
    FIELD(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth),
    FIELD(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, l2CacheSize),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, persistingL2CacheMaxSize),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor),
    FIELD(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, globalL1CacheSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, localL1CacheSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor),
    FIELD(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, managedMemory),
    FIELD(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, isMultiGpuBoard),
    FIELD(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, multiGpuBoardGroupID),
    FIELD(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, hostNativeAtomicSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess),
    FIELD(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess),
    FIELD(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, computePreemptionSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, canUseHostPointerForRegisteredMem),
    FIELD(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, cooperativeLaunch),
    FIELD(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, pageableMemoryAccessUsesHostPageTables),
    FIELD(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, directManagedMemAccessFromHost),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, accessPolicyMaxWindowSize),
    FIELD(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, hostRegisterSupported),
    FIELD(112, sparseCudaArraySupported),
    FIELD(113, hostRegisterReadOnlySupported),
    FIELD(114, timelineSemaphoreInteropSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, gpuDirectRDMASupported),
    FIELD(117, gpuDirectRDMAFlushWritesOptions),
    FIELD(118, gpuDirectRDMAWritesOrdering),
    FIELD(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, memoryPoolSupportedHandleTypes),
    FIELD(121, deferredMappingCudaArraySupported),
    FIELD(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, ipcEventSupported),
    FIELD(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, clusterLaunch),
    FIELD(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, unifiedFunctionPointers),
    FIELD(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, deviceNumaConfig),
    FIELD(CU_DEVICE_ATTRIBUTE_NUMA_ID, deviceNumaId),
    FIELD(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, mpsEnabled),
    FIELD(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, hostNumaId),
    FIELD(139, gpuPciDeviceID),
    FIELD(140, gpuPciSubsystemID),
    FIELD(143, hostNumaMultinodeIpcSupported),
};

// Attributes whose field is a size_t.
constexpr IntField kSizes[] = {
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_PITCH, memPitch),
    FIELD(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, totalConstMem),
    FIELD(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, textureAlignment),
    FIELD(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment),
    FIELD(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, surfaceAlignment),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor),
    FIELD(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin),
    FIELD(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock),
};

#undef FIELD
#undef ELEMENT

// What a driver does not know stays 0.
int attribute_of(const Driver& driver, int attribute, int device) {
  int value = 0;
  const CUresult result = driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(attribute), device);
  return result == CUDA_SUCCESS ? value : 0;
}

}  // namespace

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return report(cudaErrorInvalidValue);
  return softgpu::cudart::with_driver([&](const Driver& driver) {
    std::memset(properties, 0, sizeof *properties);
    CUresult result = driver.cuDeviceGetName(properties->name, sizeof properties->name, device);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceGetUuid(&properties->uuid, device);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceTotalMem(&properties->totalGlobalMem, device);
    if (result != CUDA_SUCCESS) return result;
    auto* base = reinterpret_cast<std::byte*>(properties);
    for (const IntField& field : kInts) {
      const int value = attribute_of(driver, field.attribute, device);
      std::memcpy(base + field.offset, &value, sizeof value);
    }
    for (const IntField& field : kSizes) {
      const auto value = static_cast<std::size_t>(attribute_of(driver, field.attribute, device));
      std::memcpy(base + field.offset, &value, sizeof value);
    }
    return result;
  });
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}
