// Loads and stores of whole rows. A row of addresses usually has a pattern: each half of the warp reads consecutive
// elements (a row of an array, or two rows of a tile 16 wide) or one and the same element. Then two range checks and
// two copies do. Else all addresses are
// checked in a vectorised loop and gathered; only when that fails does each lane go its own way, which also finds the
// lane that faults.
#pragma once

#include <cstring>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/rows.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

inline constexpr int kHalf = kLanes / 2;
inline constexpr std::uint32_t kAllLanes = ~0u;

// The region that the first lane's address lies in; the others are checked against it.
template <Space kSpace>
inline Region region_of(Warp& warp, const Instruction* at, std::uint64_t address) {
  if constexpr (kSpace == Space::kGlobal) return device_region(warp, at, address);
  if constexpr (kSpace == Space::kShared) return shared_region(warp);
  if constexpr (kSpace == Space::kConst) return constant_region(warp);
  if constexpr (kSpace == Space::kParam) return parameter_region(warp);
  if constexpr (kSpace == Space::kGeneric) {
    // Each lane has local memory of its own, so that window has no common region.
    if (address - kLocalWindow < kWindowBytes) return {};
    return generic_region(warp, at, address, 0);
  }
  return {};
}

// Whether, in both halves, addresses advance by `stride` bytes, which is 0 or kBytes.
template <std::size_t kBytes, class A>
inline bool has_stride(const A* address, A stride) {
  A difference = 0;
  const A mask = stride == 0 ? A{0} : static_cast<A>(~A{0});
  for (int lane = 0; lane < kHalf; ++lane) {
    const A expected = static_cast<A>(static_cast<A>(lane) * kBytes) & mask;
    difference |= (address[lane] - address[0]) ^ expected;
    difference |= (address[kHalf + lane] - address[kHalf]) ^ expected;
  }
  return difference == 0;
}

// Whether every lane's kBytes at address + offset are aligned and inside the region.
template <std::size_t kBytes, class A>
inline bool all_inside(const A* address, A offset, const Region& region) {
  if (region.bytes < kBytes || (sizeof(A) == 4 && region.begin != 0)) return false;
  const std::uint64_t slack = region.bytes - kBytes;
  const A begin = static_cast<A>(region.begin);
  const A limit = sizeof(A) == 4 && slack > ~std::uint32_t{0} ? static_cast<A>(~A{0}) : static_cast<A>(slack);
  A outside = 0, ones = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const A at = static_cast<A>(address[lane] + offset);
    outside |= static_cast<A>(at - begin) > limit ? A{1} : A{0};
    ones |= at;
  }
  return outside == 0 && (ones & (kBytes - 1)) == 0;
}

// Copies kCount elements in pieces as wide as the handlers' own loads: a wide load of what narrower stores have just
// written would wait for them to reach the cache.
#if defined(SOFTGPU_ISA_V4)
typedef std::uint8_t Piece __attribute__((vector_size(64), aligned(1), may_alias));
#elif defined(SOFTGPU_ISA_V3)
typedef std::uint8_t Piece __attribute__((vector_size(32), aligned(1), may_alias));
#else
typedef std::uint8_t Piece __attribute__((vector_size(16), aligned(1), may_alias));
#endif

template <std::size_t kCount, class T>
inline void copy_elements(T* to, const T* from) {
  constexpr std::size_t kBytes = kCount * sizeof(T);
  if constexpr (kBytes % sizeof(Piece) == 0) {
    for (std::size_t i = 0; i < kBytes / sizeof(Piece); ++i) {
      reinterpret_cast<Piece*>(to)[i] = reinterpret_cast<const Piece*>(from)[i];
    }
  } else {
    std::memcpy(to, from, kBytes);
  }
}

template <class T>
inline T peek(std::uint64_t host) {
  return *reinterpret_cast<const volatile T*>(host);
}

struct AddressPattern {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t stride = kNone;         // bytes between lanes in both halves of the warp: 0 or an element's size
  std::uint64_t first = 0, second = 0;  // addresses of lanes 0 and 16
};

// The pattern of a row for elements of T; stride kNone when it has none that the quick way knows.
template <class T, class A>
inline AddressPattern find_pattern(const A* address) {
  const A stride = static_cast<A>(address[1] - address[0]);
  const bool is_known = (stride == 0 || stride == sizeof(T)) && has_stride<sizeof(T)>(address, stride);
  return {is_known ? stride : AddressPattern::kNone, address[0], address[kHalf]};
}

