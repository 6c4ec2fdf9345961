// The error that stuck to a context, and whether its work must end.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "softgpu/device/mapping_guard.h"
#include "softgpu/driver/process.h"

namespace softgpu {

// Thread-safe.
class ContextFault {
 public:
  explicit ContextFault(Device& device) : device_(device) {}

  // No fault, and nothing is to end: the context is activated. What the device suffered before does not count.
  void reset();
  // The error that stuck, else CUDA_SUCCESS. Also learns of the device's faults: an Xid, another MPS client's.
  CUresult get() {
    if (device_.faults().xid_count() != xid_count_ || device_.shared_fault_count() != shared_fault_count_ ||
        mapping_lost()) {
      take_device_fault();
    }
    return static_cast<CUresult>(error_.load(std::memory_order_acquire));
  }
  // The first error wins; the text says where it happened.
  void set(CUresult error, const std::string& detail);
  // Set with the first error, and when the context ends: kernels and waits return.
  const std::atomic<bool>& cancel() const { return cancel_; }
  void end_work() { cancel_.store(true); }

 private:
  void take_device_fault();

  Device& device_;
  std::atomic<int> error_{CUDA_SUCCESS};
  // What the device had suffered when the context was activated.
  std::atomic<std::uint32_t> xid_count_{0};
  std::atomic<std::uint32_t> shared_fault_count_{0};
  std::atomic<bool> cancel_{false};
};

}  // namespace softgpu
