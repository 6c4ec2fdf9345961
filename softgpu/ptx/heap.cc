#include "softgpu/ptx/heap.h"

#include <iterator>

#include "softgpu/mutex.h"

namespace softgpu::ptx {
namespace {

constexpr std::uint64_t kBlockAlignment = 16;

}  // namespace

DeviceHeap::DeviceHeap(std::uint64_t begin, std::size_t bytes) {
  const std::uint64_t whole = bytes / kBlockAlignment * kBlockAlignment;
  if (whole != 0) free_.emplace(begin, whole);
}

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > ~std::uint64_t{0} - kBlockAlignment) return 0;
  const std::uint64_t needed = (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  const LockGuard lock(mutex_);
  for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
    const auto [address, room] = *hole;
    if (room < needed) continue;
    free_.erase(hole);
    if (room > needed) free_.emplace(address + needed, room - needed);
    taken_.emplace(address, needed);
    used_ += needed;
    return address;
  }
  return 0;
}

bool DeviceHeap::release(std::uint64_t address) {
  if (address == 0) return true;
  const LockGuard lock(mutex_);
  const auto block = taken_.find(address);
  if (block == taken_.end()) return false;
  std::uint64_t begin = address, bytes = block->second;
  used_ -= bytes;
  taken_.erase(block);
  const auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto behind = free_.lower_bound(begin);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(begin, bytes);
  return true;
}

std::size_t DeviceHeap::used_bytes() const {
  const LockGuard lock(mutex_);
  return used_;
}

}  // namespace softgpu::ptx