// Both halves' addresses with the instruction's offset, if all of their elements are aligned and inside the region.
template <class T, class A>
inline bool halves_inside(const AddressPattern& pattern, A offset, const Region& region, std::uint64_t& first,
                          std::uint64_t& second) {
  first = static_cast<A>(static_cast<A>(pattern.first) + offset);
  second = static_cast<A>(static_cast<A>(pattern.second) + offset);
  const std::uint64_t span = pattern.stride * (kHalf - 1) + sizeof(T);
  return ((first | second) & (sizeof(T) - 1)) == 0 && region.contains(first, span) && region.contains(second, span);
}

template <class T, class A>
inline bool load_halves(T* dst, const AddressPattern& pattern, A offset, const Region& region) {
  std::uint64_t first, second;
  if (pattern.stride != 0 && pattern.stride != sizeof(T)) return false;
  if (!halves_inside<T>(pattern, offset, region, first, second)) return false;
  if (pattern.stride != 0) {
    copy_elements<kHalf>(dst, reinterpret_cast<const T*>(region.host(first)));
    copy_elements<kHalf>(dst + kHalf, reinterpret_cast<const T*>(region.host(second)));
    return true;
  }
  const T low = peek<T>(first + region.to_host), high = peek<T>(second + region.to_host);
  for (int lane = 0; lane < kHalf; ++lane) dst[lane] = low;
  for (int lane = kHalf; lane < kLanes; ++lane) dst[lane] = high;
  return true;
}

template <class T, class A>
inline bool load_gathered(T* dst, const A* address, A offset, const Region& region) {
  if (!all_inside<sizeof(T)>(address, offset, region)) return false;
  alignas(kRowAlignment) T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    values[lane] = *reinterpret_cast<const T*>(static_cast<A>(address[lane] + offset) + region.to_host);
  }
  copy_elements<kLanes>(dst, values);
  return true;
}

template <class T, class A>
inline bool store_halves(const T* values, const AddressPattern& pattern, A offset, const Region& region) {
  std::uint64_t first, second;
  if (pattern.stride != sizeof(T) || !halves_inside<T>(pattern, offset, region, first, second)) return false;
  copy_elements<kHalf>(reinterpret_cast<T*>(region.host(first)), values);
  copy_elements<kHalf>(reinterpret_cast<T*>(region.host(second)), values + kHalf);
  return true;
}

template <class T, class A>
inline bool store_scattered(const T* values, const A* address, A offset, const Region& region) {
  if (!all_inside<sizeof(T)>(address, offset, region)) return false;
  for (int lane = 0; lane < kLanes; ++lane) {
    *reinterpret_cast<volatile T*>(static_cast<A>(address[lane] + offset) + region.to_host) = values[lane];
  }
  return true;
}

// Active lanes that access consecutive elements, when some lanes are missing: the elements from the first to the last
// active lane. Returns the host address lane 0 would have, or 0.
template <class T, class A>
inline std::uint64_t consecutive_part(const A* address, A offset, const Region& region, std::uint32_t mask) {
  const int first = __builtin_ctz(mask), last = 31 - __builtin_clz(mask);
  const A base = static_cast<A>(address[first] - static_cast<A>(first) * sizeof(T));
  A difference = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const A wrong = static_cast<A>(address[lane] - base) ^ static_cast<A>(static_cast<A>(lane) * sizeof(T));
    difference |= (mask >> lane) & 1 ? wrong : A{0};
  }
  const A begin = static_cast<A>(address[first] + offset);
  const std::size_t span = static_cast<std::size_t>(last - first + 1) * sizeof(T);
  if (difference != 0 || (begin & (sizeof(T) - 1)) != 0 || !region.contains(begin, span)) return 0;
  return begin + region.to_host - static_cast<std::uint64_t>(first) * sizeof(T);
}

// Reading elements between and around the active ones is harmless as long as they belong to the same allocation.
template <class T>
inline bool load_part(T* dst, std::uint64_t host, const Region& region, std::uint32_t mask) {
  if (host == 0) return false;
  const T* elements = reinterpret_cast<const T*>(host);
  if (region.contains(host - region.to_host, kLanes * sizeof(T))) {
    blend(dst, elements, mask);
    return true;
  }
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    dst[lane] = *const_cast<const volatile T*>(elements + lane);
  }
  return true;
}

template <class T>
inline bool store_part(const T* values, std::uint64_t host, std::uint32_t mask) {
  if (host == 0) return false;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    reinterpret_cast<volatile T*>(host)[lane] = values[lane];
  }
  return true;
}

