// Comparison and selection: setp set selp slct.
#include <cfloat>

#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;

// Ordered comparisons are false for NaN; the ones with a trailing u are true.
struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a < b || a > b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};
struct EqualUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a < b || a > b);
  }
};
struct NotEqualUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a == b);
  }
};
struct LessUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a >= b);
  }
};
struct LessEqualUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a > b);
  }
};
struct GreaterUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a <= b);
  }
};
struct GreaterEqualUnordered {
  template <class T>
  static bool apply(T a, T b) {
    return !(a < b);
  }
};
struct BothNumbers {
  template <class T>
  static bool apply(T a, T b) {
    return a == a && b == b;
  }
};
struct EitherNan {
  template <class T>
  static bool apply(T a, T b) {
    return a != a || b != b;
  }
};

template <class Op, class T>
u32 compare_rows(const T* a, const T* b) {
  // Bytes first: the compiler packs them and takes their sign bits in a few instructions.
  alignas(kRowAlignment) std::uint8_t results[kLanes];
  SOFTGPU_LANES results[lane] = Op::apply(a[lane], b[lane]) ? 0xff : 0;
  u32 mask = 0;
#if defined(__SSE2__)
  typedef char Bytes __attribute__((vector_size(16)));
  mask = static_cast<u32>(__builtin_ia32_pmovmskb128(*reinterpret_cast<const Bytes*>(results)));
  mask |= static_cast<u32>(__builtin_ia32_pmovmskb128(*reinterpret_cast<const Bytes*>(results + 16))) << 16;
#else
  for (int lane = 0; lane < kLanes; ++lane) mask |= static_cast<u32>(results[lane] & 1) << lane;
#endif
  return mask;
}

// mode of setp: how the result combines with predicate c.
enum Combination : std::uint16_t { kPlain, kAnd, kOr, kXor };

u32 combine(u32 result, u32 with, u32 mode) {
  switch (mode) {
    case kAnd: return result & with;
    case kOr: return result | with;
    case kXor: return result ^ with;
    default: return result;
  }
}

template <class Op, class T>
const Instruction* compare(Warp& warp, const Instruction* at) {
  const u32 result = compare_rows<Op>(source<T>(warp, at->a), source<T>(warp, at->b));
  if (at->mode == kPlain && at->d == kNoRow) [[likely]] {
    set_predicate(warp, at->dst, result);
    return at + 1;
  }
  const u32 with = at->mode == kPlain ? 0 : predicate(warp, at->c);
  set_predicate(warp, at->dst, combine(result, with, at->mode));
  if (at->d != kNoRow) set_predicate(warp, at->d, combine(~result, with, at->mode));
  return at + 1;
}

// set: true is all ones for integers and 1.0 for floats; the decoder supplies the value.
template <class T>
const Instruction* select_constant(Warp& warp, const Instruction* at) {
  const u32 chosen = predicate(warp, at->a);
  const T yes = static_cast<T>(at->immediate);
  write_lanes<T>(warp, at->dst, [&](int lane) { return chosen >> lane & 1 ? yes : T{0}; });
  return at + 1;
}

const Instruction* select_pair(Warp& warp, const Instruction* at) {
  const u32 low = predicate(warp, at->a), high = predicate(warp, at->b);
  const auto yes = static_cast<u32>(at->immediate);
  write_lanes<u32>(warp, at->dst,
                   [&](int lane) { return (low >> lane & 1 ? yes : 0) | (high >> lane & 1 ? yes << 16 : 0); });
  return at + 1;
}

const Instruction* copy_predicate(Warp& warp, const Instruction* at) {
  set_predicate(warp, at->dst, predicate(warp, at->a));
  return at + 1;
}

template <class T>
const Instruction* select(Warp& warp, const Instruction* at) {
  const u32 chosen = predicate(warp, at->c);
  T* dst = row<T>(warp, at->dst);
  const T* a = source<T>(warp, at->a);
  const T* b = source<T>(warp, at->b);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = (chosen >> lane) & 1 ? a[lane] : b[lane];
  } else {
    alignas(kRowAlignment) T values[kLanes];
    SOFTGPU_LANES values[lane] = (chosen >> lane) & 1 ? a[lane] : b[lane];
    blend(dst, values, warp.mask);
  }
  return at + 1;
}

template <class T, class C>
struct SelectBySign {
  static T apply(T a, T b, C c) { return c >= C{0} ? a : b; }
};
// A subnormal c of either sign is a zero.
template <class T>
struct SelectByFlushedSign {
  static T apply(T a, T b, float c) { return c > -FLT_MIN ? a : b; }
};

// ---- decoding

