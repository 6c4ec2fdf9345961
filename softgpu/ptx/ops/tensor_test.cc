// mma.sync, wmma, ldmatrix, stmatrix and movmatrix: fragments are laid out and read back by the tables of the PTX ISA,
// written here once more and independently, and the product is compared with three loops.
#include <functional>
#include <numeric>

#include "softgpu/ptx/opcode_test.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types

using Matrix = std::vector<std::vector<double>>;

Matrix filled(int rows, int columns, const std::function<double(int, int)>& value) {
  Matrix out(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) out[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = value(r, c);
  }
  return out;
}
double at(const Matrix& matrix, int r, int c) {
  return matrix[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)];
}

// How a type is spelled, its bits, and its values to and from bits.
struct ElementType {
  const char* name;
  int bits;
  std::function<u64(double)> encode;
  std::function<double(u64)> decode;
};
const ElementType kF16{"f16", 16, [](double v) { return u64{f16::from(v).bits}; },
                       [](u64 b) { return f16{static_cast<u16>(b)}.value(); }};
const ElementType kBf16{"bf16", 16, [](double v) { return u64{bf16::from(v).bits}; },
                        [](u64 b) { return bf16{static_cast<u16>(b)}.value(); }};
const ElementType kF32{"f32", 32, [](double v) { return u64{std::bit_cast<u32>(static_cast<float>(v))}; },
                       [](u64 b) { return double{std::bit_cast<float>(static_cast<u32>(b))}; }};
const ElementType kTf32{"tf32", 32, kF32.encode, kF32.decode};
const ElementType kF64{"f64", 64, [](double v) { return std::bit_cast<u64>(v); },
                       [](u64 b) { return std::bit_cast<double>(b); }};
const ElementType kS32{"s32", 32, [](double v) { return u64{static_cast<u32>(static_cast<s64>(v))}; },
                       [](u64 b) { return static_cast<double>(static_cast<s32>(static_cast<u32>(b))); }};
ElementType integer(const char* name, int bits, bool is_signed) {
  return {name, bits, [=](double v) { return static_cast<u64>(static_cast<s64>(v)) & ((u64{1} << bits) - 1); },
          [=](u64 b) {
            const auto value = static_cast<s64>(b);
            return static_cast<double>(is_signed && (value >> (bits - 1) & 1) != 0 ? value - (s64{1} << bits) : value);
          }};
}
const ElementType kS8 = integer("s8", 8, true), kU8 = integer("u8", 8, false);
const ElementType kS4 = integer("s4", 4, true), kU4 = integer("u4", 4, false);
const ElementType kB1 = integer("b1", 1, false);
double from_e4m3(u64 code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  return ((code & 128) != 0 ? -1 : 1) *
         (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10));
}
u64 to_small(double value, const std::function<double(u64)>& decode) {
  for (u64 code = 0; code < 256; ++code) {
    if (decode(code) == value) return code;
  }
  return 0;
}
const ElementType kE4m3{"e4m3", 8, [](double v) { return to_small(v, from_e4m3); }, from_e4m3};
double from_e5m2(u64 code) {
  return f16{static_cast<u16>(code << 8)}.value();
}
const ElementType kE5m2{"e5m2", 8, [](double v) { return to_small(v, from_e5m2); }, from_e5m2};

// The PTX ISA's tables: row and column of the element of `lane` that is number `e` of its fragment.
struct At {
  int row, column;
};
At place_a(int m, const ElementType& type, int lane, int e) {
  const int group = lane >> 2, in_group = lane % 4;
  const int p = std::max(32 / type.bits, 1), i = e / p;
  if (m == 8) return {group, in_group * p + e};
  return {i % 2 == 0 ? group : group + 8, in_group * p + e % p + (i < 2 ? 0 : i < 4 ? 4 * p : i < 6 ? 8 * p : 12 * p)};
}
At place_b(const ElementType& type, int lane, int e) {
  const int p = std::max(32 / type.bits, 1);
  return {lane % 4 * p + e % p + e / p * 4 * p, lane >> 2};
}
At place_c(int lane, int e) {
  return {e < 2 ? lane >> 2 : (lane >> 2) + 8, lane % 4 * 2 + (e & 1)};
}

