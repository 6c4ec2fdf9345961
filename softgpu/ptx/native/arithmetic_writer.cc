// Arithmetic on rows of numbers in native code.
#include <cstddef>
#include <utility>

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

constexpr VectorOpcode kAddInts{1, 1, 0, 0xfe};
constexpr VectorOpcode kFusedMultiplyAdd{2, 1, 0, 0xb8};  // dst += a * b

}  // namespace

// One or two sources of 32-bit elements.
void write_narrow(Emission& e, const Step& step) {
  std::int32_t a = step.at->a, b = step.at->b;
  const bool is_unary = step.meaning.action == Action::kUnary || step.meaning.action == Action::kMove;
  if (!is_unary && step.meaning.commutes && e.registers.slot_of(a) < 0) std::swap(a, b);
  const int slot = e.registers.take();
  for (int i = 0; i < kParts; ++i) {
    const Vector dst = slot * kParts + i;
    if (step.meaning.action == Action::kMove) {
      e.vectors.copy(dst, e.registers.source(a, i));
    } else if (is_unary) {
      e.vectors.op(step.meaning.opcode, dst, 0, e.registers.source(a, i));
    } else {
      e.vectors.op(step.meaning.opcode, dst, e.registers.in_register(a, i, kScratch + i), e.registers.source(b, i));
    }
  }
  e.define(step.at->dst, slot);
}

// Rows of 64-bit elements stay in the frame.
void write_wide(Emission& e, const Step& step) {
  const bool is_unary = step.meaning.action == Action::kUnary || step.meaning.action == Action::kMove;
  const Memory a = e.registers.in_memory(step.at->a), b = is_unary ? a : e.registers.in_memory(step.at->b);
  for (int i = 0; i < 2 * kParts; ++i) {
    const Vector t = kScratch + i % kParts;
    const std::int32_t part = i * kVectorBytes;
    if (step.meaning.action == Action::kUnary) {
      e.vectors.op(step.meaning.opcode, t, 0, a + part);
    } else {
      e.vectors.load(t, a + part);
      if (!is_unary) e.vectors.op(step.meaning.opcode, t, t, b + part);
    }
    e.vectors.store(row_memory(step.at->dst) + part, t);
  }
  e.define_in_frame(step.at->dst);
}

void write_fused(Emission& e, const Step& step) {
  std::int32_t a = step.at->a, b = step.at->b;
  const std::int32_t c = step.at->c;
  if (step.meaning.bytes == 8) {
    for (int i = 0; i < 2 * kParts; ++i) {
      const Vector x = kScratch + i % 2 * 2, sum = x + 1;
      const std::int32_t part = i * kVectorBytes;
      e.vectors.load(sum, row_memory(c) + part);
      e.vectors.load(x, row_memory(a) + part);
      e.vectors.op(step.meaning.opcode, sum, x, row_memory(b) + part);
      e.vectors.store(row_memory(step.at->dst) + part, sum);
    }
    return e.define_in_frame(step.at->dst);
  }
  if (e.registers.slot_of(a) < 0) std::swap(a, b);
  if (step.meaning.action == Action::kMultiplyAdd) {
    const int slot = e.registers.take();
    for (int i = 0; i < kParts; ++i) {
      const Vector t = kScratch + i;
      e.vectors.op(step.meaning.opcode, t, e.registers.in_register(a, i, t), e.registers.source(b, i));
      e.vectors.op(kAddInts, slot * kParts + i, t, e.registers.source(c, i));
    }
    return e.define(step.at->dst, slot);
  }
  const int held = e.registers.slot_of(c);
  const bool in_place =
      held >= 0 && c != a && c != b && (c == step.at->dst || e.registers.is_dead_behind(c, e.registers.now().step));
  const int slot = in_place ? held : e.registers.take(e.registers.slot_of(a), e.registers.slot_of(b));
  for (int i = 0; i < kParts; ++i) {
    const Vector sum = slot * kParts + i;
    e.vectors.copy(sum, e.registers.source(c, i));
    const Vector x = e.registers.in_register(a, i, kScratch + i);
    e.vectors.op(kFusedMultiplyAdd, sum, x, e.registers.source(b, i));
  }
  e.define(step.at->dst, slot);
}

// 32-bit elements in, 64-bit elements out.
void write_widening(Emission& e, const Step& step) {
  constexpr VectorOpcode kSignExtend{2, 1, 0, 0x25}, kZeroExtend{2, 1, 0, 0x35};
  const bool is_signed = step.meaning.predicate != 0;
  const VectorOpcode extend = is_signed ? kSignExtend : kZeroExtend;
  const Action action = step.meaning.action;
  const Memory a = e.registers.in_memory(step.at->a),
               b = action == Action::kWiden ? a : e.registers.in_memory(step.at->b);
  const Memory dst = row_memory(step.at->dst);
  for (int i = 0; i < 2 * kParts; ++i) {
    const Vector x = kScratch + i % 2 * 2, y = x + 1;
    if (action == Action::kShift64) {
      e.vectors.op(kZeroExtend, y, 0, b + i * kVectorBytes / 2);
      e.vectors.load(x, a + i * kVectorBytes);
    } else {
      e.vectors.op(extend, x, 0, a + i * kVectorBytes / 2);
      if (action == Action::kMultiplyWide) e.vectors.op(extend, y, 0, b + i * kVectorBytes / 2);
    }
    if (action != Action::kWiden) e.vectors.op(step.meaning.opcode, x, x, y);
    e.vectors.store(dst + i * kVectorBytes, x);
  }
  e.define_in_frame(step.at->dst);
}

// 64-bit elements in, their lower halves out.
void write_narrowing(Emission& e, const Step& step) {
  constexpr VectorOpcode kShuffle{1, 0, 0, 0xc6}, kPermute{3, 1, 1, 0x00};
  const Memory a = e.registers.in_memory(step.at->a);
  const int slot = e.registers.take();
  for (int i = 0; i < kParts; ++i) {
    e.vectors.load(kScratch, a + 2 * i * kVectorBytes);
    e.vectors.op(kShuffle, kScratch, kScratch, a + (2 * i + 1) * kVectorBytes, 0x88);
    e.vectors.op(kPermute, slot * kParts + i, 0, kScratch, 0xd8);
  }
  e.define(step.at->dst, slot);
}

}  // namespace softgpu::ptx::native
