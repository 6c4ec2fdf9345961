#include "softgpu/driver/context/kernel_heap.h"

#include <algorithm>

namespace softgpu {

ptx::DeviceHeap* KernelHeap::get() {
  const LockGuard guard(mutex_);
  if (heap_ != nullptr) return heap_.get();
  const std::size_t bytes = context_.settings.limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  const std::uint64_t begin = context_.heap().allocate(std::max<std::size_t>(bytes, 1));
  if (begin != 0) heap_ = std::make_unique<ptx::DeviceHeap>(begin, bytes);
  return heap_.get();
}

bool KernelHeap::made() {
  const LockGuard guard(mutex_);
  return heap_ != nullptr;
}

void KernelHeap::close() {
  const LockGuard guard(mutex_);
  heap_.reset();
}

}  // namespace softgpu