// A fragment's registers: `words` per lane, of 32 bits (of f64 64).
std::vector<u64> fragment(const Matrix& matrix, const ElementType& type, int words,
                          const std::function<At(int, int)>& place) {
  const int p = std::max(32 / type.bits, 1);
  std::vector<u64> out(static_cast<std::size_t>(32 * words));
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < words * p; ++e) {
      const At where = place(lane, e);
      out[static_cast<std::size_t>(lane * words + e / p)] |= type.encode(at(matrix, where.row, where.column))
                                                             << (e % p * type.bits);
    }
  }
  return out;
}

std::string registers(const std::string& prefix, int count) {
  std::string out = "{";
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ", ") + prefix + std::to_string(i);
  return out + "}";
}

struct Product {
  const char* shape;
  int m, n, k;
  ElementType d, a, b, c;
  std::string suffix;
};

// One warp loads the fragments word by word, multiplies, and stores D's.
std::vector<u64> run_product(const Product& product, const std::string& opcode, const std::vector<u64>& a,
                             const std::vector<u64>& b, const std::vector<u64>& c, int d_words) {
  const auto words = [](const std::vector<u64>& values) { return static_cast<int>(values.size() / 32); };
  const auto width = [](const ElementType& type) { return type.bits == 64 ? std::string("b64") : std::string("b32"); };
  std::string text = header() +
                     ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n"
                     ".reg .b32 %t; .reg .b64 %p, %o;\nmov.u32 %t, %laneid;\n";
  const auto load = [&](const std::string& name, const ElementType& type, int count) {
    text += ".reg ." + width(type) + " %" + name + "<" + std::to_string(count) + ">;\nld.param.u64 %p, [p" + name +
            "];\nmul.wide.u32 %o, %t, " + std::to_string(8 * count) + ";\nadd.u64 %p, %p, %o;\n";
    for (int i = 0; i < count && name != "d"; ++i) {
      text += "ld.global." + width(type) + " %" + name + std::to_string(i) + ", [%p+" + std::to_string(8 * i) + "];\n";
    }
  };
  load("a", product.a, words(a));
  load("b", product.b, words(b));
  load("c", product.c, words(c));
  load("d", product.d, d_words);
  text += opcode + " " + registers("%d", d_words) + ", " + registers("%a", words(a)) + ", " +
          registers("%b", words(b)) + ", " + registers("%c", words(c)) + ";\n";
  for (int i = 0; i < d_words; ++i) {
    text += "st.global." + width(product.d) + " [%p+" + std::to_string(8 * i) + "], %d" + std::to_string(i) + ";\n";
  }
  text += "ret;\n}\n";
  TestDevice device;
  const auto module = load_or_fail(covers(text, {opcode}), device);
  if (module == nullptr) return {};
  const u64 d = device.upload(std::vector<u64>(static_cast<std::size_t>(32 * d_words)));
  const Outcome outcome =
      run_kernel(*module, device, "k", {1}, {32}, device.upload(a), device.upload(b), device.upload(c), d);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<u64>(d, static_cast<std::size_t>(32 * d_words));
}

// Small whole numbers, exact in every type, so the order of sums does not matter.
double small(const ElementType& type, int r, int c) {
  const int value = (r * 7 + c * 5) % 8;
  if (type.bits == 1) return (r * 3 + c) % 5 < 2 ? 1 : 0;
  const bool is_unsigned = type.name[0] == 'u';
  return is_unsigned ? value : value - 4;
}

