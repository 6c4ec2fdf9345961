// Logic, shifts and bit fields: and or xor not cnot lop3 shl shr shf prmt bfe bfi bfind bmsk brev popc clz szext
// fns.
#include <algorithm>
#include <type_traits>

#include "softgpu/ptx/ops/integers.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
constexpr u32 kBits = sizeof(T) * 8;

struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  static T apply(T a) {
    return a == 0;
  }
};
// Shifts past the width give zero, or the sign.
struct ShiftLeft {
  template <class T>
  static T apply(T a, u32 count) {
    const T shifted = static_cast<T>(static_cast<u64>(a) << (count & (kBits<T> - 1)));
    return count >= kBits<T> ? T{0} : shifted;
  }
};
struct ShiftLeft32 {
  static u32 apply(u32 a, u32 count) { return count >= 32 ? 0 : a << (count & 31); }
};
struct ShiftRight {
  template <class T>
  static T apply(T a, u32 count) {
    const u32 within = count >= kBits<T> ? kBits<T> - 1 : count;
    const T shifted = static_cast<T>(a >> within);
    return count >= kBits<T> && std::is_unsigned_v<T> ? T{0} : shifted;
  }
};
template <bool kLeft, bool kClamp>
struct FunnelShift {
  static u32 apply(u32 low, u32 high, u32 count) {
    const u32 by = kClamp ? std::min(count, 32u) : count & 31;
    const u64 both = static_cast<u64>(high) << 32 | low;
    return kLeft ? static_cast<u32>((both << by) >> 32) : static_cast<u32>(both >> by);
  }
};
struct PopulationCount {
  template <class T>
  static u32 apply(T a) {
    return static_cast<u32>(sizeof(T) == 8 ? __builtin_popcountll(a) : __builtin_popcount(static_cast<u32>(a)));
  }
};
struct LeadingZeros {
  template <class T>
  static u32 apply(T a) {
    if (a == 0) return kBits<T>;
    return static_cast<u32>(sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz(static_cast<u32>(a)));
  }
};
struct ReverseBits {
  template <class T>
  static T apply(T a) {
    T reversed = 0;
    for (u32 bit = 0; bit < kBits<T>; ++bit) reversed |= static_cast<T>((a >> bit & 1) << (kBits<T> - 1 - bit));
    return reversed;
  }
};
// The position of the highest bit that differs from the sign; all ones when there is none.
template <bool kShiftAmount>
struct FindHighest {
  template <class T>
  static u32 apply(T a) {
    const auto bits = static_cast<Unsigned<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const u32 zeros = LeadingZeros::apply(bits);
    return kShiftAmount ? zeros : kBits<T> - 1 - zeros;
  }
};
struct ExtractField {
  template <class T>
  static T apply(T a, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    if (length == 0) return 0;
    const bool is_negative = std::is_signed_v<T> && (a >> std::min(position + length - 1, kBits<T> - 1) & 1) != 0;
    const auto fill = static_cast<Unsigned<T>>(is_negative ? ~Unsigned<T>{0} : Unsigned<T>{0});
    if (position >= kBits<T>) return static_cast<T>(fill);
    length = std::min(length, kBits<T> - position);
    const auto moved = static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(a) >> position);
    if (length == kBits<T>) return a;
    const auto mask = static_cast<Unsigned<T>>((Unsigned<T>{1} << length) - 1);
    return static_cast<T>((moved & mask) | (fill & ~mask));
  }
};
template <class T>
T insert_field(T field, T base, u32 position, u32 length) {
  position &= 255;
  length &= 255;
  if (length == 0 || position >= kBits<T>) return base;
  length = std::min(length, kBits<T> - position);
  const T ones = length >= kBits<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
  const T mask = static_cast<T>(ones << position);
  return static_cast<T>((base & ~mask) | ((field << position) & mask));
}
template <bool kClamp>
struct BitMask {
  static u32 apply(u32 position, u32 length) {
    if (!kClamp) {
      position &= 31;
      length &= 31;
    }
    if (position >= 32 || length == 0) return 0;
    const u64 ones = length >= 32 ? ~u64{0} : (u64{1} << length) - 1;
    return static_cast<u32>(ones << position);
  }
};

// The low `bits` bits of a, extended with their sign or with zeros. Clamping, 32 bits and more are the whole of a.
template <bool kClamp>
struct SignExtendField {
  template <class T>
  static T apply(T a, u32 bits) {
    if (kClamp && bits >= 32) return a;
    bits &= 31;
    if (bits == 0) return 0;
    const auto shift = 32 - bits;
    return static_cast<T>(static_cast<T>(static_cast<u32>(a) << shift) >> shift);
  }
};

