// Keys of the accounting (memory.h: record, forget) for things that are not addresses: the kind is in bits that no
// address of a device has.
#pragma once

#include <cstdint>

namespace fairlead::shim {

enum class KeyKind : std::uint64_t { kAddress = 0, kVirtualMemory, kArray, kGraphPool };

inline constexpr std::uint64_t key_of(KeyKind kind, std::uint64_t value) {
  return (static_cast<std::uint64_t>(kind) << 60) | (value & ((std::uint64_t{1} << 60) - 1));
}

}  // namespace fairlead::shim
