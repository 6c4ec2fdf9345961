// The name of a client process in shared memory: its slot and the generation of that slot. Process ids cannot serve,
// because clients live in different pid namespaces; a slot is alive while its process holds the lock of it.
#pragma once

#include <cstdint>

namespace softgpu {

inline constexpr unsigned kMaxClients = 512;

struct Owner {
  static constexpr unsigned kSlotBits = 10;
  static constexpr std::uint32_t kGenerationMask = (1U << 20) - 1;

  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // 1 to kGenerationMask

  // 30 bits, never zero.
  std::uint32_t pack() const { return generation << kSlotBits | slot; }
  static Owner unpack(std::uint32_t word) {
    return {word & ((1U << kSlotBits) - 1), word >> kSlotBits & kGenerationMask};
  }
  bool operator==(const Owner&) const = default;
};

static_assert(kMaxClients <= 1U << Owner::kSlotBits);

}  // namespace softgpu
