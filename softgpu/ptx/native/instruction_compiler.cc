// The other instructions in native code, row by row.
#include <cstddef>
#include <utility>

#include "softgpu/ptx/native/segment_compiler.h"

namespace softgpu::ptx::native {
namespace {

constexpr VectorOpcode kAddInts{1, 1, 0, 0xfe};
constexpr VectorOpcode kFusedMultiplyAdd{2, 1, 0, 0xb8};  // dst += a * b

// All ones where the comparison, or for `ne`, `le`, `ge` of integers its opposite, holds.
void compare_vectors(Assembler& as, const Step& step, Vector dst, Vector a, Vector b) {
  constexpr VectorOpcode kEqual{1, 1, 0, 0x76}, kGreater{1, 1, 0, 0x66}, kMaximumUnsigned{2, 1, 0, 0x3f};
  constexpr VectorOpcode kCompareFloats{1, 0, 0, 0xc2};
  const unsigned which = step.meaning.predicate;
  if (step.meaning.action == Action::kCompareFloat) {
    return as.vector(kCompareFloats, dst, a, b, static_cast<std::uint8_t>(which));
  }
  if (which < 2) return as.vector(kEqual, dst, a, b);
  const bool swaps = which == 2 || which == 5;  // a < b is b > a; a >= b is the opposite of that
  if (swaps) std::swap(a, b);
  if (step.meaning.action == Action::kCompareSigned) return as.vector(kGreater, dst, a, b);
  // For unsigned elements a <= b, the opposite of a > b, is max(a, b) == b.
  as.vector(kMaximumUnsigned, dst, a, b);
  as.vector(kEqual, dst, dst, b);
}

}  // namespace

// One or two sources of 32-bit elements.
void SegmentCompiler::emit_narrow(const Step& step) {
  std::int32_t a = step.at->a, b = step.at->b;
  const bool is_unary = step.meaning.action == Action::kUnary || step.meaning.action == Action::kMove;
  if (!is_unary && step.meaning.commutes && slot_of(a) < 0) std::swap(a, b);
  const int slot = take_slot(-1, -1);
  for (int i = 0; i < kParts; ++i) {
    const Vector dst = slot * kParts + i;
    if (step.meaning.action == Action::kMove) {
      const VectorSource from = lane_source(a, i);
      from.vector >= 0 ? as_.vector_move(dst, from.vector) : as_.vector_load(dst, from.memory);
    } else if (is_unary) {
      as_.vector(step.meaning.opcode, dst, 0, lane_source(a, i));
    } else {
      as_.vector(step.meaning.opcode, dst, in_register(a, i, kScratch + i), lane_source(b, i));
    }
  }
  define(step.at->dst, slot);
}

// Rows of 64-bit elements stay in the frame.
void SegmentCompiler::emit_wide(const Step& step) {
  const bool is_unary = step.meaning.action == Action::kUnary || step.meaning.action == Action::kMove;
  const Memory a = in_memory(step.at->a), b = is_unary ? a : in_memory(step.at->b);
  for (int i = 0; i < 2 * kParts; ++i) {
    const Vector t = kScratch + i % kParts;
    const std::int32_t part = i * kVectorBytes;
    if (step.meaning.action == Action::kUnary) {
      as_.vector(step.meaning.opcode, t, 0, a + part);
    } else {
      as_.vector_load(t, a + part);
      if (!is_unary) as_.vector(step.meaning.opcode, t, t, b + part);
    }
    as_.vector_store(row_memory(step.at->dst) + part, t);
  }
  forget(step.at->dst);
  changed(step.at->dst);
}

void SegmentCompiler::emit_fused(const Step& step) {
  std::int32_t a = step.at->a, b = step.at->b;
  const std::int32_t c = step.at->c;
  if (step.meaning.bytes == 8) {
    for (int i = 0; i < 2 * kParts; ++i) {
      const Vector x = kScratch + i % 2 * 2, sum = x + 1;
      const std::int32_t part = i * kVectorBytes;
      as_.vector_load(sum, row_memory(c) + part);
      as_.vector_load(x, row_memory(a) + part);
      as_.vector(step.meaning.opcode, sum, x, row_memory(b) + part);
      as_.vector_store(row_memory(step.at->dst) + part, sum);
    }
    forget(step.at->dst);
    return changed(step.at->dst);
  }
  if (slot_of(a) < 0) std::swap(a, b);
  if (step.meaning.action == Action::kMultiplyAdd) {
    const int slot = take_slot(-1, -1);
    for (int i = 0; i < kParts; ++i) {
      const Vector t = kScratch + i;
      as_.vector(step.meaning.opcode, t, in_register(a, i, t), lane_source(b, i));
      as_.vector(kAddInts, slot * kParts + i, t, lane_source(c, i));
    }
    return define(step.at->dst, slot);
  }
  const int held = slot_of(c);
  const bool in_place = held >= 0 && c != a && c != b && (c == step.at->dst || is_dead_behind(c, now_.step));
  const int slot = in_place ? held : take_slot(slot_of(a), slot_of(b));
  for (int i = 0; i < kParts; ++i) {
    const Vector sum = slot * kParts + i;
    const VectorSource addend = lane_source(c, i);
    addend.vector >= 0 ? as_.vector_move(sum, addend.vector) : as_.vector_load(sum, addend.memory);
    const Vector x = in_register(a, i, kScratch + i);
    as_.vector(kFusedMultiplyAdd, sum, x, lane_source(b, i));
  }
  define(step.at->dst, slot);
}

// dst = the value in memory, for all lanes. May clobber rax.
void SegmentCompiler::emit_uniform(const Step& step, Memory value) {
  const std::int32_t row = step.at->dst;
  forget(row);
  if (TrackedPattern* entry = tracked(row)) {
    step.meaning.bytes == 8 ? as_.load(rax, value) : as_.load32(rax, value);
    const Memory at = pattern(*entry);
    as_.store(at + kPatternFirst, rax);
    as_.store(at + kPatternSecond, rax);
    as_.store(at + kPatternStride, 0);
    as_.store(at + kPatternState, 0);
    entry->is_stale = true;
    return;
  }
  as_.vector(step.meaning.bytes == 8 ? VectorOpcode{2, 1, 0, 0x59} : VectorOpcode{2, 1, 0, 0x18}, kScratch, 0, value);
  const std::int32_t vectors = step.meaning.bytes == 8 ? 2 * kParts : kParts;
  for (int i = 0; i < vectors; ++i) as_.vector_store(row_memory(row) + i * kVectorBytes, kScratch);
}

void SegmentCompiler::emit_parameter(const Step& step) {
  as_.load(rax, warp_field(&Warp::parameters));
  emit_uniform(step, {rax, static_cast<std::int32_t>(step.at->immediate)});
}

// mode: 0 %ntid, 1 %ctaid, 2 %nctaid; immediate: the axis.
void SegmentCompiler::emit_special(const Step& step) {
  const auto axis = static_cast<std::int32_t>(step.at->immediate * sizeof(unsigned));
  if (step.at->mode == 1) {
    as_.load(rax, warp_field(&Warp::block));
    return emit_uniform(step, {rax, static_cast<std::int32_t>(offsetof(Block, id)) + axis});
  }
  as_.load(rax, warp_field(&Warp::run));
  as_.load(rax, {rax, offsetof(LaunchState, launch)});
  const std::size_t size = step.at->mode == 0 ? offsetof(Launch, block) : offsetof(Launch, grid);
  emit_uniform(step, {rax, static_cast<std::int32_t>(size) + axis});
}

void SegmentCompiler::emit_thread_index(const Step& step) {
  const Memory ids = warp_field(&Warp::thread_ids);
  as_.load(rax, ids + static_cast<std::int32_t>(step.at->mode * sizeof(void*)));
  const int slot = take_slot(-1, -1);
  for (int i = 0; i < kParts; ++i) as_.vector_load(slot * kParts + i, {rax, i * kVectorBytes});
  define(step.at->dst, slot);
}

// 32-bit elements in, 64-bit elements out.
void SegmentCompiler::emit_widening(const Step& step) {
  constexpr VectorOpcode kSignExtend{2, 1, 0, 0x25}, kZeroExtend{2, 1, 0, 0x35};
  const bool is_signed = step.meaning.predicate != 0;
  const VectorOpcode extend = is_signed ? kSignExtend : kZeroExtend;
  const Action action = step.meaning.action;
  const Memory a = in_memory(step.at->a), b = action == Action::kWiden ? a : in_memory(step.at->b);
  const Memory dst = row_memory(step.at->dst);
  for (int i = 0; i < 2 * kParts; ++i) {
    const Vector x = kScratch + i % 2 * 2, y = x + 1;
    if (action == Action::kShift64) {
      as_.vector(kZeroExtend, y, 0, b + i * kVectorBytes / 2);
      as_.vector_load(x, a + i * kVectorBytes);
    } else {
      as_.vector(extend, x, 0, a + i * kVectorBytes / 2);
      if (action == Action::kMultiplyWide) as_.vector(extend, y, 0, b + i * kVectorBytes / 2);
    }
    if (action != Action::kWiden) as_.vector(step.meaning.opcode, x, x, y);
    as_.vector_store(dst + i * kVectorBytes, x);
  }
  forget(step.at->dst);
  changed(step.at->dst);
}

// 64-bit elements in, their lower halves out.
void SegmentCompiler::emit_narrowing(const Step& step) {
  constexpr VectorOpcode kShuffle{1, 0, 0, 0xc6}, kPermute{3, 1, 1, 0x00};
  const Memory a = in_memory(step.at->a);
  const int slot = take_slot(-1, -1);
  for (int i = 0; i < kParts; ++i) {
    as_.vector_load(kScratch, a + 2 * i * kVectorBytes);
    as_.vector(kShuffle, kScratch, kScratch, a + (2 * i + 1) * kVectorBytes, 0x88);
    as_.vector(kPermute, slot * kParts + i, 0, kScratch, 0xd8);
  }
  define(step.at->dst, slot);
}

// ---- predicates

void SegmentCompiler::emit_compare(const Step& step) {
  for (int i = 0; i < kParts; ++i) {
    const Vector a = in_register(step.at->a, i, kScratch), b = in_register(step.at->b, i, kScratch + 1);
    compare_vectors(as_, step, kScratch + 2, a, b);
    as_.signs(i == 0 ? rax : rcx, kScratch + 2);
    if (i == 0) continue;
    as_.shift_left32(rcx, static_cast<std::uint8_t>(8 * i));
    as_.op32(Integer::kOr, rax, rcx);
  }
  const unsigned which = step.meaning.predicate;
  bool is_opposite = which == 1 || which == 3 || which == 5;
  if (step.meaning.action == Action::kCompareUnsigned && which >= 2) is_opposite = !is_opposite;
  if (step.meaning.action != Action::kCompareFloat && is_opposite) as_.not32(rax);
  define_mask(step.at->dst);
}

void SegmentCompiler::emit_predicate(const Step& step) {
  as_.load32(rax, row_memory(step.at->a));
  as_.op32(static_cast<Integer>(step.meaning.predicate), rax, row_memory(step.at->b));
  define_mask(step.at->dst);
}

void SegmentCompiler::emit_select(const Step& step) {
  constexpr VectorOpcode kBroadcast{2, 1, 0, 0x58}, kAnd{1, 1, 0, 0xdb}, kEqual{1, 1, 0, 0x76}, kBlend{3, 1, 0, 0x4a};
  as_.move(rax, reinterpret_cast<std::uint64_t>(kLaneBits.bits));
  const int slot = take_slot(-1, -1);
  for (int i = 0; i < kParts; ++i) {
    const Memory bits{rax, i * kVectorBytes};
    as_.vector(kBroadcast, kScratch, 0, row_memory(step.at->c));
    as_.vector(kAnd, kScratch, kScratch, bits);
    as_.vector(kEqual, kScratch, kScratch, bits);
    const Vector b = in_register(step.at->b, i, kScratch + 1);
    as_.vector(kBlend, slot * kParts + i, b, lane_source(step.at->a, i), kScratch << 4);
  }
  define(step.at->dst, slot);
}

}  // namespace softgpu::ptx::native
