// What the kernels of one context may access: the device's own memory, mapped and managed memory that the device has
// access to, the memory of peers, and pinned host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "softgpu/driver/process.h"

namespace softgpu {

class ContextSpace final : public ptx::AddressSpace {
 public:
  explicit ContextSpace(DriverDevice& own) : own_(own) {}

  Extent find(std::uint64_t address) const override;
  std::uint64_t epoch() const override;

  // Lets kernels of this context use the memory of `peer`'s device, or no longer; false when nothing changed.
  bool enable_peer(CUcontext peer);
  bool disable_peer(CUcontext peer);
  void disable_all_peers();

 private:
  bool is_peer(const DriverDevice& device) const;

  DriverDevice& own_;
  mutable std::shared_mutex mutex_;
  std::vector<CUcontext> peers_;  // guarded by mutex_
  std::atomic<std::uint64_t> changes_{0};
};

}  // namespace softgpu