// fns: the position of the |offset|-th set bit of `mask` from `base` upwards, or downwards when offset is negative;
// offset 0 asks for the bit at base itself. All ones when there is none.
struct FindSet {
  static u32 apply(u32 mask, u32 base, u32 offset) {
    const auto wanted = static_cast<std::int32_t>(offset);
    if (base > 31) return ~0u;
    if (wanted == 0) return (mask >> base & 1) != 0 ? base : ~0u;
    std::int64_t left = wanted < 0 ? -std::int64_t{wanted} : wanted;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += wanted < 0 ? -1 : 1) {
      left -= mask >> at & 1;
      if (left == 0) return static_cast<u32>(at);
    }
    return ~0u;
  }
};

// One byte of prmt: `selector` 0-7 picks a byte of the pair, bit 3 replicates its sign.
u32 permute_byte(u64 pair, u32 selector) {
  const u32 byte = static_cast<u32>(pair >> ((selector & 7) * 8)) & 0xff;
  if ((selector & 8) == 0) return byte;
  return (byte & 0x80) != 0 ? 0xff : 0;
}
struct Permute {
  static u32 apply(u32 a, u32 b, u32 selector) {
    const u64 pair = static_cast<u64>(b) << 32 | a;
    u32 result = 0;
    for (int byte = 0; byte < 4; ++byte) result |= permute_byte(pair, selector >> (4 * byte) & 15) << (8 * byte);
    return result;
  }
};

// prmt's named modes, as the selector they stand for; index is the low two bits of c.
constexpr u32 kForward4[] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr u32 kBackward4[] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr u32 kReplicate8[] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr u32 kClampLeft[] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr u32 kClampRight[] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr u32 kReplicate16[] = {0x1010, 0x3232, 0x1010, 0x3232};
template <const u32 (&kSelectors)[4]>
struct PermuteMode {
  static u32 apply(u32 a, u32 b, u32 mode) { return Permute::apply(a, b, kSelectors[mode & 3]); }
};

template <class T>
const Instruction* insert_bits(Warp& warp, const Instruction* at) {
  const T* field = source<T>(warp, at->a);
  const T* base = source<T>(warp, at->b);
  const u32* position = source<u32>(warp, at->c);
  const u32* length = source<u32>(warp, at->d);
  write_lanes<T>(warp, at->dst,
                 [&](int lane) { return insert_field(field[lane], base[lane], position[lane], length[lane]); });
  return at + 1;
}

// lop3: bit (4a + 2b + c) of the table is the result.
const Instruction* logic3(Warp& warp, const Instruction* at) {
  const u32* a = source<u32>(warp, at->a);
  const u32* b = source<u32>(warp, at->b);
  const u32* c = source<u32>(warp, at->c);
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    u32 result = 0;
    for (int term = 0; term < 8; ++term) {
      if ((at->immediate >> term & 1) == 0) continue;
      result |= (term & 4 ? a[lane] : ~a[lane]) & (term & 2 ? b[lane] : ~b[lane]) & (term & 1 ? c[lane] : ~c[lane]);
    }
    return result;
  });
  return at + 1;
}

template <class Op>
const Instruction* predicate_logic(Warp& warp, const Instruction* at) {
  set_predicate(warp, at->dst, Op::apply(predicate(warp, at->a), predicate(warp, at->b)));
  return at + 1;
}
const Instruction* predicate_not(Warp& warp, const Instruction* at) {
  set_predicate(warp, at->dst, ~predicate(warp, at->a));
  return at + 1;
}

template <class Op>
Handler bits_binary(Type type) {
  return with_bits(size_of(type), [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return binary<Op, T, T>;
  });
}
template <class Op>
Handler bits_unary(Type type) {
  return with_bits(size_of(type), [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Op, T, T>;
  });
}
template <class Op>
Handler count_unary(Type type) {
  return with_word(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Op, u32, T>;
  });
}

void decode_logic(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const std::string_view name = decoder.text.opcode();
  if (type == Type::kPred) {
    const Handler handler = name == "and"  ? predicate_logic<And>
                            : name == "or" ? predicate_logic<Or>
                                           : predicate_logic<Xor>;
    return emit_binary(decoder, handler, type, type, type);
  }
  const Handler handler = name == "and"  ? bits_binary<And>(type)
                          : name == "or" ? bits_binary<Or>(type)
                                         : bits_binary<Xor>(type);
  emit_binary(decoder, handler, type, type, type);
}

