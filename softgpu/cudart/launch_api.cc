// Launches, functions, occupancy. Kernels are named by the address of their host stub.
#include "softgpu/cudart/api.h"
#include "softgpu/cudart/registry.h"

using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::report;

namespace {

// Runs a launch of the kernel that a host function stands for; the driver takes a kernel as a function.
template <typename Launch>
cudaError_t launch(const void* host, dim3 grid, dim3 block, const Launch& run) {
  const bool is_empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  return in_context([&](const Driver& driver) {
    CUkernel kernel = nullptr;
    const cudaError_t error = softgpu::cudart::Registry::get().kernel(driver, host, kernel);
    if (error != cudaSuccess) return error;
    const CUresult result = is_empty ? CUDA_ERROR_INVALID_VALUE : run(driver, reinterpret_cast<CUfunction>(kernel));
    // The driver's answer to a shape no device has.
    return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : static_cast<cudaError_t>(result);
  });
}

// Runs a query about the function that a host function stands for.
template <typename Query>
cudaError_t with_function(const void* host, const Query& query) {
  return in_context([&](const Driver& driver) {
    CUfunction function = nullptr;
    const cudaError_t error = softgpu::cudart::function_of(driver, host, function);
    return error != cudaSuccess ? error : static_cast<cudaError_t>(query(driver, function));
  });
}

CUlaunchConfig driver_config(const cudaLaunchConfig_t& config) {
  CUlaunchConfig all = {};
  all.gridDimX = config.gridDim.x;
  all.gridDimY = config.gridDim.y;
  all.gridDimZ = config.gridDim.z;
  all.blockDimX = config.blockDim.x;
  all.blockDimY = config.blockDim.y;
  all.blockDimZ = config.blockDim.z;
  all.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  all.hStream = config.stream;
  all.attrs = config.attrs;
  all.numAttrs = config.numAttrs;
  return all;
}

struct FunctionField {
  CUfunction_attribute attribute;
  int cudaFuncAttributes::*field;
};

constexpr FunctionField kFunctionFields[] = {
    {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaFuncAttributes::maxThreadsPerBlock},
    {CU_FUNC_ATTRIBUTE_NUM_REGS, &cudaFuncAttributes::numRegs},
    {CU_FUNC_ATTRIBUTE_PTX_VERSION, &cudaFuncAttributes::ptxVersion},
    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &cudaFuncAttributes::binaryVersion},
    {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &cudaFuncAttributes::cacheModeCA},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &cudaFuncAttributes::maxDynamicSharedSizeBytes},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &cudaFuncAttributes::preferredShmemCarveout},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &cudaFuncAttributes::clusterDimMustBeSet},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &cudaFuncAttributes::requiredClusterWidth},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &cudaFuncAttributes::requiredClusterHeight},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &cudaFuncAttributes::requiredClusterDepth},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &cudaFuncAttributes::clusterSchedulingPolicyPreference},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &cudaFuncAttributes::nonPortableClusterSizeAllowed},
};

CUresult read_size(const Driver& driver, CUfunction function, CUfunction_attribute attribute, size_t& size) {
  int value = 0;
  const CUresult result = driver.cuFuncGetAttribute(&value, attribute, function);
  size = static_cast<size_t>(value);
  return result;
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return launch(function, grid, block, [&](const Driver& driver, CUfunction kernel) {
    return driver.cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  });
}

// The pair that newer compilers emit in place of cudaLaunchKernel: the kernel is looked up once.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return cudaGetKernel(kernel, host_function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return in_context([&](const Driver& driver) {
    return driver.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                 block.z, static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch(function, grid, block, [&](const Driver& driver, CUfunction kernel) {
    return driver.cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                            static_cast<unsigned>(shared_bytes), stream, arguments);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (config == nullptr) return report(cudaErrorInvalidValue);
  return launch(function, config->gridDim, config->blockDim, [&](const Driver& driver, CUfunction kernel) {
    const CUlaunchConfig all = driver_config(*config);
    return driver.cuLaunchKernelEx(&all, kernel, arguments, nullptr);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  return in_context([&](const Driver& driver) { return driver.cuLaunchHostFunc(stream, function, user_data); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    *attributes = {};
    CUresult result = read_size(driver, handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, attributes->sharedSizeBytes);
    if (result != CUDA_SUCCESS) return result;
    result = read_size(driver, handle, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, attributes->constSizeBytes);
    if (result != CUDA_SUCCESS) return result;
    result = read_size(driver, handle, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, attributes->localSizeBytes);
    for (const FunctionField& field : kFunctionFields) {
      if (result != CUDA_SUCCESS) return result;
      result = driver.cuFuncGetAttribute(&(attributes->*field.field), field.attribute, handle);
    }
    return result;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuFuncSetAttribute(handle, static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return with_function(
      function, [&](const Driver& driver, CUfunction handle) { return driver.cuFuncSetCacheConfig(handle, config); });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return with_function(function,
                       [&](const Driver& driver, CUfunction handle) { return driver.cuFuncGetName(name, handle); });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuFuncGetParamInfo(handle, index, offset, size);
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return report(cudaErrorInvalidValue);
  return in_context([&](const Driver& driver) { return softgpu::cudart::function_of(driver, symbol, *function); });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  if (kernel == nullptr) return report(cudaErrorInvalidValue);
  return in_context(
      [&](const Driver& driver) { return softgpu::cudart::Registry::get().kernel(driver, symbol, *kernel); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                   size_t shared_bytes, unsigned flags) {
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_size, shared_bytes, flags);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size) {
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuOccupancyAvailableDynamicSMemPerBlock(bytes, handle, blocks, block_size);
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  if (config == nullptr) return report(cudaErrorInvalidValue);
  const CUlaunchConfig all = driver_config(*config);
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuOccupancyMaxActiveClusters(clusters, handle, &all);
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* cluster_size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  if (config == nullptr) return report(cudaErrorInvalidValue);
  const CUlaunchConfig all = driver_config(*config);
  return with_function(function, [&](const Driver& driver, CUfunction handle) {
    return driver.cuOccupancyMaxPotentialClusterSize(cluster_size, handle, &all);
  });
}
