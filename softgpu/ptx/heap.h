// The heap of malloc and free in kernels: blocks inside one range of device memory. What is taken is kept outside that
// range, so a kernel that overruns a block cannot make the heap hand out anything else than its own range.
//
// First fit, blocks aligned to 16 bytes; neighbours that are free are one. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "softgpu/mutex.h"

namespace softgpu::ptx {

class DeviceHeap {
 public:
  // Manages `bytes` bytes of live device memory at `begin`, a multiple of 16, which outlive the heap.
  DeviceHeap(std::uint64_t begin, std::size_t bytes);

  // The device address of a new block; 0 when none fits or `bytes` is 0.
  std::uint64_t allocate(std::uint64_t bytes);

  // False when no block begins at `address`. Address 0 is no block, and releasing it is no error.
  bool release(std::uint64_t address);

  std::size_t used_bytes() const;

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ SOFTGPU_GUARDED_BY(mutex_);   // address -> bytes
  std::map<std::uint64_t, std::uint64_t> taken_ SOFTGPU_GUARDED_BY(mutex_);  // address -> bytes
  std::size_t used_ SOFTGPU_GUARDED_BY(mutex_) = 0;
};

}  // namespace softgpu::ptx