template <class T>
inline void count_traffic(Warp& warp, const Region& region, std::uint32_t lanes) {
  if (region.is_global) warp.global_bytes += sizeof(T) * lanes;
}

// The region an instruction used last, for the quick way; the other way finds it.
template <Space kSpace>
inline Region likely_region(const Warp& warp, const Instruction* at) {
  if constexpr (kSpace == Space::kGlobal || kSpace == Space::kGeneric) {
    const AddressSpace::Extent& cached = warp.extents[at->slot];
    return {cached.begin, cached.end - cached.begin, 0, true};
  }
  if constexpr (kSpace == Space::kShared) return shared_region(warp);
  if constexpr (kSpace == Space::kConst) return constant_region(warp);
  return {};
}

template <class T, class A, Space kSpace>
[[gnu::noinline]] const Instruction* load_otherwise(Warp& warp, const Instruction* at) {
  const A* address = source<A>(warp, at->a);
  const A offset = static_cast<A>(at->immediate);
  T* dst = row<T>(warp, at->dst);
  if constexpr (kSpace != Space::kLocal) {
    const Region region = region_of<kSpace>(warp, at, static_cast<A>(address[__builtin_ctz(warp.mask)] + offset));
    const bool done =
        warp.mask == kAllLanes
            ? load_halves(dst, find_pattern<T>(address), offset, region) || load_gathered(dst, address, offset, region)
            : load_part(dst, consecutive_part<T>(address, offset, region, warp.mask), region, warp.mask);
    if (done) {
      count_traffic<T>(warp, region, static_cast<std::uint32_t>(__builtin_popcount(warp.mask)));
      return at + 1;
    }
  }
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const std::byte* host = locate(warp, at, kSpace, static_cast<A>(address[lane] + offset), sizeof(T), lane);
    if (host == nullptr) return nullptr;
    dst[lane] = *reinterpret_cast<const volatile T*>(host);
  }
  return at + 1;
}

// The quick way calls nothing, so the compiler needs no stack frame for it.
template <class T, class A, Space kSpace>
const Instruction* load(Warp& warp, const Instruction* at) {
  if constexpr (kSpace != Space::kLocal && kSpace != Space::kParam) {
    const Region region = likely_region<kSpace>(warp, at);
    const AddressPattern pattern = warp.mask == kAllLanes ? find_pattern<T>(source<A>(warp, at->a)) : AddressPattern{};
    if (load_halves(row<T>(warp, at->dst), pattern, static_cast<A>(at->immediate), region)) [[likely]] {
      count_traffic<T>(warp, region, kLanes);
      return at + 1;
    }
  }
  return load_otherwise<T, A, kSpace>(warp, at);
}

template <class T, class A, Space kSpace>
[[gnu::noinline]] const Instruction* store_otherwise(Warp& warp, const Instruction* at) {
  const A* address = source<A>(warp, at->a);
  const A offset = static_cast<A>(at->immediate);
  const T* values = source<T>(warp, at->b);
  if constexpr (kSpace != Space::kLocal) {
    const Region region = region_of<kSpace>(warp, at, static_cast<A>(address[__builtin_ctz(warp.mask)] + offset));
    const bool done = warp.mask == kAllLanes
                          ? store_halves(values, find_pattern<T>(address), offset, region) ||
                                store_scattered(values, address, offset, region)
                          : store_part(values, consecutive_part<T>(address, offset, region, warp.mask), warp.mask);
    if (done) {
      count_traffic<T>(warp, region, static_cast<std::uint32_t>(__builtin_popcount(warp.mask)));
      return at + 1;
    }
  }
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::byte* host = locate(warp, at, kSpace, static_cast<A>(address[lane] + offset), sizeof(T), lane);
    if (host == nullptr) return nullptr;
    *reinterpret_cast<volatile T*>(host) = values[lane];
  }
  return at + 1;
}

template <class T, class A, Space kSpace>
const Instruction* store(Warp& warp, const Instruction* at) {
  if constexpr (kSpace != Space::kLocal && kSpace != Space::kParam) {
    const Region region = likely_region<kSpace>(warp, at);
    const AddressPattern pattern = warp.mask == kAllLanes ? find_pattern<T>(source<A>(warp, at->a)) : AddressPattern{};
    if (store_halves(source<T>(warp, at->b), pattern, static_cast<A>(at->immediate), region)) [[likely]] {
      count_traffic<T>(warp, region, kLanes);
      return at + 1;
    }
  }
  return store_otherwise<T, A, kSpace>(warp, at);
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
