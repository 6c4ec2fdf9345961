// Integer and bit instructions against references in C++.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <limits>

#include "softgpu/ptx/ptx_evaluator.h"

namespace softgpu::ptx {
namespace {

using testing::evaluate;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

const std::vector<u32> kLeft{0,   1,          2,          7,          31,         32,         33,         255,
                             256, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, 0x12345678, 0xdeadbeef};
const std::vector<u32> kRight{0, 1,          3,          0xffffffff, 31,         32, 64,         0x80000000,
                              5, 0x7fffffff, 0xffffffff, 2,          0x80000000, 17, 0x87654321, 0};

void expect_u32(const std::string& body, const std::function<u32(u32, u32)>& reference) {
  const auto results = evaluate<u32>(body, kLeft, kRight);
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    EXPECT_EQ(results[i], reference(kLeft[i], kRight[i])) << body << " of " << kLeft[i] << " and " << kRight[i];
  }
}

void expect_u64(const std::string& body, const std::function<u64(u64, u64)>& reference) {
  std::vector<u64> left, right;
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    left.push_back(u64{kLeft[i]} << 32 | kRight[(i + 3) % 16]);
    right.push_back(u64{kRight[i]} << 32 | kLeft[(i + 5) % 16]);
  }
  const auto results = evaluate<u64>(body, left, right);
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(results[i], reference(left[i], right[i])) << body << " of " << left[i] << " and " << right[i];
  }
}

s32 as_signed(u32 value) {
  return static_cast<s32>(value);
}
s64 as_signed(u64 value) {
  return static_cast<s64>(value);
}

TEST(Integer, ArithmeticWraps) {
  expect_u32("add.s32 %out, %in0, %in1;", [](u32 a, u32 b) { return a + b; });
  expect_u32("sub.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return a - b; });
  expect_u32("mul.lo.s32 %out, %in0, %in1;", [](u32 a, u32 b) { return a * b; });
  expect_u32("mad.lo.u32 %out, %in0, %in1, %in0;", [](u32 a, u32 b) { return a * b + a; });
  expect_u32("neg.s32 %out, %in0;", [](u32 a, u32) { return 0 - a; });
  expect_u32("abs.s32 %out, %in0;", [](u32 a, u32) { return as_signed(a) < 0 ? 0 - a : a; });
  expect_u64("add.s64 %out, %in0, %in1;", [](u64 a, u64 b) { return a + b; });
  expect_u64("mul.lo.s64 %out, %in0, %in1;", [](u64 a, u64 b) { return a * b; });
}

TEST(Integer, HighAndWideProducts) {
  expect_u32("mul.hi.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); });
  expect_u32("mul.hi.s32 %out, %in0, %in1;",
             [](u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(s64{as_signed(a)} * as_signed(b)) >> 32); });
  expect_u64("mul.hi.u64 %out, %in0, %in1;",
             [](u64 a, u64 b) { return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64); });
  expect_u64("mul.hi.s64 %out, %in0, %in1;",
             [](u64 a, u64 b) { return static_cast<u64>(static_cast<__int128>(as_signed(a)) * as_signed(b) >> 64); });
  const auto wide = evaluate<s64>("mul.wide.s32 %out, %in0, %in1;", kLeft, kRight);
  const auto mad = evaluate<u64>("mul.wide.u32 %d0, %in0, %in1; mad.wide.u32 %out, %in0, %in1, %d0;", kLeft, kRight);
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    EXPECT_EQ(wide[i], s64{as_signed(kLeft[i])} * as_signed(kRight[i]));
    EXPECT_EQ(mad[i], u64{kLeft[i]} * kRight[i] * 2);
  }
}

