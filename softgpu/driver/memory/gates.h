// The memory gates of all devices at once (DriverDevice::memory_gate), for memory that every device may look at.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <vector>

#include "softgpu/driver/process.h"

namespace softgpu {

// While it lives no kernel or copy of this process runs; the constructor waits for those that do.
class AllGates {
 public:
  AllGates() {
    for (const auto& device : Process::get()->devices()) locks_.emplace_back(device->memory_gate);
  }
  // Does not wait: see locked().
  explicit AllGates(std::try_to_lock_t) {
    for (const auto& device : Process::get()->devices()) {
      locks_.emplace_back(device->memory_gate, std::try_to_lock);
      locked_ = locked_ && locks_.back().owns_lock();
    }
  }
  bool locked() const { return locked_; }

 private:
  bool locked_ = true;
  std::vector<std::unique_lock<std::shared_mutex>> locks_;  // in the order of the devices, so two cannot wait in a ring
};

}  // namespace softgpu
