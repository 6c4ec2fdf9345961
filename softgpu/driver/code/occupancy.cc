#include "softgpu/driver/code/occupancy.h"

#include <algorithm>

namespace softgpu {
namespace {

constexpr unsigned kThreadsPerSm = 2048;
constexpr unsigned kBlocksPerSm = 32;
constexpr unsigned kRegistersPerSm = 65536;
constexpr unsigned kWarp = 32;

}  // namespace

std::size_t reserved_shared(const Profile& profile) {
  return profile.compute_major >= 8 ? 1024 : 0;
}

int blocks_per_sm(const CUfunc_st& function, unsigned block_size, std::size_t dynamic_shared_bytes) {
  const ptx::KernelInfo& info = function.kernel->info();
  const Profile& profile = function.module->context->device().profile();
  if (block_size > info.max_threads) return 0;
  const unsigned threads = (block_size + kWarp - 1) / kWarp * kWarp;
  std::size_t blocks = std::min(kThreadsPerSm / threads, kBlocksPerSm);
  const unsigned registers = function.registers() * threads;
  blocks = std::min<std::size_t>(blocks, std::max(1U, kRegistersPerSm / registers));
  if (const std::size_t shared = info.static_shared_bytes + dynamic_shared_bytes; shared != 0) {
    if (shared > profile.shared_per_block_kib << 10) return 0;
    blocks = std::min<std::size_t>(blocks, (profile.shared_per_sm_kib << 10) / (shared + reserved_shared(profile)));
  }
  return static_cast<int>(blocks);
}

int shared_limit(const CUfunc_st& function) {
  return static_cast<int>(function.module->context->device().profile().shared_per_block_kib << 10);
}

}  // namespace softgpu