void expect_product(const Product& product, const std::string& opcode,
                    const std::function<double(double, double)>& times) {
  const Matrix a = filled(product.m, product.k, [&](int r, int c) { return small(product.a, r, c); });
  const Matrix b = filled(product.k, product.n, [&](int r, int c) { return small(product.b, c, r + 1); });
  const Matrix c = filled(product.m, product.n, [](int r, int col) { return r - 2 * col; });
  const auto words = [](int elements, const ElementType& type) { return elements / 32 / std::max(32 / type.bits, 1); };
  const int d_words = words(product.m * product.n, product.d);
  const auto result = run_product(product, opcode,
                                  fragment(a, product.a, words(product.m * product.k, product.a),
                                           [&](int lane, int e) { return place_a(product.m, product.a, lane, e); }),
                                  fragment(b, product.b, words(product.k * product.n, product.b),
                                           [&](int lane, int e) { return place_b(product.b, lane, e); }),
                                  fragment(c, product.c, words(product.m * product.n, product.c), place_c), d_words);
  if (result.empty()) return;
  const int p = std::max(32 / product.d.bits, 1);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < d_words * p; ++e) {
      const At where = place_c(lane, e);
      double sum = at(c, where.row, where.column);
      for (int k = 0; k < product.k; ++k) sum += times(at(a, where.row, k), at(b, k, where.column));
      const u64 word = result[static_cast<std::size_t>(lane * d_words + e / p)];
      const u64 mask = product.d.bits == 64 ? ~u64{0} : (u64{1} << product.d.bits) - 1;
      ASSERT_EQ(product.d.decode(word >> (e % p * product.d.bits) & mask), sum)
          << opcode << " row " << where.row << " column " << where.column;
    }
  }
}

void expect_mma(const char* shape, int m, int k, const ElementType& d, const ElementType& a, const ElementType& b,
                const ElementType& c, const std::string& suffix = "") {
  const Product product{shape, m, 8, k, d, a, b, c, suffix};
  const std::string opcode = std::string("mma.sync.aligned.") + shape + ".row.col." + d.name + "." + a.name + "." +
                             b.name + "." + c.name + suffix;
  expect_product(product, opcode, [&](double x, double y) {
    if (suffix == ".xor.popc") return x != y ? 1.0 : 0.0;
    return x * y;
  });
}

TEST(Mma, HalvesAndTensorFloats) {
  expect_mma("m16n8k8", 16, 8, kF32, kF16, kF16, kF32);
  expect_mma("m16n8k8", 16, 8, kF16, kF16, kF16, kF16);
  expect_mma("m16n8k16", 16, 16, kF32, kF16, kF16, kF32);
  expect_mma("m16n8k16", 16, 16, kF16, kF16, kF16, kF16);
  expect_mma("m16n8k8", 16, 8, kF32, kBf16, kBf16, kF32);
  expect_mma("m16n8k16", 16, 16, kF32, kBf16, kBf16, kF32);
  expect_mma("m16n8k4", 16, 4, kF32, kTf32, kTf32, kF32);
  expect_mma("m16n8k8", 16, 8, kF32, kTf32, kTf32, kF32);
  expect_mma("m16n8k32", 16, 32, kF32, kE4m3, kE4m3, kF32);
  expect_mma("m16n8k32", 16, 32, kF32, kE5m2, kE4m3, kF32);
  expect_mma("m16n8k32", 16, 32, kF16, kE5m2, kE5m2, kF16);
}
TEST(Mma, Doubles) {
  expect_mma("m8n8k4", 8, 4, kF64, kF64, kF64, kF64);
  expect_mma("m16n8k4", 16, 4, kF64, kF64, kF64, kF64);
  expect_mma("m16n8k8", 16, 8, kF64, kF64, kF64, kF64);
  expect_mma("m16n8k16", 16, 16, kF64, kF64, kF64, kF64);
}
TEST(Mma, Integers) {
  for (const auto& [a, b] : {std::pair{kS8, kS8}, {kU8, kU8}, {kS8, kU8}, {kU8, kS8}}) {
    expect_mma("m8n8k16", 8, 16, kS32, a, b, kS32);
    expect_mma("m16n8k16", 16, 16, kS32, a, b, kS32);
    expect_mma("m16n8k32", 16, 32, kS32, a, b, kS32);
  }
  for (const auto& [a, b] : {std::pair{kS4, kS4}, {kU4, kU4}, {kS4, kU4}, {kU4, kS4}}) {
    expect_mma("m8n8k32", 8, 32, kS32, a, b, kS32);
    expect_mma("m16n8k32", 16, 32, kS32, a, b, kS32);
    expect_mma("m16n8k64", 16, 64, kS32, a, b, kS32);
  }
  expect_mma("m16n8k32", 16, 32, kS32, kS8, kS8, kS32, ".satfinite");
}
TEST(Mma, SingleBits) {
  for (const char* suffix : {".xor.popc", ".and.popc"}) {
    expect_mma("m8n8k128", 8, 128, kS32, kB1, kB1, kS32, suffix);
    expect_mma("m16n8k128", 16, 128, kS32, kB1, kB1, kS32, suffix);
    expect_mma("m16n8k256", 16, 256, kS32, kB1, kB1, kS32, suffix);
  }
}

