// Rows of lanes: the loops the compiler vectorises. Every arithmetic handler is one of the templates below over an
// operation `Op` with `static R apply(A...)`.
#pragma once

#include <cstdint>
#include <cstring>

#include "softgpu/ptx/warp.h"

#define SOFTGPU_LANES _Pragma("GCC ivdep") for (int lane = 0; lane < kLanes; ++lane)

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {

template <class T>
inline T* row(Warp& warp, std::int32_t offset) {
  return static_cast<T*>(__builtin_assume_aligned(warp.frame + offset, kRowAlignment));
}

// Without a branch, which constants between registers would make hard to predict.
inline const std::byte* source_bytes(const Warp& warp, std::int32_t offset) {
  const std::int64_t at = offset;
  const std::uint64_t frame = reinterpret_cast<std::uint64_t>(warp.frame);
  return reinterpret_cast<const std::byte*>(frame + static_cast<std::uint64_t>((warp.to_constants & (at >> 63)) + at));
}

template <class T>
inline const T* source(const Warp& warp, std::int32_t offset) {
  return static_cast<const T*>(__builtin_assume_aligned(source_bytes(warp, offset), kRowAlignment));
}

inline std::uint32_t predicate(const Warp& warp, std::int32_t offset) {
  return *reinterpret_cast<const std::uint32_t*>(source_bytes(warp, offset));
}

inline void set_predicate(Warp& warp, std::int32_t offset, std::uint32_t value) {
  auto& row = *reinterpret_cast<std::uint32_t*>(warp.frame + offset);
  row = (row & ~warp.mask) | (value & warp.mask);
}

template <class T>
inline void blend(T* dst, const T* values, std::uint32_t mask) {
  SOFTGPU_LANES dst[lane] = (mask >> lane) & 1 ? values[lane] : dst[lane];
}

template <class T>
inline void write_uniform(Warp& warp, std::int32_t offset, T value) {
  T* dst = row<T>(warp, offset);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = value;
  } else {
    const std::uint32_t mask = warp.mask;
    SOFTGPU_LANES dst[lane] = (mask >> lane) & 1 ? value : dst[lane];
  }
}

// Writes values computed by `lane_value(lane)` to the active lanes.
template <class T, class F>
inline void write_lanes(Warp& warp, std::int32_t offset, const F& lane_value) {
  T* dst = row<T>(warp, offset);
  alignas(kRowAlignment) T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = lane_value(lane);
  blend(dst, values, warp.mask);
}

template <class Op, class R, class A>
const Instruction* unary(Warp& warp, const Instruction* at) {
  R* dst = row<R>(warp, at->dst);
  const A* a = source<A>(warp, at->a);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = Op::apply(a[lane]);
  } else {
    alignas(kRowAlignment) R values[kLanes];
    SOFTGPU_LANES values[lane] = Op::apply(a[lane]);
    blend(dst, values, warp.mask);
  }
  return at + 1;
}

template <class Op, class R, class A, class B = A>
const Instruction* binary(Warp& warp, const Instruction* at) {
  R* dst = row<R>(warp, at->dst);
  const A* a = source<A>(warp, at->a);
  const B* b = source<B>(warp, at->b);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = Op::apply(a[lane], b[lane]);
  } else {
    alignas(kRowAlignment) R values[kLanes];
    SOFTGPU_LANES values[lane] = Op::apply(a[lane], b[lane]);
    blend(dst, values, warp.mask);
  }
  return at + 1;
}

template <class Op, class R, class A, class B = A, class C = A>
const Instruction* ternary(Warp& warp, const Instruction* at) {
  R* dst = row<R>(warp, at->dst);
  const A* a = source<A>(warp, at->a);
  const B* b = source<B>(warp, at->b);
  const C* c = source<C>(warp, at->c);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = Op::apply(a[lane], b[lane], c[lane]);
  } else {
    alignas(kRowAlignment) R values[kLanes];
    SOFTGPU_LANES values[lane] = Op::apply(a[lane], b[lane], c[lane]);
    blend(dst, values, warp.mask);
  }
  return at + 1;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
