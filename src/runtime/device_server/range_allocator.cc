#include "runtime/device_server/range_allocator.h"

#include "base/check.h"

namespace fairlead {

void RangeAllocator::add(std::uint64_t offset, std::uint64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void RangeAllocator::remove(std::map<std::uint64_t, std::uint64_t>::iterator part) {
  by_size_.erase({part->second, part->first});
  by_offset_.erase(part);
}

void RangeAllocator::grow(std::uint64_t bytes) {
  const std::uint64_t end = size_;
  size_ += bytes;
  release(end, bytes);
}

void RangeAllocator::shrink(std::uint64_t bytes) {
  if (bytes == 0) return;
  FL_CHECK(bytes <= free_at_end(), "{} bytes are taken back, {} are free at the end", bytes, free_at_end());
  const auto [offset, size] = *by_offset_.rbegin();
  remove(std::prev(by_offset_.end()));
  if (size > bytes) add(offset, size - bytes);
  size_ -= bytes;
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes);
  const auto found = by_size_.lower_bound({size, 0});
  if (found == by_size_.end()) return std::nullopt;
  const auto [part, offset] = *found;
  remove(by_offset_.find(offset));
  if (part > size) add(offset + size, part - size);
  return offset;
}

void RangeAllocator::release(std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t begin = offset;
  std::uint64_t end = offset + round_up(bytes);
  auto next = by_offset_.lower_bound(begin);
  if (next != by_offset_.begin()) {
    const auto before = std::prev(next);
    FL_CHECK(before->first + before->second <= begin, "bytes at {} are released twice", begin);
    if (before->first + before->second == begin) {
      begin = before->first;
      remove(before);
    }
  }
  if (next != by_offset_.end()) {
    FL_CHECK(end <= next->first, "bytes at {} are released twice", next->first);
    if (next->first == end) {
      end += next->second;
      remove(next);
    }
  }
  if (end > begin) add(begin, end - begin);
}

void RangeAllocator::reset(std::uint64_t used) {
  by_offset_.clear();
  by_size_.clear();
  if (size_ > used) add(used, size_ - used);
}

std::uint64_t RangeAllocator::free_at_end() const {
  if (by_offset_.empty()) return 0;
  const auto& [offset, bytes] = *by_offset_.rbegin();
  return offset + bytes == size_ ? bytes : 0;
}

}  // namespace fairlead