TEST(Mma, IntegerSumsWrapOrSaturate) {
  const Product product{"m16n8k32", 16, 8, 32, kS32, kS8, kS8, kS32, ""};
  const std::vector<u64> a(32 * 4, 0x7f7f7f7f), b(32 * 2, 0x7f7f7f7f), c(32 * 4, 0x7fffffff);
  const std::string opcode = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
  EXPECT_EQ(run_product(product, opcode, a, b, c, 4)[5] & 0xffffffff, 0x7fffffffu + 127u * 127 * 32);
  EXPECT_EQ(run_product(product, opcode + ".satfinite", a, b, c, 4)[5] & 0xffffffff, 0x7fffffffu);
}

TEST(Mma, SpecialValuesReachTheResult) {
  const Product product{"m16n8k8", 16, 8, 8, kF32, kF16, kF16, kF32, ""};
  const std::string opcode = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32";
  const std::vector<u64> ones(32 * 1, 0x3c003c00), zero(32 * 4, 0);
  std::vector<u64> a(32 * 2, 0x3c003c00);
  a[0] = 0x7c003c00;  // row 0 has an infinity
  auto result = run_product(product, opcode, a, ones, zero, 4);
  EXPECT_EQ(kF32.decode(result[0]), HUGE_VAL);
  EXPECT_EQ(kF32.decode(result[2]), 8.0) << "row 8";
  a[0] = 0x7e003c00;
  EXPECT_TRUE(std::isnan(kF32.decode(run_product(product, opcode, a, ones, zero, 4)[0])));
}

struct Refused {
  const char* instruction;
  const char* message;
};
class MmaRefuses : public ::testing::TestWithParam<Refused> {};
TEST_P(MmaRefuses, AtLoad) {
  const LoadError error =
      load_error(header() + ".entry k() {\n.reg .b32 %r<8>; .reg .b64 %d<4>;\n" + GetParam().instruction + "\n}\n");
  EXPECT_EQ(error.line, 6);
  EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
}
INSTANTIATE_TEST_SUITE_P(
    Instructions, MmaRefuses,
    ::testing::Values(
        Refused{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3};", "registers"},
        Refused{"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3};", "does not exist"},
        Refused{"mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3};", ".row.col"},
        Refused{"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0}, {%r1}, {%r2}, {%r3};", "does not exist"},
        Refused{"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32 {%r0}, {%r1}, {%r2}, {%r3};", ".xor.popc"},
        Refused{"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
                "{%r0,%r1,%r2,%r3};",
                ".sp"},
        Refused{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];", "registers"},
        Refused{"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%d1];", "shared"}));

// ---- moving matrices

