// The video instructions, scalar and packed, against references.
#include <algorithm>
#include <functional>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

s64 as(bool is_signed, u32 bits, int width = 32) {
  const s64 value = bits & ((u64{1} << width) - 1);
  return is_signed && (value >> (width - 1) & 1) != 0 ? value - (s64{1} << width) : value;
}
s64 limited(s64 value, bool is_signed, int width) {
  const s64 least = is_signed ? -(s64{1} << (width - 1)) : 0;
  return std::clamp(value, least, least + (s64{1} << width) - 1);
}

using Binary = std::function<s64(s64, s64)>;
struct Operation {
  const char* name;
  Binary apply;
};
const Operation kOperations[] = {
    {"vadd", [](s64 a, s64 b) { return a + b; }},
    {"vsub", [](s64 a, s64 b) { return a - b; }},
    {"vabsdiff", [](s64 a, s64 b) { return std::abs(a - b); }},
    {"vmin", [](s64 a, s64 b) { return std::min(a, b); }},
    {"vmax", [](s64 a, s64 b) { return std::max(a, b); }},
};
struct Types {
  const char* spelled;
  bool d, a, b;
};
constexpr Types kTypes[] = {{".s32.s32.s32", true, true, true},
                            {".u32.u32.u32", false, false, false},
                            {".s32.u32.s32", true, false, true},
                            {".u32.s32.u32", false, true, false}};

TEST(VideoOpcodes, WholeWords) {
  for (const Operation& operation : kOperations) {
    for (const Types& types : kTypes) {
      const std::string opcode = operation.name + std::string(types.spelled);
      const auto compute = [&](u32 a, u32 b) { return operation.apply(as(types.a, a), as(types.b, b)); };
      expect_op<u32(u32, u32)>(opcode, [&](u32 a, u32 b) { return static_cast<u32>(compute(a, b)); });
      expect_op<u32(u32, u32)>(opcode + ".sat",
                               [&](u32 a, u32 b) { return static_cast<u32>(limited(compute(a, b), types.d, 32)); });
      const auto second = [&](const char* name, const Binary& apply) {
        expect_op<u32(u32, u32, u32)>(opcode + "." + name, [&](u32 a, u32 b, u32 c) {
          return static_cast<u32>(apply(as(types.d, static_cast<u32>(compute(a, b))), as(types.d, c)));
        });
      };
      second("add", kOperations[0].apply);
      second("min", kOperations[3].apply);
      second("max", kOperations[4].apply);
    }
  }
}

TEST(VideoOpcodes, SelectBytesAndHalvesAndMergeThem) {
  const std::string opcode = "vadd.s32.s32.u32.sat";
  expect_op<u32(u32, u32)>(
      opcode, [](u32 a, u32 b) { return static_cast<u32>(as(true, a >> 24, 8) + as(false, b >> 16, 16)); },
      opcode + " %out, %in0.b3, %in1.h1;");
  // A merged result saturates to the byte or half that it replaces.
  expect_op<u32(u32, u32, u32)>(
      opcode,
      [](u32 a, u32 b, u32 c) {
        const s64 sum = limited(as(true, a, 16) + as(false, b >> 8, 8), true, 8);
        return (c & 0xff00ffff) | (static_cast<u32>(sum) & 255) << 16;
      },
      opcode + " %out.b2, %in0.h0, %in1.b1, %in2;");
}

TEST(VideoOpcodes, Shifts) {
  for (const bool left : {true, false}) {
    for (const bool is_signed : {true, false}) {
      for (const bool wraps : {true, false}) {
        const std::string t = is_signed ? "s32" : "u32";
        const std::string opcode =
            std::string(left ? "vshl." : "vshr.") + t + "." + t + ".u32" + (wraps ? ".wrap" : ".clamp");
        expect_op<u32(u32, u32)>(opcode, [=](u32 a, u32 b) {
          const u32 count = wraps ? b & 31 : std::min(b, 32u);
          if (left) return count == 32 ? 0 : a << count;
          return static_cast<u32>(as(is_signed, a) >> count);
        });
      }
    }
  }
}

TEST(VideoOpcodes, Comparisons) {
  const std::pair<const char*, std::function<bool(s64, s64)>> comparisons[] = {
      {"eq", std::equal_to<s64>()},   {"ne", std::not_equal_to<s64>()}, {"lt", std::less<s64>()},
      {"le", std::less_equal<s64>()}, {"gt", std::greater<s64>()},      {"ge", std::greater_equal<s64>()}};
  for (const auto& [name, holds] : comparisons) {
    const auto& test = holds;
    expect_op<u32(u32, u32)>("vset.s32.u32." + std::string(name),
                             [&](u32 a, u32 b) { return test(as(true, a), as(false, b)) ? 1u : 0u; });
    expect_op<u32(u32, u32, u32)>("vset2.u32.u32." + std::string(name) + ".add", [&](u32 a, u32 b, u32 c) {
      return c + (test(a & 0xffff, b & 0xffff) ? 1 : 0) + (test(a >> 16, b >> 16) ? 1 : 0);
    });
  }
}

