// The slow ways of native code, and what the handlers of this instruction set mean to the native compiler.
#include "softgpu/ptx/native/runtime.h"

#include "softgpu/ptx/native/meaning.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using native::Pattern;
using native::PatternState;
using native::SlowCall;
using native::SlowResult;
using native::TrackedRow;

constexpr int kHalf = kLanes / 2;

// Compares in pieces of four with values that advance by four strides: all loads are of pieces as they were written.
template <class T>
Pattern find_pattern(const T* values) {
  const T stride = static_cast<T>(values[1] - values[0]);
  T expected[4], difference[4] = {};
  for (int i = 0; i < 4; ++i) expected[i] = static_cast<T>(stride * static_cast<T>(i));
  for (int lane = 0; lane < kHalf; lane += 4) {
    for (int i = 0; i < 4; ++i) {
      difference[i] |= static_cast<T>(values[lane + i] - values[0]) ^ expected[i];
      difference[i] |= static_cast<T>(values[kHalf + lane + i] - values[kHalf]) ^ expected[i];
    }
    for (int i = 0; i < 4; ++i) expected[i] = static_cast<T>(expected[i] + 4 * stride);
  }
  const T any = difference[0] | difference[1] | difference[2] | difference[3];
  return {values[0], values[kHalf], stride, any == 0 ? PatternState::kKnown : PatternState::kNone};
}

Pattern& look(Warp& warp, const TrackedRow& tracked, Pattern* patterns) {
  Pattern& pattern = patterns[tracked.pattern];
  if (pattern.state == PatternState::kUnknown) {
    pattern = tracked.bytes == 8 ? find_pattern(source<std::uint64_t>(warp, tracked.row))
                                 : find_pattern(source<std::uint32_t>(warp, tracked.row));
  }
  return pattern;
}

template <class T>
void write_pattern(T* out, const Pattern& pattern) {
  const T first = static_cast<T>(pattern.first), second = static_cast<T>(pattern.second);
  const T stride = static_cast<T>(pattern.stride);
  T distance = 0;
  for (int lane = 0; lane < kHalf; ++lane) {
    out[lane] = static_cast<T>(first + distance);
    out[kHalf + lane] = static_cast<T>(second + distance);
    distance = static_cast<T>(distance + stride);
  }
}

void write_row(Warp& warp, const TrackedRow& tracked, const Pattern* patterns) {
  if (tracked.pattern < 0 || !tracked.is_stale) return;
  const Pattern& pattern = patterns[tracked.pattern];
  if (pattern.state != PatternState::kKnown) return;
  if (tracked.bytes == 8) {
    write_pattern(row<std::uint64_t>(warp, tracked.row), pattern);
  } else {
    write_pattern(row<std::uint32_t>(warp, tracked.row), pattern);
  }
}

SlowResult access(Warp& warp, const SlowCall& call, Pattern* patterns) {
  const PatternState before = patterns[call.a.pattern].state;
  if (before == PatternState::kUnknown && look(warp, call.a, patterns).state == PatternState::kKnown) {
    return SlowResult::kAgain;
  }
  write_row(warp, call.a, patterns);
  write_row(warp, call.b, patterns);
  // The handler counts what it moves itself.
  warp.global_bytes -= std::uint64_t{call.global_bytes} * static_cast<unsigned>(__builtin_popcount(warp.mask));
  return call.handler(warp, call.at) == nullptr ? SlowResult::kFault : SlowResult::kDone;
}

void arithmetic(Warp& warp, const SlowCall& call, Pattern* patterns) {
  const Pattern a = look(warp, call.a, patterns);
  const Pattern b = call.b.pattern < 0 ? Pattern{0, 0, 0, PatternState::kKnown} : look(warp, call.b, patterns);
  Pattern& dst = patterns[call.dst.pattern];
  if (a.state == PatternState::kKnown && b.state == PatternState::kKnown) {
    const std::uint64_t sign = call.subtracts ? ~std::uint64_t{0} : 1;
    dst = {a.first + sign * b.first, a.second + sign * b.second, a.stride + sign * b.stride, PatternState::kKnown};
    return;
  }
  write_row(warp, call.a, patterns);
  write_row(warp, call.b, patterns);
  call.handler(warp, call.at);
  dst.state = PatternState::kNone;  // of sums of rows without patterns few have one
}

void materialise(Warp& warp, const SlowCall& call, Pattern* patterns) {
  write_row(warp, call.a, patterns);
}

}  // namespace

void add_native(InstructionSet& set) {
  set.runtime = {access, arithmetic, materialise};
  add_integer_meanings(set.meanings);
  add_bit_meanings(set.meanings);
  add_float_meanings(set.meanings);
  add_compare_meanings(set.meanings);
  add_convert_meanings(set.meanings);
  add_move_meanings(set.meanings);
  add_memory_meanings(set.meanings);
  add_control_meanings(set.meanings);
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