// 32 words of shared memory from `source`, the instruction, then each lane's word %r1 is stored.
std::vector<u32> run_tiles(const std::string& body, const std::vector<u32>& source,
                           std::initializer_list<std::string_view> opcodes, int words) {
  const std::string text =
      header() +
      ".visible .entry k(.param .u64 in, .param .u64 out) {\n.shared .align 16 .b8 tile[512];\n"
      ".reg .b32 %r<16>; .reg .b64 %d<8>;\nmov.u32 %r0, %laneid;\nld.param.u64 %d0, [in];\n"
      "mul.wide.u32 %d1, %r0, 16;\nadd.u64 %d0, %d0, %d1;\nld.global.v4.u32 {%r8,%r9,%r10,%r11}, [%d0];\n"
      "mov.u32 %r12, tile;\nshl.b32 %r13, %r0, 4;\nadd.u32 %r12, %r12, %r13;\n"
      "st.shared.v4.u32 [%r12], {%r8,%r9,%r10,%r11};\nbar.sync 0;\n" +
      body + "\nld.param.u64 %d2, [out];\nmul.wide.u32 %d1, %r0, " + std::to_string(4 * words) +
      ";\nadd.u64 %d2, %d2, %d1;\n";
  std::string stores;
  for (int i = 0; i < words; ++i) {
    stores += "st.global.u32 [%d2+" + std::to_string(4 * i) + "], %r" + std::to_string(1 + i) + ";\n";
  }
  TestDevice device;
  const auto module = load_or_fail(covers(text + stores + "ret;\n}\n", opcodes), device);
  if (module == nullptr) return {};
  const u64 out = device.upload(std::vector<u32>(static_cast<std::size_t>(32 * words)));
  const Outcome outcome = run_kernel(*module, device, "k", {1}, {32}, device.upload(source), out);
  EXPECT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  return device.download<u32>(out, static_cast<std::size_t>(32 * words));
}

// Four 8x8 matrices, one behind another, of 16-bit elements that count up.
std::vector<u32> counting() {
  std::vector<u32> out(128);
  for (u32 i = 0; i < out.size(); ++i) out[i] = (2 * i + 1) << 16 | 2 * i;
  return out;
}
u32 element(u32 matrix, u32 row, u32 column) {
  return matrix * 64 + row * 8 + column;
}

TEST(Matrix, LdmatrixDistributesRowsAndTransposes) {
  for (const u32 count : {1u, 2u, 4u}) {
    for (const bool transposes : {false, true}) {
      const std::string opcode =
          "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (transposes ? ".trans" : "") + ".shared.b16";
      std::string destination = "{";
      for (u32 i = 0; i < count; ++i) destination += (i == 0 ? "%r" : ", %r") + std::to_string(1 + i);
      const auto words =
          run_tiles(opcode + " " + destination + "}, [%r12];", counting(), {opcode}, static_cast<int>(count));
      ASSERT_FALSE(words.empty());
      for (u32 lane = 0; lane < 32; ++lane) {
        const u32 r = lane / 4, c = lane % 4 * 2;
        for (u32 i = 0; i < count; ++i) {
          const u32 low = transposes ? element(i, c, r) : element(i, r, c);
          const u32 high = transposes ? element(i, c + 1, r) : element(i, r, c + 1);
          EXPECT_EQ(words[lane * count + i], high << 16 | low) << opcode << " lane " << lane;
        }
      }
    }
  }
}

TEST(Matrix, StmatrixWritesWhatLdmatrixReads) {
  for (const std::string trans : {"", ".trans"}) {
    const std::string store = "stmatrix.sync.aligned.m8n8.x4" + trans + ".shared.b16";
    const std::string load = "ldmatrix.sync.aligned.m8n8.x4" + trans + ".shared.b16";
    // Loaded, changed, stored and loaded again.
    const auto words = run_tiles(load + " {%r1,%r2,%r3,%r4}, [%r12];\nxor.b32 %r2, %r2, -1;\n" + store +
                                     " [%r12], {%r1,%r2,%r3,%r4};\nmov.u32 %r1, 0; mov.u32 %r2, 0;\n" + load +
                                     " {%r1,%r2,%r3,%r4}, [%r12];",
                                 counting(), {store}, 4);
    const auto plain = run_tiles(load + " {%r1,%r2,%r3,%r4}, [%r12];", counting(), {load}, 4);
    ASSERT_EQ(words.size(), plain.size());
    for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], i % 4 == 1 ? ~plain[i] : plain[i]);
  }
  for (const char* count : {"x1", "x2"}) {
    const std::string store = std::string("stmatrix.sync.aligned.m8n8.") + count + ".shared.b16";
    const std::string list = count[1] == '1' ? "{%r14}" : "{%r14,%r15}";
    const auto words = run_tiles(
        "mov.u32 %r14, %r0;\nadd.u32 %r15, %r0, 100;\n" + store + " [%r12], " + list + ";\nld.shared.u32 %r1, [%r12];",
        counting(), {store}, 1);
    ASSERT_FALSE(words.empty());
    for (u32 row = 0; row < 8; ++row)
      EXPECT_EQ(words[row], row * 4) << "row " << row << " begins with lane " << row * 4;
  }
}

