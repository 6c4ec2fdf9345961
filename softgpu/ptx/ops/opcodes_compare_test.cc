// setp, set, selp, slct and mov against references.
#include <functional>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

// name -> whether it holds, from how two values compare: less, equal, greater or unordered.
struct Comparison {
  const char* name;
  bool less, equal, greater, unordered;
};
constexpr Comparison kOrdered[] = {{"eq", false, true, false, false}, {"ne", true, false, true, false},
                                   {"lt", true, false, false, false}, {"le", true, true, false, false},
                                   {"gt", false, false, true, false}, {"ge", false, true, true, false}};
constexpr Comparison kUnordered[] = {{"equ", false, true, false, true}, {"neu", true, false, true, true},
                                     {"ltu", true, false, false, true}, {"leu", true, true, false, true},
                                     {"gtu", false, false, true, true}, {"geu", false, true, true, true},
                                     {"num", true, true, true, false},  {"nan", false, false, false, true}};
constexpr Comparison kUnsigned[] = {{"lo", true, false, false, false},
                                    {"ls", true, true, false, false},
                                    {"hi", false, false, true, false},
                                    {"hs", false, true, true, false}};

template <class T>
auto plain(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return value.value();
  }
}
template <class T>
bool holds(const Comparison& comparison, T a, T b) {
  const auto x = plain(a), y = plain(b);
  return x < y ? comparison.less : x == y ? comparison.equal : x > y ? comparison.greater : comparison.unordered;
}

template <class T, std::size_t kCount>
void expect_comparisons(const std::string& type, const Comparison (&comparisons)[kCount]) {
  for (const Comparison& comparison : comparisons) {
    expect_op<bool(T, T)>("setp." + std::string(comparison.name) + "." + type,
                          [&](T a, T b) { return holds(comparison, a, b); });
  }
}

TEST(CompareOpcodes, Integers) {
  expect_comparisons<s16>("s16", kOrdered);
  expect_comparisons<u16>("u16", kOrdered);
  expect_comparisons<s32>("s32", kOrdered);
  expect_comparisons<u32>("u32", kOrdered);
  expect_comparisons<s64>("s64", kOrdered);
  expect_comparisons<u64>("u64", kOrdered);
  expect_comparisons<u16>("u16", kUnsigned);
  expect_comparisons<u32>("u32", kUnsigned);
  expect_comparisons<u64>("u64", kUnsigned);
  for (const Comparison& comparison : {kOrdered[0], kOrdered[1]}) {
    const std::string name = "setp." + std::string(comparison.name);
    expect_op<bool(u16, u16)>(name + ".b16", [&](u16 a, u16 b) { return holds(comparison, a, b); });
    expect_op<bool(u32, u32)>(name + ".b32", [&](u32 a, u32 b) { return holds(comparison, a, b); });
    expect_op<bool(u64, u64)>(name + ".b64", [&](u64 a, u64 b) { return holds(comparison, a, b); });
  }
}

float flushed(float a) {
  return std::fabs(a) < std::numeric_limits<float>::min() ? std::copysign(0.0f, a) : a;
}

TEST(CompareOpcodes, FloatsAndNaN) {
  expect_comparisons<float>("f32", kOrdered);
  expect_comparisons<float>("f32", kUnordered);
  expect_comparisons<double>("f64", kOrdered);
  expect_comparisons<double>("f64", kUnordered);
  expect_comparisons<f16>("f16", kOrdered);
  expect_comparisons<f16>("f16", kUnordered);
  expect_comparisons<bf16>("bf16", kOrdered);
  expect_comparisons<bf16>("bf16", kUnordered);
  for (const Comparison& comparison : kOrdered) {
    expect_op<bool(float, float)>("setp." + std::string(comparison.name) + ".ftz.f32",
                                  [&](float a, float b) { return holds(comparison, flushed(a), flushed(b)); });
  }
}

template <class Half>
void expect_pair_comparisons(const std::string& type) {
  using P = Pair<Half>;
  for (const Comparison& comparison : kOrdered) {
    const std::string opcode = "setp." + std::string(comparison.name) + "." + type;
    expect_op<u32(P, P)>(
        opcode,
        [&](P a, P b) {
          return (holds(comparison, a.low, b.low) ? 1u : 0u) | (holds(comparison, a.high, b.high) ? 2u : 0u);
        },
        opcode + " %p0|%p1, %in0, %in1;\nselp.b32 %r0, 1, 0, %p0;\nselp.b32 %r1, 2, 0, %p1;\nor.b32 %out, %r0, %r1;");
  }
}
TEST(CompareOpcodes, PairsOfHalves) {
  expect_pair_comparisons<f16>("f16x2");
  expect_pair_comparisons<bf16>("bf16x2");
}

TEST(CompareOpcodes, CombineWithAPredicateAndGiveTheComplement) {
  struct Combination {
    const char* name;
    std::function<bool(bool, bool)> apply;
  };
  for (const Combination& with : {Combination{"and", [](bool a, bool b) { return a && b; }},
                                  Combination{"or", [](bool a, bool b) { return a || b; }},
                                  Combination{"xor", [](bool a, bool b) { return a != b; }}}) {
    const std::string opcode = "setp.lt." + std::string(with.name) + ".s32";
    expect_op<u32(s32, s32, u32)>(
        opcode,
        [&](s32 a, s32 b, u32 c) {
          return (with.apply(a<b, c> 7) ? 1u : 0u) | (with.apply(!(a < b), c > 7) ? 2u : 0u);
        },
        "setp.gt.u32 %p2, %in2, 7;\n" + opcode +
            " %p0|%p1, %in0, %in1, %p2;\nselp.b32 %r0, 1, 0, %p0;\nselp.b32 %r1, 2, 0, %p1;\nor.b32 %out, %r0, %r1;");
  }
}

