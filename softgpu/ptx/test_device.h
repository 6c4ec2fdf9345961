// A device for tests and benchmarks: allocations in host memory, a module loader, and launches with plain arguments.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/mutex.h"
#include "softgpu/ptx/machine.h"

namespace softgpu::ptx::testing {

class TestDevice final : public AddressSpace, public ModuleMemory {
 public:
  Extent find(std::uint64_t address) const override {
    const LockGuard lock(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin()) return {};
    const auto& [begin, bytes] = *--next;
    return address < begin + bytes.size ? Extent{begin, begin + bytes.size} : Extent{};
  }
  std::uint64_t epoch() const override {
    const LockGuard lock(mutex_);
    return epoch_;
  }
  // At least 512 bytes lie between two allocations.
  std::uint64_t allocate(std::size_t bytes) override {
    const LockGuard lock(mutex_);
    if (bytes > room_) return 0;
    Allocation allocation{std::make_unique<std::byte[]>(bytes + 1024), bytes};
    const std::uint64_t begin = (reinterpret_cast<std::uint64_t>(allocation.memory.get()) + 511) / 256 * 256;
    allocations_.emplace(begin, std::move(allocation));
    ++epoch_;
    return begin;
  }
  void release(std::uint64_t address) override {
    const LockGuard lock(mutex_);
    allocations_.erase(address);
    ++epoch_;
  }
  Managed allocate_managed(std::string_view, std::size_t bytes) override {
    const std::uint64_t address = allocate(bytes + 4096);
    return {(address + 4095) / 4096 * 4096, true};
  }
  DeviceHeap* kernel_heap() override {
    if (heap_ != nullptr) return heap_.get();
    const std::uint64_t begin = allocate(heap_bytes_);
    if (begin != 0) heap_ = std::make_unique<DeviceHeap>(begin, heap_bytes_);
    return heap_.get();
  }
  void set_heap_bytes(std::size_t bytes) { heap_bytes_ = bytes; }
  void set_room(std::size_t bytes) { room_ = bytes; }
  std::size_t allocations() const { return allocations_.size(); }

  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }

 private:
  struct Allocation {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };
  mutable Mutex mutex_;
  std::map<std::uint64_t, Allocation> allocations_;
  std::uint64_t epoch_ = 1;
  std::size_t room_ = SIZE_MAX;
  std::size_t heap_bytes_ = std::size_t{8} << 20;
  std::unique_ptr<DeviceHeap> heap_;
};

// Arguments laid out as KernelInfo::parameters says.
template <class... T>
std::vector<std::byte> pack_arguments(const KernelInfo& info, T... values) {
  std::vector<std::byte> block(info.parameter_bytes);
  std::size_t index = 0;
  ((std::memcpy(block.data() + info.parameters.at(index).offset, &values, sizeof values), ++index), ...);
  return block;
}

inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace softgpu::ptx::testing