TEST(Matrix, MovmatrixTransposes) {
  const std::string opcode = "movmatrix.sync.aligned.m8n8.trans.b16";
  const auto words = run_tiles("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r12];\n" + opcode + " %r1, %r2;",
                               counting(), {opcode}, 1);
  ASSERT_FALSE(words.empty());
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 r = lane / 4, c = lane % 4 * 2;
    EXPECT_EQ(words[lane], element(0, c + 1, r) << 16 | element(0, c, r));
  }
}

// ---- wmma: D = A B + C through memory, in every layout

struct Wmma {
  const char* shape;
  int m, n, k;
  ElementType ab, cd;
  int a_words, b_words, cd_words;
};

std::vector<u64> in_memory(const Matrix& matrix, const ElementType& type, bool column_major, int stride) {
  std::vector<u64> out(4096);
  for (int r = 0; r < static_cast<int>(matrix.size()); ++r) {
    for (int c = 0; c < static_cast<int>(matrix[0].size()); ++c) {
      const int bit = (column_major ? c * stride + r : r * stride + c) * type.bits;
      out[static_cast<std::size_t>(bit / 64)] |= type.encode(at(matrix, r, c)) << bit % 64;
    }
  }
  return out;
}

void expect_wmma(const Wmma& wmma, bool a_column, bool b_column, const std::string& space = "global",
                 const std::string& operation = "") {
  const std::string la = a_column ? "col" : "row", lb = b_column ? "col" : "row", shape = wmma.shape;
  const std::string ab = wmma.ab.name, cd = wmma.cd.name;
  const bool is_half = ab == "f16";
  const std::string dot = space.empty() ? "" : "." + space;
  const std::string load_a = "wmma.load.a.sync.aligned." + la + "." + shape + dot + "." + ab;
  const std::string load_b = "wmma.load.b.sync.aligned." + lb + "." + shape + dot + "." + ab;
  const std::string load_c = "wmma.load.c.sync.aligned.row." + shape + dot + "." + cd;
  const std::string store_d = "wmma.store.d.sync.aligned.row." + shape + dot + "." + cd;
  const std::string multiply = "wmma.mma" + operation + ".sync.aligned." + la + "." + lb + "." + shape + "." + cd +
                               (is_half ? "." + cd : "." + ab + "." + ab + "." + cd);
  const std::string width = wmma.ab.bits == 64 ? "b64" : "b32", wide = wmma.cd.bits == 64 ? "b64" : "b32";
  const int a_stride = (a_column ? wmma.m : wmma.k) + (wmma.ab.bits >= 8 ? 64 / wmma.ab.bits * 2 : 0);
  const int b_stride = b_column ? wmma.k : wmma.n, c_stride = wmma.n + 4;
  const std::string text =
      header() + ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n.reg ." + width +
      " %a<16>, %b<16>;\n.reg ." + wide +
      " %c<16>, %d<16>;\n.reg .b64 %p<4>; .reg .b32 %s;\nld.param.u64 %p0, [pa];\n"
      "ld.param.u64 %p1, [pb];\nld.param.u64 %p2, [pc];\nld.param.u64 %p3, [pd];\nmov.u32 %s, " +
      std::to_string(a_stride) + ";\n" + load_a + " " + registers("%a", wmma.a_words) + ", [%p0], %s;\n" + load_b +
      " " + registers("%b", wmma.b_words) + ", [%p1], " + std::to_string(b_stride) + ";\n" + load_c + " " +
      registers("%c", wmma.cd_words) + ", [%p2], " + std::to_string(c_stride) + ";\n" + multiply + " " +
      registers("%d", wmma.cd_words) + ", " + registers("%a", wmma.a_words) + ", " + registers("%b", wmma.b_words) +
      ", " + registers("%c", wmma.cd_words) + ";\n" + store_d + " [%p3], " + registers("%d", wmma.cd_words) + ", " +
      std::to_string(c_stride) + ";\nret;\n}\n";
  const Matrix a = filled(wmma.m, wmma.k, [&](int r, int c) { return small(wmma.ab, r, c); });
  const Matrix b = filled(wmma.k, wmma.n, [&](int r, int c) { return small(wmma.ab, c, r + 1); });
  const Matrix c = filled(wmma.m, wmma.n, [](int r, int col) { return r - 2 * col; });
  TestDevice device;
  const auto module = load_or_fail(covers(text, {load_a, load_b, load_c, multiply, store_d}), device);
  if (module == nullptr) return;
  const u64 d = device.upload(std::vector<u64>(4096));
  const Outcome outcome =
      run_kernel(*module, device, "k", {1}, {32}, device.upload(in_memory(a, wmma.ab, a_column, a_stride)),
                 device.upload(in_memory(b, wmma.ab, b_column, b_stride)),
                 device.upload(in_memory(c, wmma.cd, false, c_stride)), d);
  ASSERT_EQ(outcome.fault, FaultKind::kNone) << outcome.fault_detail;
  const auto words = device.download<u64>(d, 4096);
  for (int r = 0; r < wmma.m; ++r) {
    for (int col = 0; col < wmma.n; ++col) {
      double sum = at(c, r, col);
      for (int k = 0; k < wmma.k; ++k) {
        sum += operation == ".xor.popc" ? (at(a, r, k) != at(b, k, col) ? 1 : 0) : at(a, r, k) * at(b, k, col);
      }
      const int bit = (r * c_stride + col) * wmma.cd.bits;
      const u64 mask = wmma.cd.bits == 64 ? ~u64{0} : (u64{1} << wmma.cd.bits) - 1;
      ASSERT_EQ(wmma.cd.decode(words[static_cast<std::size_t>(bit / 64)] >> bit % 64 & mask), sum)
          << multiply << r << " " << col;
    }
  }
}