template <class T>
Handler compare_handler(int comparison) {
  constexpr Handler kHandlers[] = {
      compare<Equal, T>,
      compare<NotEqual, T>,
      compare<Less, T>,
      compare<LessEqual, T>,
      compare<Greater, T>,
      compare<GreaterEqual, T>,
      compare<EqualUnordered, T>,
      compare<NotEqualUnordered, T>,
      compare<LessUnordered, T>,
      compare<LessEqualUnordered, T>,
      compare<GreaterUnordered, T>,
      compare<GreaterEqualUnordered, T>,
      compare<BothNumbers, T>,
      compare<EitherNan, T>,
  };
  return comparison < 0 ? nullptr : kHandlers[comparison];
}

int take_comparison(Decoder& decoder, Type type) {
  constexpr std::string_view kNames[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                         "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  constexpr std::string_view kUnsignedNames[] = {"", "", "lo", "ls", "hi", "hs"};
  const int known = is_float(type) ? 14 : 6;
  for (int i = 0; i < known; ++i) {
    if (decoder.text.take(kNames[i])) return i;
    if (i < 6 && !is_float(type) && decoder.text.take(kUnsignedNames[i])) return i;
  }
  decoder.text.refuse("the comparison is not supported for the type");
  return -1;
}

Handler typed_compare(Type type, int comparison) {
  if (type == Type::kF16) return compare_handler<_Float16>(comparison);
  if (is_float(type)) {
    return with_float(type, [&](auto tag) { return compare_handler<typename decltype(tag)::type>(comparison); });
  }
  return with_integer(type, [&](auto tag) { return compare_handler<typename decltype(tag)::type>(comparison); });
}

// Halves are compared as f32. kPart: the half of a pair.
template <class Half, int kPart, bool kFlushes>
struct WidenHalf {
  template <class Word>
  static float apply(Word word) {
    const auto half = std::bit_cast<Half>(static_cast<std::uint16_t>(word >> (16 * kPart)));
    if constexpr (std::is_same_v<Half, BFloat16>) {
      return to_float(half);
    } else {
      const auto value = static_cast<float>(half);
      constexpr float kSmallestNormal = 0x1p-14f;
      return kFlushes && __builtin_fabsf(value) < kSmallestNormal ? __builtin_copysignf(0.0f, value) : value;
    }
  }
};

template <class Half, bool kFlushes>
Handler widen_handler(bool is_pair, int part) {
  using u16 = std::uint16_t;
  if (!is_pair) return unary<WidenHalf<Half, 0, kFlushes>, float, u16>;
  return part == 0 ? unary<WidenHalf<Half, 0, kFlushes>, float, u32> : unary<WidenHalf<Half, 1, kFlushes>, float, u32>;
}

std::int32_t widened(Decoder& decoder, Type type, std::int32_t row, int part, bool flushes) {
  const bool is_pair = is_packed_half(type);
  const bool is_bf16 = type == Type::kBf16 || type == Type::kBf16x2;
  return emit_prepared(decoder,
                       is_bf16   ? widen_handler<BFloat16, false>(is_pair, part)
                       : flushes ? widen_handler<_Float16, true>(is_pair, part)
                                 : widen_handler<_Float16, false>(is_pair, part),
                       row);
}

struct FlushSubnormal {
  static float apply(float value) {
    return __builtin_fabsf(value) < FLT_MIN ? __builtin_copysignf(0.0f, value) : value;
  }
};

struct Compared {
  std::int32_t a = kNoRow, b = kNoRow, c = kNoRow;
  std::uint16_t mode = 0;
};

void emit_compare(Decoder& decoder, Handler handler, const Compared& rows, std::int32_t dst, std::int32_t second) {
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.d = second;
  instruction.a = rows.a;
  instruction.b = rows.b;
  instruction.c = rows.c;
  instruction.mode = rows.mode;
}

// The comparison of setp and set, into predicate row `dst`; an optional predicate follows the two operands. Of packed
// pairs the low halves' result goes to `dst`, the high halves' to `second`.
void emit_compare(Decoder& decoder, Type type, std::int32_t dst, std::int32_t second) {
  const bool is_half = size_of(type) == 2 && is_float(type), is_pair = is_packed_half(type);
  const int comparison = take_comparison(decoder, is_pair ? Type::kF16 : type);
  const bool flushes = decoder.text.take("ftz");
  const std::uint16_t mode = decoder.text.take("and")   ? kAnd
                             : decoder.text.take("or")  ? kOr
                             : decoder.text.take("xor") ? kXor
                                                        : kPlain;
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(mode == kPlain ? 3 : 4, mode == kPlain ? 3 : 4)) return;
  const auto a = decoder.rows.read(operands[1], type), b = decoder.rows.read(operands[2], type);
  Compared rows{a, b, mode == kPlain ? kNoRow : decoder.rows.read_predicate(operands[3]), mode};
  if (flushes && type == Type::kF32) {
    rows.a = emit_prepared(decoder, unary<FlushSubnormal, float, float>, a);
    rows.b = emit_prepared(decoder, unary<FlushSubnormal, float, float>, b);
  }
  if (!is_pair && !(is_half && (flushes || type == Type::kBf16))) {
    return emit_compare(decoder, typed_compare(type, comparison), rows, dst, second);
  }
  const Handler handler = typed_compare(Type::kF32, comparison);
  rows.a = widened(decoder, type, a, 0, flushes);
  rows.b = widened(decoder, type, b, 0, flushes);
  if (!is_pair) return emit_compare(decoder, handler, rows, dst, second);
  const Compared high{widened(decoder, type, a, 1, flushes), widened(decoder, type, b, 1, flushes), rows.c, mode};
  // The predicate combined with may be one of the destinations, so both results are kept aside first.
  const auto low_result = decoder.frame.scratch();
  emit_compare(decoder, handler, rows, low_result, kNoRow);
  if (second != kNoRow) emit_compare(decoder, handler, high, second, kNoRow);
  Instruction& move = decoder.writer.emit(copy_predicate);
  move.dst = dst;
  move.a = low_result;
}

