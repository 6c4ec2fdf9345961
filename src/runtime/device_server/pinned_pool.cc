#include "runtime/device_server/pinned_pool.h"

#include <algorithm>
#include <bit>

namespace fairlead {
namespace {

constexpr std::uint64_t kSmallestBlock = 64 << 10;

}  // namespace

Result<PinnedPool::Block> PinnedPool::take(std::uint64_t bytes) {
  if (bytes == 0) return Block{};
  const std::uint64_t size = std::bit_ceil(std::max(bytes, kSmallestBlock));
  std::vector<char*>& free = free_[size];
  if (!free.empty()) {
    Block block{free.back(), size};
    free.pop_back();
    return block;
  }
  const auto memory = cuda_.allocate_pinned(Bytes(static_cast<std::int64_t>(size)));
  if (!memory) return fail(memory.error());
  return Block{static_cast<char*>(*memory), size};
}

void PinnedPool::give_back(Block block) {
  if (block.data != nullptr) free_[block.bytes].push_back(block.data);
}

}  // namespace fairlead
