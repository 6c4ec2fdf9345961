// Occupancy: how much of the device a kernel can fill.
#include <algorithm>

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/code/occupancy.h"

using softgpu::resolve_function;

namespace {

constexpr unsigned kKnownFlags = 1;
constexpr int kPortableCluster = 8;
constexpr int kNonPortableCluster = 16;
constexpr int kFirstWithClusters = 90;

// Blocks of the launch that the device holds at a time. NOT_SUPPORTED below compute capability 9.0.
CUresult resident_blocks(CUfunction handle, const CUlaunchConfig* config, CUfunction& function, int& blocks) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t threads = std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
  if (threads == 0 || threads > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const softgpu::Device& device = function->module->context->device();
  if (softgpu::architecture_of(device) < kFirstWithClusters) return CUDA_ERROR_NOT_SUPPORTED;
  blocks = softgpu::blocks_per_sm(*function, static_cast<unsigned>(threads), config->sharedMemBytes) *
           static_cast<int>(device.profile().sm_count);
  return CUDA_SUCCESS;
}

// Blocks per cluster that the launch asks for; 0 when it names none.
std::uint64_t cluster_of(const CUlaunchConfig& config) {
  std::uint64_t blocks = 0;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& dimension = config.attrs[i].value.clusterDim;
    blocks = std::uint64_t{dimension.x} * dimension.y * dimension.z;
  }
  return blocks;
}

int largest_cluster(const CUfunc_st& function) {
  return function.non_portable_cluster != 0 ? kNonPortableCluster : kPortableCluster;
}

}  // namespace

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int block_size,
                                                              size_t dynamic_shared_bytes, unsigned flags) {
  CUfunction function = nullptr;
  if (blocks == nullptr || block_size <= 0 || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  *blocks = softgpu::blocks_per_sm(*function, static_cast<unsigned>(block_size), dynamic_shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, dynamic_shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid_size, int* block_size, CUfunction handle,
                                                   CUoccupancyB2DSize shared_of_block, size_t dynamic_shared_bytes,
                                                   int block_size_limit, unsigned flags) {
  CUfunction function = nullptr;
  if (min_grid_size == nullptr || block_size == nullptr || (flags & ~kKnownFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  SOFTGPU_TRY(resolve_function(handle, function));
  int limit = static_cast<int>(function->kernel->info().max_threads);
  if (block_size_limit > 0) limit = std::min(limit, block_size_limit);
  int best_threads = 0;
  for (int size = (limit + 31) / 32 * 32; size > 0; size -= 32) {
    const int threads = std::min(size, limit);
    const std::size_t shared = shared_of_block != nullptr ? shared_of_block(threads) : dynamic_shared_bytes;
    const int blocks = softgpu::blocks_per_sm(*function, static_cast<unsigned>(threads), shared);
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block_size = threads;
    *min_grid_size = blocks * static_cast<int>(function->module->context->device().profile().sm_count);
  }
  return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t dynamic_shared_bytes,
                                          int block_size_limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid_size, block_size, function, shared_of_block,
                                                   dynamic_shared_bytes, block_size_limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int block_size) {
  CUfunction function = nullptr;
  if (bytes == nullptr || blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resolve_function(handle, function));
  const softgpu::Profile& profile = function->module->context->device().profile();
  const std::size_t fixed = function->kernel->info().static_shared_bytes, reserved = softgpu::reserved_shared(profile);
  const std::size_t slice = (profile.shared_per_sm_kib << 10) / static_cast<unsigned>(blocks);
  const std::size_t share = std::min<std::size_t>(slice > reserved ? slice - reserved : 0,
                                                  static_cast<std::size_t>(softgpu::shared_limit(*function)));
  *bytes = share > fixed ? share - fixed : 0;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* cluster_size, CUfunction handle, const CUlaunchConfig* config) {
  CUfunction function = nullptr;
  int blocks = 0;
  if (cluster_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resident_blocks(handle, config, function, blocks));
  *cluster_size = std::min(blocks, largest_cluster(*function));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  CUfunction function = nullptr;
  int blocks = 0;
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(resident_blocks(handle, config, function, blocks));
  const std::uint64_t size = std::max<std::uint64_t>(cluster_of(*config), 1);
  if (size > static_cast<unsigned>(largest_cluster(*function))) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *clusters = blocks / static_cast<int>(size);
  return CUDA_SUCCESS;
}