void decode_setp(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (decoder.text.operands().empty()) return decoder.text.refuse("it has no operands", LoadError::Kind::kSyntax);
  const ast::Operand& destination = decoder.text.operands()[0];
  emit_compare(decoder, type, decoder.rows.write_predicate(destination), decoder.rows.second_predicate(destination));
}

// set of pairs: 1.0 or 0 in each half, or as an integer type all ones or 0.
void decode_set_pair(Decoder& decoder, Type to, Type from, std::int32_t low) {
  const auto high = decoder.frame.scratch();
  emit_compare(decoder, from, low, high);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  const bool is_known = is_packed_half(to) || to == Type::kU32 || to == Type::kS32;
  Instruction& instruction = decoder.writer.emit(is_known ? select_pair : nullptr);
  instruction.dst = dst;
  instruction.a = low;
  instruction.b = high;
  instruction.immediate = to == Type::kF16x2 ? 0x3c00 : to == Type::kBf16x2 ? 0x3f80 : 0xffff;
}

void decode_set(Decoder& decoder) {
  const Type to = decoder.text.take_type();
  const Type from = decoder.text.take_type();
  if (decoder.text.operands().empty()) return decoder.text.refuse("it has no operands", LoadError::Kind::kSyntax);
  const auto result = decoder.frame.scratch();
  if (is_packed_half(from)) return decode_set_pair(decoder, to, from, result);
  emit_compare(decoder, from, result, kNoRow);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], to);
  const std::int64_t one = to == Type::kF32 ? 0x3f800000 : to == Type::kF16 ? 0x3c00 : to == Type::kBf16 ? 0x3f80 : -1;
  Instruction& instruction = decoder.writer.emit(
      with_bits(size_of(to), [](auto tag) -> Handler { return select_constant<typename decltype(tag)::type>; }));
  instruction.dst = dst;
  instruction.a = result;
  instruction.immediate = one;
}

void decode_selp(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const Handler handler =
      with_bits(size_of(type), [](auto tag) -> Handler { return select<typename decltype(tag)::type>; });
  emit_ternary(decoder, handler, type, type, type, Type::kPred);
}

void decode_slct(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const Type sign = decoder.text.take_type();
  const bool flushes = decoder.text.take("ftz");
  const Handler handler = with_bits(size_of(type), [&](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    if (sign == Type::kS32) return ternary<SelectBySign<T, std::int32_t>, T, T, T, std::int32_t>;
    if (sign == Type::kF32 && flushes) return ternary<SelectByFlushedSign<T>, T, T, T, float>;
    if (sign == Type::kF32) return ternary<SelectBySign<T, float>, T, T, T, float>;
    return nullptr;
  });
  emit_ternary(decoder, handler, type, type, type, sign);
}

constexpr Opcode kOpcodes[] = {
    {"setp", decode_setp}, {"set", decode_set}, {"selp", decode_selp}, {"slct", decode_slct}};

}  // namespace

std::span<const Opcode> compare_opcodes() {
  return kOpcodes;
}

void add_compare_meanings(native::Meanings& meanings) {
  using native::Action;
  // vcmpps predicates that raise nothing, in the order of the handlers.
  constexpr std::uint8_t kPredicates[] = {0x00, 0x0c, 0x11, 0x12, 0x1e, 0x1d, 0x08, 0x04, 0x19, 0x1a, 0x16, 0x15, 7, 3};
  for (int i = 0; i < 14; ++i) {
    meanings[compare_handler<float>(i)] = {Action::kCompareFloat, 4, false, {}, kPredicates[i]};
    if (i >= 6) continue;
    const auto number = static_cast<std::uint8_t>(i);
    meanings[compare_handler<std::int32_t>(i)] = {Action::kCompareSigned, 4, false, {}, number};
    meanings[compare_handler<std::uint32_t>(i)] = {Action::kCompareUnsigned, 4, false, {}, number};
  }
  meanings[select<std::uint32_t>] = {Action::kSelect, 4};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