void decode_not(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (type == Type::kPred) return emit_unary(decoder, predicate_not, type, type);
  const Handler handler = decoder.text.opcode() == "not" ? bits_unary<Not>(type) : bits_unary<LogicalNot>(type);
  emit_unary(decoder, handler, type, type);
}

void decode_logic3(Decoder& decoder) {
  decoder.text.take("b32");
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(5, 5)) return;
  const auto a = decoder.rows.read(operands[1], Type::kU32), b = decoder.rows.read(operands[2], Type::kU32);
  const auto c = decoder.rows.read(operands[3], Type::kU32), dst = decoder.rows.write(operands[0], Type::kU32);
  if (operands[4].kind != ast::Operand::Kind::kInteger) return decoder.text.refuse("the table is not a constant");
  Instruction& instruction = decoder.writer.emit(logic3);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.immediate = static_cast<std::int64_t>(operands[4].bits & 255);
}

void decode_shift(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const Handler handler = with_integer(type, [&](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    if (decoder.text.opcode() == "shr") return binary<ShiftRight, T, T, u32>;
    if constexpr (sizeof(T) == 4) return binary<ShiftLeft32, u32, u32>;
    return binary<ShiftLeft, T, T, u32>;
  });
  emit_binary(decoder, handler, type, type, Type::kU32);
}

void decode_funnel_shift(Decoder& decoder) {
  decoder.text.take("b32");
  const bool left = decoder.text.take("l");
  if (!left && !decoder.text.take("r")) return decoder.text.refuse(".l or .r is missing", LoadError::Kind::kSyntax);
  const bool clamps = decoder.text.take("clamp");
  if (!clamps && !decoder.text.take("wrap"))
    return decoder.text.refuse(".clamp or .wrap is missing", LoadError::Kind::kSyntax);
  const Handler handler =
      left ? (clamps ? ternary<FunnelShift<true, true>, u32, u32> : ternary<FunnelShift<true, false>, u32, u32>)
           : (clamps ? ternary<FunnelShift<false, true>, u32, u32> : ternary<FunnelShift<false, false>, u32, u32>);
  emit_ternary(decoder, handler, Type::kU32, Type::kU32, Type::kU32, Type::kU32);
}

void decode_permute(Decoder& decoder) {
  decoder.text.take("b32");
  Handler handler = ternary<Permute, u32, u32>;
  if (decoder.text.take("f4e")) handler = ternary<PermuteMode<kForward4>, u32, u32>;
  if (decoder.text.take("b4e")) handler = ternary<PermuteMode<kBackward4>, u32, u32>;
  if (decoder.text.take("rc8")) handler = ternary<PermuteMode<kReplicate8>, u32, u32>;
  if (decoder.text.take("ecl")) handler = ternary<PermuteMode<kClampLeft>, u32, u32>;
  if (decoder.text.take("ecr")) handler = ternary<PermuteMode<kClampRight>, u32, u32>;
  if (decoder.text.take("rc16")) handler = ternary<PermuteMode<kReplicate16>, u32, u32>;
  emit_ternary(decoder, handler, Type::kU32, Type::kU32, Type::kU32, Type::kU32);
}

void decode_extract(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const Handler handler = with_word(type, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return ternary<ExtractField, T, T, u32, u32>;
  });
  emit_ternary(decoder, handler, type, type, Type::kU32, Type::kU32);
}

void decode_insert(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  if (!decoder.text.expect_operands(5, 5)) return;
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(operands[1], type), b = decoder.rows.read(operands[2], type);
  const auto c = decoder.rows.read(operands[3], Type::kU32), d = decoder.rows.read(operands[4], Type::kU32);
  const auto dst = decoder.rows.write(operands[0], type);
  const Handler handler = size_of(type) == 4 ? insert_bits<u32> : size_of(type) == 8 ? insert_bits<u64> : nullptr;
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.d = d;
}

void decode_count(Decoder& decoder) {
  const std::string_view name = decoder.text.opcode();
  const Type type = decoder.text.take_type();
  if (name == "brev")
    return emit_unary(decoder, size_of(type) >= 4 ? bits_unary<ReverseBits>(type) : nullptr, type, type);
  Handler handler = nullptr;
  if (name == "bfind") {
    handler =
        decoder.text.take("shiftamt") ? count_unary<FindHighest<true>>(type) : count_unary<FindHighest<false>>(type);
  } else {
    const Type bits = bits_of(type);
    handler = name == "popc" ? count_unary<PopulationCount>(bits) : count_unary<LeadingZeros>(bits);
  }
  emit_unary(decoder, handler, Type::kU32, type);
}