TEST(Wmma, HalvesInEveryShapeAndLayout) {
  for (const auto& [shape, m, n] : {std::tuple{"m16n16k16", 16, 16}, {"m32n8k16", 32, 8}, {"m8n32k16", 8, 32}}) {
    for (const int layout : {0, 1, 2, 3}) {
      expect_wmma({shape, m, n, 16, kF16, kF32, 8, 8, 8}, (layout & 1) != 0, (layout & 2) != 0);
      expect_wmma({shape, m, n, 16, kF16, kF16, 8, 8, 4}, (layout & 1) != 0, (layout & 2) != 0);
    }
  }
  expect_wmma({"m16n16k16", 16, 16, 16, kF16, kF32, 8, 8, 8}, false, true, "");
}
TEST(Wmma, OtherTypes) {
  for (const ElementType& type : {kS8, kU8}) {
    expect_wmma({"m16n16k16", 16, 16, 16, type, kS32, 2, 2, 8}, false, true);
    expect_wmma({"m32n8k16", 32, 8, 16, type, kS32, 4, 1, 8}, false, true);
    expect_wmma({"m8n32k16", 8, 32, 16, type, kS32, 1, 4, 8}, false, true);
  }
  expect_wmma({"m16n16k16", 16, 16, 16, kBf16, kF32, 4, 4, 8}, false, false);
  expect_wmma({"m32n8k16", 32, 8, 16, kBf16, kF32, 8, 2, 8}, false, true);
  expect_wmma({"m8n32k16", 8, 32, 16, kBf16, kF32, 2, 8, 8}, true, false);
  expect_wmma({"m16n16k8", 16, 16, 8, kTf32, kF32, 4, 4, 8}, false, true);
  expect_wmma({"m8n8k4", 8, 8, 4, kF64, kF64, 1, 1, 2}, false, true);
  expect_wmma({"m8n8k32", 8, 8, 32, kS4, kS32, 1, 1, 2}, false, true);
  expect_wmma({"m8n8k32", 8, 8, 32, kU4, kS32, 1, 1, 2}, false, true);
  expect_wmma({"m8n8k128", 8, 8, 128, kB1, kS32, 1, 1, 2}, false, true, "global", ".xor.popc");
}

}  // namespace
}  // namespace softgpu::ptx