TEST(Integer, DivisionByZeroAndOverflowAreDefined) {
  expect_u32("div.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return b == 0 ? ~0u : a / b; });
  expect_u32("rem.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return b == 0 ? a : a % b; });
  expect_u32("div.s32 %out, %in0, %in1;", [](u32 a, u32 b) -> u32 {
    if (b == 0) return ~0u;
    return static_cast<u32>(s64{as_signed(a)} / s64{as_signed(b)});
  });
  expect_u32("rem.s32 %out, %in0, %in1;", [](u32 a, u32 b) -> u32 {
    if (b == 0) return a;
    return static_cast<u32>(s64{as_signed(a)} % s64{as_signed(b)});
  });
  expect_u64("div.s64 %out, %in0, %in1;", [](u64 a, u64 b) -> u64 {
    if (b == 0) return ~u64{0};
    return b == ~u64{0} ? 0 - a : static_cast<u64>(as_signed(a) / as_signed(b));
  });
}

TEST(Integer, SaturationMinimumAndMaximum) {
  expect_u32("add.sat.s32 %out, %in0, %in1;", [](u32 a, u32 b) {
    const s64 sum = s64{as_signed(a)} + as_signed(b);
    return static_cast<u32>(std::clamp<s64>(sum, std::numeric_limits<s32>::min(), std::numeric_limits<s32>::max()));
  });
  expect_u32("sub.sat.s32 %out, %in0, %in1;", [](u32 a, u32 b) {
    const s64 difference = s64{as_signed(a)} - as_signed(b);
    return static_cast<u32>(
        std::clamp<s64>(difference, std::numeric_limits<s32>::min(), std::numeric_limits<s32>::max()));
  });
  expect_u32("min.s32 %out, %in0, %in1;", [](u32 a, u32 b) { return as_signed(a) < as_signed(b) ? a : b; });
  expect_u32("max.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return std::max(a, b); });
  expect_u64("max.s64 %out, %in0, %in1;", [](u64 a, u64 b) { return as_signed(a) > as_signed(b) ? a : b; });
}

TEST(Integer, ShiftsPastTheWidthGiveZeroOrTheSign) {
  expect_u32("shl.b32 %out, %in0, %in1;", [](u32 a, u32 b) { return b > 31 ? 0 : a << b; });
  expect_u32("shr.u32 %out, %in0, %in1;", [](u32 a, u32 b) { return b > 31 ? 0 : a >> b; });
  expect_u32("shr.s32 %out, %in0, %in1;",
             [](u32 a, u32 b) { return static_cast<u32>(as_signed(a) >> std::min(b, 31u)); });
  expect_u64("cvt.u32.u64 %r0, %in1; shl.b64 %out, %in0, %r0;", [](u64 a, u64 b) {
    const auto count = static_cast<u32>(b);
    return count > 63 ? 0 : a << count;
  });
  expect_u64("cvt.u32.u64 %r0, %in1; shr.s64 %out, %in0, %r0;",
             [](u64 a, u64 b) { return static_cast<u64>(as_signed(a) >> std::min(static_cast<u32>(b), 63u)); });
}

TEST(Integer, FunnelShifts) {
  expect_u32("shf.l.wrap.b32 %out, %in0, %in1, 5;", [](u32 a, u32 b) { return b << 5 | a >> 27; });
  expect_u32("shf.r.wrap.b32 %out, %in0, %in1, 37;", [](u32 a, u32 b) { return a >> 5 | b << 27; });
  expect_u32("shf.l.clamp.b32 %out, %in0, %in1, 40;", [](u32 a, u32) { return a; });
  expect_u32("shf.r.clamp.b32 %out, %in0, %in1, 32;", [](u32, u32 b) { return b; });
}

TEST(Integer, LogicAndTables) {
  expect_u32("and.b32 %out, %in0, %in1;", [](u32 a, u32 b) { return a & b; });
  expect_u32("xor.b32 %out, %in0, %in1;", [](u32 a, u32 b) { return a ^ b; });
  expect_u32("not.b32 %out, %in0;", [](u32 a, u32) { return ~a; });
  expect_u32("cnot.b32 %out, %in0;", [](u32 a, u32) { return a == 0 ? 1u : 0u; });
  expect_u32("lop3.b32 %out, %in0, %in1, 12345, 0x96;", [](u32 a, u32 b) { return a ^ b ^ 12345u; });
  expect_u32("lop3.b32 %out, %in0, %in1, 12345, 0xca;", [](u32 a, u32 b) { return (a & b) | (~a & 12345u); });
}

TEST(Integer, BitCountsAndSearch) {
  expect_u32("popc.b32 %out, %in0;", [](u32 a, u32) { return static_cast<u32>(std::popcount(a)); });
  expect_u32("clz.b32 %out, %in0;", [](u32 a, u32) { return static_cast<u32>(std::countl_zero(a)); });
  expect_u32("bfind.u32 %out, %in0;",
             [](u32 a, u32) { return a == 0 ? ~0u : 31u - static_cast<u32>(std::countl_zero(a)); });
  expect_u32("bfind.shiftamt.s32 %out, %in0;", [](u32 a, u32) {
    const u32 bits = as_signed(a) < 0 ? ~a : a;
    return bits == 0 ? ~0u : static_cast<u32>(std::countl_zero(bits));
  });
  expect_u32("brev.b32 %out, %in0;", [](u32 a, u32) {
    u32 reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (a >> i & 1) << (31 - i);
    return reversed;
  });
  expect_u64("clz.b64 %r0, %in0; popc.b64 %r1, %in1; mov.b64 %out, {%r0, %r1};", [](u64 a, u64 b) {
    return static_cast<u64>(std::countl_zero(a)) | static_cast<u64>(std::popcount(b)) << 32;
  });
}

// The definition in the PTX ISA, bit by bit.
u32 extract_reference(u32 a, u32 position, u32 length, bool is_signed) {
  position &= 255;
  length &= 255;
  const u32 sign_at = std::min(position + length - 1, 31u);
  const u32 sign = !is_signed || length == 0 ? 0 : a >> sign_at & 1;
  u32 result = 0;
  for (u32 i = 0; i < 32; ++i) {
    const u32 bit = i < length && position + i <= 31 ? a >> (position + i) & 1 : sign;
    result |= bit << i;
  }
  return result;
}

TEST(Integer, BitFields) {
  for (const u32 position : {0u, 4u, 31u, 32u, 40u}) {
    for (const u32 length : {0u, 1u, 8u, 31u, 32u, 200u}) {
      const std::string tail = ", " + std::to_string(position) + ", " + std::to_string(length) + ";";
      expect_u32("bfe.u32 %out, %in0" + tail,
                 [&](u32 a, u32) { return extract_reference(a, position, length, false); });
      expect_u32("bfe.s32 %out, %in0" + tail, [&](u32 a, u32) { return extract_reference(a, position, length, true); });
      expect_u32("bfi.b32 %out, %in0, %in1" + tail, [&](u32 a, u32 b) {
        for (u32 i = 0; i < length && position + i < 32; ++i) {
          b = (b & ~(1u << (position + i))) | (a >> i & 1) << (position + i);
        }
        return b;
      });
    }
  }
}

TEST(Integer, PermutesBytes) {
  expect_u32("prmt.b32 %out, %in0, %in1, 0x7520;",
             [](u32 a, u32 b) { return (a & 0xff) | (a >> 16 & 0xff) << 8 | (b >> 8 & 0xff) << 16 | (b >> 24) << 24; });
  expect_u32("prmt.b32 %out, %in0, %in1, 0x000b;", [](u32 a, u32) {
    const u32 low = a & 0xff;
    return (as_signed(a) < 0 ? 0xffu : 0u) | low << 8 | low << 16 | low << 24;
  });
  expect_u32("prmt.b32.f4e %out, %in0, %in1, 1;", [](u32 a, u32 b) { return a >> 8 | b << 24; });
}

TEST(Integer, DotProductsAndDifferences) {
  expect_u32("dp4a.s32.u32 %out, %in0, %in1, 7;", [](u32 a, u32 b) {
    u32 sum = 7;
    for (int i = 0; i < 4; ++i) {
      sum += static_cast<u32>(static_cast<std::int8_t>(a >> 8 * i) * static_cast<std::uint8_t>(b >> 8 * i));
    }
    return sum;
  });
  expect_u32("sad.s32 %out, %in0, %in1, 3;",
             [](u32 a, u32 b) { return as_signed(a) < as_signed(b) ? b - a + 3 : a - b + 3; });
  expect_u32("mul24.lo.s32 %out, %in0, %in1;",
             [](u32 a, u32 b) { return static_cast<u32>(s64{as_signed(a << 8) >> 8} * (as_signed(b << 8) >> 8)); });
}

TEST(Integer, CarriesChainOverWords) {
  expect_u64(
      "mov.b64 {%r0, %r1}, %in0; mov.b64 {%r2, %r3}, %in1;\n"
      "add.cc.u32 %r4, %r0, %r2; addc.u32 %r5, %r1, %r3; mov.b64 %out, {%r4, %r5};",
      [](u64 a, u64 b) { return a + b; });
  expect_u64(
      "mov.b64 {%r0, %r1}, %in0; mov.b64 {%r2, %r3}, %in1;\n"
      "sub.cc.u32 %r4, %r0, %r2; subc.u32 %r5, %r1, %r3; mov.b64 %out, {%r4, %r5};",
      [](u64 a, u64 b) { return a - b; });
  expect_u64(  // the low 64 bits of a product, from 32-bit parts
      "mov.b64 {%r0, %r1}, %in0; mov.b64 {%r2, %r3}, %in1;\n"
      "mul.lo.u32 %r4, %r0, %r2; mul.hi.u32 %r5, %r0, %r2;\n"
      "mad.lo.cc.u32 %r5, %r0, %r3, %r5; madc.hi.u32 %r6, %r0, %r3, 0;\n"
      "mad.lo.u32 %r5, %r1, %r2, %r5; mov.b64 %out, {%r4, %r5};",
      [](u64 a, u64 b) { return a * b; });
}

TEST(Integer, NarrowTypes) {
  const auto results = evaluate<u32>(
      "cvt.u16.u32 %h0, %in0; cvt.u16.u32 %h1, %in1; add.s16 %h2, %h0, %h1; mul.lo.s16 %h3, %h0, %h1;\n"
      "mov.b32 %out, {%h2, %h3};",
      kLeft, kRight);
  for (std::size_t i = 0; i < kLeft.size(); ++i) {
    const u32 sum = (kLeft[i] + kRight[i]) & 0xffff, product = (kLeft[i] & 0xffff) * (kRight[i] & 0xffff) & 0xffff;
    EXPECT_EQ(results[i], sum | product << 16);
  }
}

TEST(Integer, ComparisonsCombineWithPredicates) {
  expect_u32("setp.lt.s32 %p0, %in0, %in1; selp.b32 %out, 5, 9, %p0;",
             [](u32 a, u32 b) { return as_signed(a) < as_signed(b) ? 5u : 9u; });
  expect_u32("setp.hi.u32 %p0, %in0, %in1; selp.b32 %out, 5, 9, %p0;", [](u32 a, u32 b) { return a > b ? 5u : 9u; });
  expect_u32(
      "setp.eq.u32 %p0, %in0, 0; setp.ne.and.u32 %p1|%p2, %in1, 0, !%p0; selp.b32 %r0, 1, 0, %p1; selp.b32 %r1, 2, 0, "
      "%p2;"
      "add.u32 %out, %r0, %r1;",
      [](u32 a, u32 b) { return (b != 0 && a != 0 ? 1u : 0u) + (b == 0 && a != 0 ? 2u : 0u); });
  expect_u32("set.ge.u32.s32 %out, %in0, %in1;", [](u32 a, u32 b) { return as_signed(a) >= as_signed(b) ? ~0u : 0u; });
  expect_u32("slct.u32.s32 %out, %in0, %in1, %in1;", [](u32 a, u32 b) { return as_signed(b) >= 0 ? a : b; });
  expect_u32(
      "@%p0 add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %in0, %in1;\nmov.u32 %out, 3;\n@%p1 mov.u32 %out, %in0;\n"
      "@!%p1 mov.u32 %out, %in1;",
      [](u32 a, u32 b) { return a < b ? a : b; });
}

}  // namespace
}  // namespace softgpu::ptx
