// What the kernels of one context may access: the device's own memory, mapped and managed memory that the device has
// access to, the memory of peers, and pinned host memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/driver/context/context_part.h"
#include "softgpu/driver/process.h"
#include "softgpu/mutex.h"

namespace softgpu {

// The part of a context that says so. Thread-safe.
class ContextSpace final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kAccess;
  explicit ContextSpace(CUctx_st& context);

  // As AddressSpace::find. Managed pages that had to migrate to the device are added to `migrated`.
  Extent find(std::uint64_t address, std::atomic<std::uint64_t>& migrated) const;
  std::uint64_t epoch() const;

  // Lets kernels of this context use the memory of `peer`'s device, or no longer; false when nothing changed.
  bool enable_peer(CUcontext peer);
  bool disable_peer(CUcontext peer);
  // The peers go with the context.
  void close() override;

 private:
  Extent find_at_peer(const DriverDevice& peer, std::uint64_t address) const;
  bool is_peer(const DriverDevice& device) const;

  DriverDevice& own_;
  mutable SharedMutex mutex_;
  std::vector<CUcontext> peers_ SOFTGPU_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> changes_{0};
};

// The same for one launch, which counts what migrates for it.
class LaunchSpace final : public ptx::AddressSpace {
 public:
  explicit LaunchSpace(const ContextSpace& space) : space_(space) {}
  Extent find(std::uint64_t address) const override { return space_.find(address, migrated_); }
  std::uint64_t epoch() const override { return space_.epoch(); }
  // Pages of managed memory.
  std::uint64_t migrated() const { return migrated_.load(); }

 private:
  const ContextSpace& space_;
  mutable std::atomic<std::uint64_t> migrated_{0};
};

}  // namespace softgpu