TEST(VideoOpcodes, MultiplyAddScalesAndNegates) {
  using s128 = __int128;
  const auto product = [](u32 a, u32 b, bool is_signed) { return s128{as(is_signed, a)} * as(is_signed, b); };
  expect_op<u32(u32, u32, u32)>(
      "vmad.s32.s32.s32", [&](u32 a, u32 b, u32 c) { return static_cast<u32>(product(a, b, true) + as(true, c)); });
  expect_op<u32(u32, u32, u32)>("vmad.u32.u32.u32.shr15", [&](u32 a, u32 b, u32 c) {
    return static_cast<u32>((product(a, b, false) + c) >> 15);
  });
  expect_op<u32(u32, u32, u32)>("vmad.s32.s32.s32.sat.shr7", [&](u32 a, u32 b, u32 c) {
    const s128 sum = (product(a, b, true) + as(true, c)) >> 7;
    return static_cast<u32>(static_cast<s32>(std::clamp<s128>(sum, INT32_MIN, INT32_MAX)));
  });
  expect_op<u32(u32, u32, u32)>("vmad.u32.u32.u32.po",
                                [&](u32 a, u32 b, u32 c) { return static_cast<u32>(product(a, b, false) + c + 1); });
  expect_op<u32(u32, u32, u32)>(
      "vmad.s32.s32.s32",
      [&](u32 a, u32 b, u32 c) { return static_cast<u32>(as(true, c) - product(a >> 16, b, true)); },
      "shr.u32 %r0, %in0, 16;\nvmad.s32.s32.s32 %out, -%r0, %in1, %in2;");
  expect_op<u32(u32, u32, u32)>(
      "vmad.s32.s32.s32",
      [&](u32 a, u32 b, u32 c) { return static_cast<u32>(as(true, a & 255, 8) * as(true, b) - as(true, c)); },
      "vmad.s32.s32.s32 %out, %in0.b0, %in1, -%in2;");
}

// Element i of a packed word, computed by `apply`.
u32 per_element(int width, bool is_signed, u32 a, u32 b, const Binary& apply) {
  u32 out = 0;
  for (int i = 0; i < 32; i += width) {
    const u32 field = static_cast<u32>((u64{1} << width) - 1);
    out |= (static_cast<u32>(apply(as(is_signed, a >> i, width), as(is_signed, b >> i, width))) & field) << i;
  }
  return out;
}

TEST(VideoOpcodes, PackedWords) {
  const Operation average{"vavrg", [](s64 a, s64 b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }};
  std::vector<Operation> operations(std::begin(kOperations), std::end(kOperations));
  operations.push_back(average);
  for (const Operation& operation : operations) {
    for (const int width : {16, 8}) {
      for (const bool is_signed : {true, false}) {
        const std::string t = is_signed ? ".s32" : ".u32";
        const std::string opcode = operation.name + std::string(width == 16 ? "2" : "4") + t + t + t;
        expect_op<u32(u32, u32, u32)>(
            opcode, [&](u32 a, u32 b, u32) { return per_element(width, is_signed, a, b, operation.apply); });
        expect_op<u32(u32, u32, u32)>(opcode + ".sat", [&](u32 a, u32 b, u32) {
          return per_element(width, is_signed, a, b,
                             [&](s64 x, s64 y) { return limited(operation.apply(x, y), is_signed, width); });
        });
        expect_op<u32(u32, u32, u32)>(opcode + ".add", [&](u32 a, u32 b, u32 c) {
          per_element(width, is_signed, a, b, [&](s64 x, s64 y) {
            c += static_cast<u32>(operation.apply(x, y));
            return 0;
          });
          return c;
        });
      }
    }
  }
}

TEST(VideoOpcodes, PackedWordsTakeMasksAndSelectors) {
  // Only byte 2 is computed, from byte 1 of a and byte 4, the lowest of b.
  expect_op<u32(u32, u32, u32)>(
      "vadd4.u32.u32.u32", [](u32 a, u32 b, u32 c) { return (c & 0xff00ffff) | (((a >> 8) + b) & 255) << 16; },
      "vadd4.u32.u32.u32 %out.b2, %in0.b3133, %in1.b7477, %in2;");
  expect_op<u32(u32, u32, u32)>(
      "vsub2.s32.s32.s32", [](u32 a, u32 b, u32 c) { return (c & 0xffff0000) | (((a >> 16) - (b & 0xffff)) & 0xffff); },
      "vsub2.s32.s32.s32 %out.h0, %in0.h11, %in1.h22, %in2;");
}

TEST(VideoOpcodes, WrongSelectorsAreRefused) {
  const auto refused = [](const std::string& instruction) {
    return load_error(header() + ".entry k() {\n.reg .b32 %r<4>;\n" + instruction + "\n}\n").message;
  };
  EXPECT_NE(refused("vadd.s32.s32.s32 %r0, %r1.b4, %r2;").find("selector"), std::string::npos);
  EXPECT_NE(refused("vadd2.s32.s32.s32 %r0.h2, %r1, %r2, %r3;").find("selector"), std::string::npos);
  EXPECT_NE(refused("vadd2.s32.s32.s32 %r0, %r1.b10, %r2, %r3;").find("selector"), std::string::npos);
  EXPECT_NE(refused("add.s32 %r0, %r1.b0, %r2;").find("selector"), std::string::npos);
  EXPECT_NE(refused("add.s32 %r0, -%r1, %r2;").find("sign"), std::string::npos);
}

}  // namespace
}  // namespace softgpu::ptx
