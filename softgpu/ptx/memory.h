// Where addresses lead. Every access of a kernel passes one of these checks, so that it can touch nothing but live
// device memory, its block's shared memory, its own local memory, its parameters and its module's constants.
#pragma once

#include <cstdint>

#include "softgpu/ptx/warp.h"

namespace softgpu::ptx {

// A range of addresses of one space that is safe to access: host address = address + to_host.
struct Region {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t to_host = 0;
  bool is_global = false;

  bool contains(std::uint64_t address, std::uint64_t count) const {
    return count <= bytes && address - begin <= bytes - count;
  }
  std::byte* host(std::uint64_t address) const { return reinterpret_cast<std::byte*>(address + to_host); }
};

// The live device allocation around `address`; empty when there is none. Remembered in the instruction's cache slot.
Region find_device_region(Warp& warp, const Instruction* at, std::uint64_t address);

inline Region device_region(Warp& warp, const Instruction* at, std::uint64_t address) {
  const AddressSpace::Extent& cached = warp.extents[at->slot];
  const std::uint64_t bytes = cached.end - cached.begin;
  if (address - cached.begin >= bytes) [[unlikely]]
    return find_device_region(warp, at, address);
  return {cached.begin, bytes, 0, true};
}

// The region of a generic address for `lane`.
Region generic_region(Warp& warp, const Instruction* at, std::uint64_t address, int lane);

// Host address of `bytes` bytes, a power of two, at `address` for one lane. Counts global traffic. Raises
// kIllegalAddress or kMisalignedAddress and returns null when the access is not allowed.
std::byte* locate(Warp& warp, const Instruction* at, Space space, std::uint64_t address, std::uint64_t bytes, int lane);

inline Region shared_region(const Warp& warp, std::uint64_t window = 0) {
  return {window, warp.shared_bytes, reinterpret_cast<std::uint64_t>(warp.shared) - window, false};
}
inline Region local_region(const Warp& warp, int lane, std::uint64_t window = 0) {
  const std::byte* base = warp.local + static_cast<std::size_t>(lane) * warp.local_bytes;
  return {window, warp.local_bytes, reinterpret_cast<std::uint64_t>(base) - window, false};
}
inline Region parameter_region(const Warp& warp, std::uint64_t window = 0) {
  return {window, warp.parameter_bytes, reinterpret_cast<std::uint64_t>(warp.parameters) - window, false};
}
inline Region constant_region(const Warp& warp) {
  const AddressSpace::Extent& bank = warp.run->program->constant_bank;
  return {bank.begin, bank.end - bank.begin, 0, false};
}

}  // namespace softgpu::ptx