void decode_bit_mask(Decoder& decoder) {
  decoder.text.take("b32");
  const bool clamps = decoder.text.take("clamp");
  if (!clamps && !decoder.text.take("wrap"))
    return decoder.text.refuse(".clamp or .wrap is missing", LoadError::Kind::kSyntax);
  emit_binary(decoder, clamps ? binary<BitMask<true>, u32, u32> : binary<BitMask<false>, u32, u32>, Type::kU32,
              Type::kU32, Type::kU32);
}

void decode_extend(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const bool clamps = decoder.text.take("clamp");
  if (!clamps && !decoder.text.take("wrap"))
    return decoder.text.refuse(".clamp or .wrap is missing", LoadError::Kind::kSyntax);
  Handler handler = nullptr;
  if (type == Type::kU32) {
    handler = clamps ? binary<SignExtendField<true>, u32, u32> : binary<SignExtendField<false>, u32, u32>;
  } else if (type == Type::kS32) {
    using s32 = std::int32_t;
    handler = clamps ? binary<SignExtendField<true>, s32, s32, u32> : binary<SignExtendField<false>, s32, s32, u32>;
  }
  emit_binary(decoder, handler, type, type, Type::kU32);
}

void decode_find_set(Decoder& decoder) {
  decoder.text.take("b32");
  emit_ternary(decoder, ternary<FindSet, u32, u32>, Type::kU32, Type::kU32, Type::kU32, Type::kU32);
}

constexpr Opcode kOpcodes[] = {
    {"and", decode_logic},     {"or", decode_logic},     {"xor", decode_logic},    {"not", decode_not},
    {"cnot", decode_not},      {"lop3", decode_logic3},  {"shl", decode_shift},    {"shr", decode_shift},
    {"prmt", decode_permute},  {"bfe", decode_extract},  {"bfi", decode_insert},   {"bfind", decode_count},
    {"brev", decode_count},    {"popc", decode_count},   {"clz", decode_count},    {"shf", decode_funnel_shift},
    {"bmsk", decode_bit_mask}, {"szext", decode_extend}, {"fns", decode_find_set},
};

}  // namespace

std::span<const Opcode> bit_opcodes() {
  return kOpcodes;
}

void add_bit_meanings(native::Meanings& meanings) {
  using native::Action;
  using native::Integer;
  const auto logic = [&](Handler narrow, Handler wide, std::uint8_t code) {
    meanings[narrow] = {Action::kBinary, 4, true, {1, 1, 0, code}};
    meanings[wide] = {Action::kBinary, 8, true, {1, 1, 0, code}};
  };
  logic(binary<And, u32, u32>, binary<And, std::uint64_t, std::uint64_t>, 0xdb);
  logic(binary<Or, u32, u32>, binary<Or, std::uint64_t, std::uint64_t>, 0xeb);
  logic(binary<Xor, u32, u32>, binary<Xor, std::uint64_t, std::uint64_t>, 0xef);
  meanings[binary<ShiftLeft32, u32, u32>] = {Action::kBinary, 4, false, {2, 1, 0, 0x47}};
  meanings[binary<ShiftRight, u32, u32, u32>] = {Action::kBinary, 4, false, {2, 1, 0, 0x45}};
  meanings[binary<ShiftRight, std::int32_t, std::int32_t, u32>] = {Action::kBinary, 4, false, {2, 1, 0, 0x46}};
  for (const Handler shift :
       {binary<ShiftLeft, std::uint64_t, std::uint64_t, u32>, binary<ShiftLeft, std::int64_t, std::int64_t, u32>}) {
    meanings[shift] = {Action::kShift64, 8, false, {2, 1, 1, 0x47}};
  }
  meanings[binary<ShiftRight, std::uint64_t, std::uint64_t, u32>] = {Action::kShift64, 8, false, {2, 1, 1, 0x45}};
  const auto predicates = [&](Handler handler, Integer operation) {
    meanings[handler] = {Action::kPredicate, 4, true, {}, static_cast<std::uint8_t>(operation)};
  };
  predicates(predicate_logic<And>, Integer::kAnd);
  predicates(predicate_logic<Or>, Integer::kOr);
  predicates(predicate_logic<Xor>, Integer::kXor);
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
