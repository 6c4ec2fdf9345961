// Comparisons, predicates and selection in native code: lanes as bits of a mask.
#include <utility>

#include "softgpu/ptx/native/writers.h"

namespace softgpu::ptx::native {
namespace {

// All ones where the comparison, or for `ne`, `le`, `ge` of integers its opposite, holds.
void compare_vectors(VectorCode& vectors, const Step& step, Vector dst, Vector a, Vector b) {
  constexpr VectorOpcode kEqual{1, 1, 0, 0x76}, kGreater{1, 1, 0, 0x66}, kMaximumUnsigned{2, 1, 0, 0x3f};
  constexpr VectorOpcode kCompareFloats{1, 0, 0, 0xc2};
  const unsigned which = step.meaning.predicate;
  if (step.meaning.action == Action::kCompareFloat) {
    return vectors.op(kCompareFloats, dst, a, b, static_cast<std::uint8_t>(which));
  }
  if (which < 2) return vectors.op(kEqual, dst, a, b);
  const bool swaps = which == 2 || which == 5;  // a < b is b > a; a >= b is the opposite of that
  if (swaps) std::swap(a, b);
  if (step.meaning.action == Action::kCompareSigned) return vectors.op(kGreater, dst, a, b);
  // For unsigned elements a <= b, the opposite of a > b, is max(a, b) == b.
  vectors.op(kMaximumUnsigned, dst, a, b);
  vectors.op(kEqual, dst, dst, b);
}

}  // namespace

void write_compare(Emission& e, const Step& step) {
  for (int i = 0; i < kParts; ++i) {
    const Vector a = e.registers.in_register(step.at->a, i, kScratch),
                 b = e.registers.in_register(step.at->b, i, kScratch + 1);
    compare_vectors(e.vectors, step, kScratch + 2, a, b);
    e.vectors.signs(i == 0 ? rax : rcx, kScratch + 2);
    if (i == 0) continue;
    e.as.shift_left32(rcx, static_cast<std::uint8_t>(8 * i));
    e.as.op32(Integer::kOr, rax, rcx);
  }
  const unsigned which = step.meaning.predicate;
  bool is_opposite = which == 1 || which == 3 || which == 5;
  if (step.meaning.action == Action::kCompareUnsigned && which >= 2) is_opposite = !is_opposite;
  if (step.meaning.action != Action::kCompareFloat && is_opposite) e.as.not32(rax);
  e.define_mask(step.at->dst);
}

void write_predicate(Emission& e, const Step& step) {
  e.as.load32(rax, row_memory(step.at->a));
  e.as.op32(static_cast<Integer>(step.meaning.predicate), rax, row_memory(step.at->b));
  e.define_mask(step.at->dst);
}

void write_select(Emission& e, const Step& step) {
  constexpr VectorOpcode kBroadcast{2, 1, 0, 0x58}, kAnd{1, 1, 0, 0xdb}, kEqual{1, 1, 0, 0x76}, kBlend{3, 1, 0, 0x4a};
  e.as.move(rax, reinterpret_cast<std::uint64_t>(kLaneBits.bits));
  const int slot = e.registers.take();
  for (int i = 0; i < kParts; ++i) {
    const Memory bits{rax, i * kVectorBytes};
    e.vectors.op(kBroadcast, kScratch, 0, row_memory(step.at->c));
    e.vectors.op(kAnd, kScratch, kScratch, bits);
    e.vectors.op(kEqual, kScratch, kScratch, bits);
    const Vector b = e.registers.in_register(step.at->b, i, kScratch + 1);
    e.vectors.op(kBlend, slot * kParts + i, b, e.registers.source(step.at->a, i), kScratch << 4);
  }
  e.define(step.at->dst, slot);
}

}  // namespace softgpu::ptx::native
