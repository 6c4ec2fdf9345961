// Every integer and bit opcode against a reference.
#include <algorithm>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types
using s128 = __int128;

// The low 128 bits of a * b + c: two 64-bit factors can overflow a signed type.
s128 product(s128 a, s128 b, s128 c = 0) {
  using Wide = unsigned __int128;
  return static_cast<s128>(static_cast<Wide>(a) * static_cast<Wide>(b) + static_cast<Wide>(c));
}

template <class T>
std::string name_of() {
  return std::string(std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}
template <class T>
T wrapped(s128 value) {
  return static_cast<T>(value);
}
template <class T>
T clamped(s128 value) {
  return static_cast<T>(std::clamp<s128>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
void expect_arithmetic() {
  const std::string t = "." + name_of<T>();
  expect_op<T(T, T)>("add" + t, [](T a, T b) { return wrapped<T>(s128{a} + b); });
  expect_op<T(T, T)>("sub" + t, [](T a, T b) { return wrapped<T>(s128{a} - b); });
  expect_op<T(T, T)>("mul.lo" + t, [](T a, T b) { return wrapped<T>(product(a, b)); });
  expect_op<T(T, T)>("mul.hi" + t, [](T a, T b) {
    if constexpr (std::is_signed_v<T>) return wrapped<T>(s128{a} * b >> (8 * sizeof(T)));
    return static_cast<T>(static_cast<unsigned __int128>(a) * b >> (8 * sizeof(T)));
  });
  expect_op<T(T, T, T)>("mad.lo" + t, [](T a, T b, T c) { return wrapped<T>(product(a, b, c)); });
  expect_op<T(T, T, T)>("mad.hi" + t, [](T a, T b, T c) {
    if constexpr (std::is_signed_v<T>) return wrapped<T>((s128{a} * b >> (8 * sizeof(T))) + c);
    return static_cast<T>((static_cast<unsigned __int128>(a) * b >> (8 * sizeof(T))) + c);
  });
  // PTX leaves division by zero open; this is what the hardware does.
  expect_op<T(T, T)>("div" + t, [](T a, T b) { return b == 0 ? static_cast<T>(-1) : wrapped<T>(s128{a} / b); });
  expect_op<T(T, T)>("rem" + t, [](T a, T b) { return b == 0 ? a : wrapped<T>(s128{a} % b); });
  expect_op<T(T, T)>("min" + t, [](T a, T b) { return std::min(a, b); });
  expect_op<T(T, T)>("max" + t, [](T a, T b) { return std::max(a, b); });
  expect_op<T(T, T, T)>("sad" + t,
                        [](T a, T b, T c) { return wrapped<T>(s128{c} + (a < b ? s128{b} - a : s128{a} - b)); });
  if constexpr (std::is_signed_v<T>) {
    expect_op<T(T)>("neg" + t, [](T a) { return wrapped<T>(-s128{a}); });
    expect_op<T(T)>("abs" + t, [](T a) { return wrapped<T>(a < 0 ? -s128{a} : s128{a}); });
  }
}

TEST(IntegerOpcodes, Arithmetic16) {
  expect_arithmetic<s16>();
  expect_arithmetic<u16>();
}
TEST(IntegerOpcodes, Arithmetic32) {
  expect_arithmetic<s32>();
  expect_arithmetic<u32>();
}
TEST(IntegerOpcodes, Arithmetic64) {
  expect_arithmetic<s64>();
  expect_arithmetic<u64>();
}

template <class Wide, class T>
void expect_wide() {
  expect_op<Wide(T, T)>("mul.wide." + name_of<T>(), [](T a, T b) { return static_cast<Wide>(Wide{a} * Wide{b}); });
  expect_op<Wide(T, T, Wide)>("mad.wide." + name_of<T>(),
                              [](T a, T b, Wide c) { return wrapped<Wide>(product(a, b, c)); });
}
TEST(IntegerOpcodes, WideProducts) {
  expect_wide<s32, s16>();
  expect_wide<u32, u16>();
  expect_wide<s64, s32>();
  expect_wide<u64, u32>();
}

TEST(IntegerOpcodes, Saturation) {
  expect_op<s32(s32, s32)>("add.sat.s32", [](s32 a, s32 b) { return clamped<s32>(s128{a} + b); });
  expect_op<s32(s32, s32)>("sub.sat.s32", [](s32 a, s32 b) { return clamped<s32>(s128{a} - b); });
  expect_op<s32(s32, s32, s32)>("mad.hi.sat.s32",
                                [](s32 a, s32 b, s32 c) { return clamped<s32>((s128{a} * b >> 32) + c); });
}

TEST(IntegerOpcodes, Products24) {
  const auto cut_s = [](s32 a) { return s64{static_cast<s32>(static_cast<u32>(a) << 8) >> 8}; };
  const auto cut_u = [](u32 a) { return u64{a & 0xffffff}; };
  expect_op<s32(s32, s32)>("mul24.lo.s32", [&](s32 a, s32 b) { return static_cast<s32>(cut_s(a) * cut_s(b)); });
  expect_op<s32(s32, s32)>("mul24.hi.s32", [&](s32 a, s32 b) { return static_cast<s32>(cut_s(a) * cut_s(b) >> 16); });
  expect_op<u32(u32, u32)>("mul24.lo.u32", [&](u32 a, u32 b) { return static_cast<u32>(cut_u(a) * cut_u(b)); });
  expect_op<u32(u32, u32)>("mul24.hi.u32", [&](u32 a, u32 b) { return static_cast<u32>(cut_u(a) * cut_u(b) >> 16); });
  expect_op<s32(s32, s32, s32)>("mad24.lo.s32",
                                [&](s32 a, s32 b, s32 c) { return static_cast<s32>(cut_s(a) * cut_s(b) + c); });
  expect_op<s32(s32, s32, s32)>("mad24.hi.s32",
                                [&](s32 a, s32 b, s32 c) { return static_cast<s32>((cut_s(a) * cut_s(b) >> 16) + c); });
  expect_op<u32(u32, u32, u32)>("mad24.lo.u32",
                                [&](u32 a, u32 b, u32 c) { return static_cast<u32>(cut_u(a) * cut_u(b) + c); });
  expect_op<u32(u32, u32, u32)>("mad24.hi.u32",
                                [&](u32 a, u32 b, u32 c) { return static_cast<u32>((cut_u(a) * cut_u(b) >> 16) + c); });
}

// A chain: the first instruction makes the carry, the second, of the same opcode's c form, takes it.
template <class T>
void expect_carries() {
  using Wide = unsigned __int128;
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = sizeof(T) * 8;
  const std::string t = "." + name_of<T>(), scratch = kBits == 32 ? "%r" : "%d";
  const auto with = [&](const std::string& first, const std::string& second) {
    return first + " " + scratch + "0, %in0, %in1;\n" + second + " %out, %in2, %in3;";
  };
  const auto carry = [](U a, U b) { return static_cast<U>((Wide{a} + b) >> kBits); };
  const auto borrow = [](U a, U b) { return static_cast<U>(a < b ? 1 : 0); };
  expect_op<T(T, T, T, T)>(
      "add.cc" + t, [&](U a, U b, U c, U d) { return static_cast<T>(c + d + carry(a, b)); },
      with("add.cc" + t, "addc" + t));
  expect_op<T(T, T, T, T)>(
      "addc" + t, [&](U a, U b, U c, U d) { return static_cast<T>(c + d + carry(a, b)); },
      with("add.cc" + t, "addc" + t));
  expect_op<T(T, T, T, T)>(
      "sub.cc" + t, [&](U a, U b, U c, U d) { return static_cast<T>(c - d - borrow(a, b)); },
      with("sub.cc" + t, "subc" + t));
  expect_op<T(T, T, T, T)>(
      "subc" + t, [&](U a, U b, U c, U d) { return static_cast<T>(c - d - borrow(a, b)); },
      with("sub.cc" + t, "subc" + t));
  // addc.cc and subc.cc hand the carry on to a third.
  expect_op<T(T, T, T, T)>(
      "addc.cc" + t, [&](U a, U b, U c, U d) { return static_cast<T>((Wide{c} + d + carry(a, b)) >> kBits); },
      with("add.cc" + t, "addc.cc" + t) + "\naddc" + t + " %out, 0, 0;");
  expect_op<T(T, T, T, T)>(
      "subc.cc" + t, [&](U a, U b, U c, U d) { return static_cast<T>(Wide{c} < Wide{d} + borrow(a, b) ? -1 : 0); },
      with("sub.cc" + t, "subc.cc" + t) + "\nsubc" + t + " %out, 0, 0;");
}

template <class T>
void expect_multiply_carries() {
  using U = std::make_unsigned_t<T>;
  using Wide = unsigned __int128;
  constexpr int kBits = sizeof(T) * 8;
  const std::string t = "." + name_of<T>(), s = kBits == 32 ? "%r" : "%d";
  const auto low = [](T a, T b) { return static_cast<U>(static_cast<U>(a) * static_cast<U>(b)); };
  const auto high = [](T a, T b) {
    if constexpr (std::is_signed_v<T>) return static_cast<U>(s128{a} * b >> kBits);
    return static_cast<U>(static_cast<Wide>(a) * b >> kBits);
  };
  // mad.x.cc makes a carry, addc shows it; madc.x takes the carry of in0 + in2.
  for (const bool is_high : {false, true}) {
    const std::string x = is_high ? ".hi" : ".lo";
    const auto product = [=](T a, T b) { return is_high ? high(a, b) : low(a, b); };
    const auto first_carry = [](T a, T c) {
      return static_cast<U>((Wide{static_cast<U>(a)} + static_cast<U>(c)) >> kBits);
    };
    expect_op<T(T, T, T)>(
        "mad" + x + ".cc" + t,
        [=](T a, T b, T c) { return static_cast<T>((Wide{product(a, b)} + static_cast<U>(c)) >> kBits); },
        "mad" + x + ".cc" + t + " " + s + "0, %in0, %in1, %in2;\naddc" + t + " %out, 0, 0;");
    const std::string start = "add.cc" + t + " " + s + "0, %in0, %in2;\n";
    expect_op<T(T, T, T)>(
        "madc" + x + t,
        [=](T a, T b, T c) { return static_cast<T>(product(a, b) + static_cast<U>(c) + first_carry(a, c)); },
        start + "madc" + x + t + " %out, %in0, %in1, %in2;");
    expect_op<T(T, T, T)>(
        "madc" + x + ".cc" + t,
        [=](T a, T b, T c) {
          return static_cast<T>((Wide{product(a, b)} + static_cast<U>(c) + first_carry(a, c)) >> kBits);
        },
        start + "madc" + x + ".cc" + t + " " + s + "1, %in0, %in1, %in2;\naddc" + t + " %out, 0, 0;");
  }
}

TEST(IntegerOpcodes, CarryChains) {
  expect_carries<u32>();
  expect_carries<s32>();
  expect_carries<u64>();
  expect_carries<s64>();
  expect_multiply_carries<u32>();
  expect_multiply_carries<s32>();
  expect_multiply_carries<u64>();
  expect_multiply_carries<s64>();
}

template <bool kSignedA, bool kSignedB>
s64 dot4(u32 a, u32 b) {
  s64 sum = 0;
  for (int i = 0; i < 4; ++i) {
    const u8 x = static_cast<u8>(a >> 8 * i), y = static_cast<u8>(b >> 8 * i);
    sum += (kSignedA ? static_cast<s8>(x) : s64{x}) * (kSignedB ? static_cast<s8>(y) : s64{y});
  }
  return sum;
}
template <bool kSignedA, bool kSignedB>
s64 dot2(u32 a, u32 b, int first_byte) {
  s64 sum = 0;
  for (int i = 0; i < 2; ++i) {
    const u16 x = static_cast<u16>(a >> 16 * i);
    const u8 y = static_cast<u8>(b >> 8 * (first_byte + i));
    sum += (kSignedA ? static_cast<s16>(x) : s64{x}) * (kSignedB ? static_cast<s8>(y) : s64{y});
  }
  return sum;
}
template <bool kSignedA, bool kSignedB>
void expect_dots() {
  const std::string types = std::string(kSignedA ? ".s32" : ".u32") + (kSignedB ? ".s32" : ".u32");
  expect_op<u32(u32, u32, u32)>(
      "dp4a" + types, [](u32 a, u32 b, u32 c) { return static_cast<u32>(c + dot4<kSignedA, kSignedB>(a, b)); });
  expect_op<u32(u32, u32, u32)>(
      "dp2a.lo" + types, [](u32 a, u32 b, u32 c) { return static_cast<u32>(c + dot2<kSignedA, kSignedB>(a, b, 0)); });
  expect_op<u32(u32, u32, u32)>(
      "dp2a.hi" + types, [](u32 a, u32 b, u32 c) { return static_cast<u32>(c + dot2<kSignedA, kSignedB>(a, b, 2)); });
}
TEST(IntegerOpcodes, DotProducts) {
  expect_dots<true, true>();
  expect_dots<true, false>();
  expect_dots<false, true>();
  expect_dots<false, false>();
}

template <class T>
void expect_logic() {
  const std::string t = ".b" + std::to_string(8 * sizeof(T));
  expect_op<T(T, T)>("and" + t, [](T a, T b) { return static_cast<T>(a & b); });
  expect_op<T(T, T)>("or" + t, [](T a, T b) { return static_cast<T>(a | b); });
  expect_op<T(T, T)>("xor" + t, [](T a, T b) { return static_cast<T>(a ^ b); });
  expect_op<T(T)>("not" + t, [](T a) { return static_cast<T>(~a); });
  expect_op<T(T)>("cnot" + t, [](T a) { return static_cast<T>(a == 0 ? 1 : 0); });
  constexpr u32 kBits = 8 * sizeof(T);
  expect_op<T(T, u32)>("shl" + t, [](T a, u32 b) { return b >= kBits ? T{0} : static_cast<T>(u64{a} << b); });
  for (const char* kind : {".b", ".u"}) {
    expect_op<T(T, u32)>("shr" + std::string(kind) + std::to_string(kBits),
                         [](T a, u32 b) { return b >= kBits ? T{0} : static_cast<T>(a >> b); });
  }
  using S = std::make_signed_t<T>;
  expect_op<S(S, u32)>("shr.s" + std::to_string(kBits),
                       [](S a, u32 b) { return static_cast<S>(s64{a} >> std::min(b, kBits - 1)); });
}
TEST(BitOpcodes, LogicAndShifts) {
  expect_logic<u16>();
  expect_logic<u32>();
  expect_logic<u64>();
  expect_op<bool(bool, bool)>("and.pred", [](bool a, bool b) { return a && b; });
  expect_op<bool(bool, bool)>("or.pred", [](bool a, bool b) { return a || b; });
  expect_op<bool(bool, bool)>("xor.pred", [](bool a, bool b) { return a != b; });
  expect_op<bool(bool)>("not.pred", [](bool a) { return !a; });
}

TEST(BitOpcodes, FunnelShifts) {
  const auto shifted = [](u32 low, u32 high, u32 count, bool left) {
    const u64 both = u64{high} << 32 | low;
    return static_cast<u32>(left ? both << count >> 32 : both >> count);
  };
  const auto expect = [&](const char* opcode, bool left, bool clamps) {
    expect_op<u32(u32, u32, u32)>(opcode, [=](u32 a, u32 b, u32 c) {
      const u32 count = clamps ? std::min(c, 32u) : c & 31;
      return count == 32 ? (left ? a : b) : shifted(a, b, count, left);
    });
  };
  expect("shf.l.wrap.b32", true, false);
  expect("shf.l.clamp.b32", true, true);
  expect("shf.r.wrap.b32", false, false);
  expect("shf.r.clamp.b32", false, true);
}

TEST(BitOpcodes, TernaryLogicFollowsItsTable) {
  for (const u32 table : {0x00u, 0x96u, 0xcau, 0xe8u, 0x80u, 0xffu}) {
    const std::string body = "lop3.b32 %out, %in0, %in1, %in2, " + std::to_string(table) + ";";
    expect_op<u32(u32, u32, u32)>(
        "lop3.b32",
        [=](u32 a, u32 b, u32 c) {
          u32 out = 0;
          for (int i = 0; i < 32; ++i) out |= (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
          return out;
        },
        body);
  }
}

template <class T>
u32 width() {
  return 8 * sizeof(T);
}
template <class T>
void expect_counts() {
  const std::string t = ".b" + std::to_string(8 * sizeof(T));
  expect_op<u32(T)>("popc" + t, [](T a) { return static_cast<u32>(std::popcount(a)); });
  expect_op<u32(T)>("clz" + t, [](T a) { return static_cast<u32>(std::countl_zero(a)); });
  expect_op<T(T)>("brev" + t, [](T a) {
    T out = 0;
    for (u32 i = 0; i < width<T>(); ++i) out |= (a >> i & 1) << (width<T>() - 1 - i);
    return out;
  });
  using S = std::make_signed_t<T>;
  const auto highest = [](T a) { return a == 0 ? ~0u : width<T>() - 1 - static_cast<u32>(std::countl_zero(a)); };
  const auto amount = [=](T a) { return a == 0 ? ~0u : static_cast<u32>(std::countl_zero(a)); };
  const auto magnitude = [](S a) { return static_cast<T>(a < 0 ? ~a : a); };
  const std::string n = std::to_string(8 * sizeof(T));
  expect_op<u32(T)>("bfind.u" + n, highest);
  expect_op<u32(T)>("bfind.shiftamt.u" + n, amount);
  expect_op<u32(S)>("bfind.s" + n, [=](S a) { return highest(magnitude(a)); });
  expect_op<u32(S)>("bfind.shiftamt.s" + n, [=](S a) { return amount(magnitude(a)); });
}
TEST(BitOpcodes, CountsAndSearch) {
  expect_counts<u32>();
  expect_counts<u64>();
  expect_op<u32(u32, u32, s32)>(
      "fns.b32",
      [](u32 mask, u32 base, s32 offset) {
        base &= 31;
        if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
        s64 left = std::abs(s64{offset});
        for (s32 i = static_cast<s32>(base); i >= 0 && i < 32; i += offset < 0 ? -1 : 1) {
          if ((mask >> i & 1) != 0 && --left == 0) return static_cast<u32>(i);
        }
        return ~0u;
      },
      "and.b32 %r0, %in1, 31;\nfns.b32 %out, %in0, %r0, %in2;");
}

template <class T>
void expect_fields() {
  using U = std::make_unsigned_t<T>;
  constexpr u32 kBits = 8 * sizeof(T);
  expect_op<T(T, u32, u32)>("bfe." + name_of<T>(), [](T a, u32 position, u32 length) -> T {
    position &= 255;
    length &= 255;
    T out = 0;
    const u32 last = std::min(position + length - 1, kBits - 1);
    const bool sign = std::is_signed_v<T> && length != 0 && (static_cast<U>(a) >> last & 1) != 0;
    for (u32 i = 0; i < kBits; ++i) {
      const bool inside = i < length && position + i < kBits;
      const bool bit = inside ? (static_cast<U>(a) >> (position + i) & 1) != 0 : sign;
      if (bit) out = static_cast<T>(static_cast<U>(out) | U{1} << i);
    }
    return out;
  });
}
template <class T>
void expect_insertion() {
  constexpr u32 kBits = 8 * sizeof(T);
  expect_op<T(T, T, u32, u32)>("bfi.b" + std::to_string(kBits), [](T field, T base, u32 position, u32 length) {
    position &= 255;
    length &= 255;
    for (u32 i = 0; i < length && position + i < kBits; ++i) {
      const T bit = T{1} << (position + i);
      base = (field >> i & 1) != 0 ? base | bit : base & ~bit;
    }
    return base;
  });
}
TEST(BitOpcodes, Fields) {
  expect_fields<s32>();
  expect_fields<u32>();
  expect_fields<s64>();
  expect_fields<u64>();
  expect_insertion<u32>();
  expect_insertion<u64>();
  expect_op<u32(u32, u32)>("bmsk.clamp.b32", [](u32 a, u32 b) {
    u32 out = 0;
    for (u64 i = a; i < u64{a} + b && i < 32; ++i) out |= 1u << i;
    return out;
  });
  expect_op<u32(u32, u32)>("bmsk.wrap.b32", [](u32 a, u32 b) {
    u32 out = 0;
    for (u32 i = a & 31; i < (a & 31) + (b & 31) && i < 32; ++i) out |= 1u << i;
    return out;
  });
}

TEST(BitOpcodes, SignExtensionOfAField) {
  const auto extend = [](u32 a, u32 bits, bool sign) {
    if (bits == 0) return 0u;
    const u32 kept = (1u << bits) - 1;
    return (a & kept) | (sign && (a >> (bits - 1) & 1) != 0 ? ~kept : 0);
  };
  for (const bool sign : {false, true}) {
    const std::string t = sign ? ".s32" : ".u32";
    expect_op<u32(u32, u32)>("szext.wrap" + t, [=](u32 a, u32 b) { return extend(a, b & 31, sign); });
    expect_op<u32(u32, u32)>("szext.clamp" + t, [=](u32 a, u32 b) { return b >= 32 ? a : extend(a, b, sign); });
  }
}

TEST(BitOpcodes, Permutations) {
  const auto pick = [](u32 a, u32 b, u32 selector) {
    u32 out = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 nibble = selector >> 4 * i & 15;
      u32 byte = static_cast<u32>((u64{b} << 32 | a) >> 8 * (nibble & 7)) & 255;
      if (nibble & 8) byte = byte & 128 ? 255 : 0;
      out |= byte << 8 * i;
    }
    return out;
  };
  expect_op<u32(u32, u32, u32)>("prmt.b32", pick);
  struct Mode {
    const char* opcode;
    u32 selectors[4];
  };
  for (const Mode& mode :
       {Mode{"prmt.b32.f4e", {0x3210, 0x4321, 0x5432, 0x6543}}, Mode{"prmt.b32.b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
        Mode{"prmt.b32.rc8", {0x0000, 0x1111, 0x2222, 0x3333}}, Mode{"prmt.b32.ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
        Mode{"prmt.b32.ecr", {0x0000, 0x1110, 0x2210, 0x3210}},
        Mode{"prmt.b32.rc16", {0x1010, 0x3232, 0x1010, 0x3232}}}) {
    expect_op<u32(u32, u32, u32)>(mode.opcode, [=](u32 a, u32 b, u32 c) { return pick(a, b, mode.selectors[c & 3]); });
  }
}

}  // namespace
}  // namespace softgpu::ptx