TEST(CompareOpcodes, SetGivesOnesOrOnePointZero) {
  for (const Comparison& comparison : kOrdered) {
    const std::string c = "set." + std::string(comparison.name);
    expect_op<u32(s32, s32)>(c + ".u32.s32", [&](s32 a, s32 b) { return holds(comparison, a, b) ? ~0u : 0u; });
    expect_op<float(s32, s32)>(c + ".f32.s32", [&](s32 a, s32 b) { return holds(comparison, a, b) ? 1.0f : 0.0f; });
    expect_op<u32(float, float)>(c + ".u32.f32", [&](float a, float b) { return holds(comparison, a, b) ? ~0u : 0u; });
    expect_op<float(float, float)>(c + ".f32.f32",
                                   [&](float a, float b) { return holds(comparison, a, b) ? 1.0f : 0.0f; });
    expect_op<u32(f16, f16)>(c + ".u32.f16", [&](f16 a, f16 b) { return holds(comparison, a, b) ? ~0u : 0u; });
    expect_op<u16(f16, f16)>(c + ".f16.f16",
                             [&](f16 a, f16 b) { return static_cast<u16>(holds(comparison, a, b) ? 0x3c00 : 0); });
    expect_op<u16(bf16, bf16)>(c + ".bf16.bf16",
                               [&](bf16 a, bf16 b) { return static_cast<u16>(holds(comparison, a, b) ? 0x3f80 : 0); });
    const auto pair = [&](auto a, auto b, u32 yes) {
      return (holds(comparison, a.low, b.low) ? yes : 0) | (holds(comparison, a.high, b.high) ? yes << 16 : 0);
    };
    expect_op<u32(f16x2, f16x2)>(c + ".f16x2.f16x2", [&](f16x2 a, f16x2 b) { return pair(a, b, 0x3c00); });
    expect_op<u32(bf16x2, bf16x2)>(c + ".bf16x2.bf16x2", [&](bf16x2 a, bf16x2 b) { return pair(a, b, 0x3f80); });
    expect_op<u32(f16x2, f16x2)>(c + ".u32.f16x2", [&](f16x2 a, f16x2 b) { return pair(a, b, 0xffff); });
  }
}

template <class T>
void expect_selections(const std::string& suffix) {
  expect_op<T(T, T, bool)>("selp." + suffix, [](T a, T b, bool c) { return c ? a : b; });
  expect_op<T(T, T, s32)>("slct." + suffix + ".s32", [](T a, T b, s32 c) { return c >= 0 ? a : b; });
  expect_op<T(T, T, float)>("slct." + suffix + ".f32", [](T a, T b, float c) { return c >= 0 ? a : b; });
}
TEST(CompareOpcodes, Selections) {
  for (const char* kind : {"b", "u", "s"}) {
    expect_selections<u16>(kind + std::string("16"));
    expect_selections<u32>(kind + std::string("32"));
    expect_selections<u64>(kind + std::string("64"));
  }
  expect_selections<float>("f32");
  expect_selections<double>("f64");
}

template <class T>
void expect_moves(std::initializer_list<const char*> types) {
  for (const char* type : types) expect_op<T(T)>("mov." + std::string(type), [](T a) { return a; });
}
TEST(MoveOpcodes, CopyPackAndUnpack) {
  expect_moves<u16>({"b16", "u16", "s16"});
  expect_moves<u32>({"b32", "u32", "s32"});
  expect_moves<u64>({"b64", "u64", "s64"});
  expect_moves<float>({"f32"});
  expect_moves<double>({"f64"});
  expect_op<bool(bool)>("mov.pred", [](bool a) { return a; });
  expect_op<u64(u32, u32)>(
      "mov.b64", [](u32 a, u32 b) { return u64{b} << 32 | a; }, "mov.b64 %out, {%in0, %in1};");
  expect_op<u32(u64)>(
      "mov.b64", [](u64 a) { return static_cast<u32>(a) ^ static_cast<u32>(a >> 32); },
      "mov.b64 {%r0, %r1}, %in0;\nxor.b32 %out, %r0, %r1;");
  expect_op<u32(u16, u16)>(
      "mov.b32", [](u16 a, u16 b) { return u32{b} << 16 | a; }, "mov.b32 %out, {%in0, %in1};");
  expect_op<u64(u64, u64)>(
      "mov.b128", [](u64 a, u64 b) { return a - b; },
      "mov.b128 %q0, {%in0, %in1};\nmov.b128 %q1, %q0;\nmov.b128 {%d0, %d1}, %q1;\nsub.u64 %out, %d0, %d1;");
}

TEST(MoveOpcodes, A128BitMoveMaySwapItsHalves) {
  expect_op<u64(u64, u64)>(
      "mov.b128", [](u64 a, u64 b) { return b - a; },
      "mov.b64 %d0, %in0;\nmov.b64 %d1, %in1;\nmov.b128 %q0, {%d0, %d1};\n"
      "mov.b128 {%d1, %d0}, %q0;\nsub.u64 %out, %d0, %d1;");
}

}  // namespace
}  // namespace softgpu::ptx
